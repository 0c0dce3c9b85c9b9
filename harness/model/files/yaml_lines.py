"""YAML files read so that every value still knows its line, and a sentence for each way to break the syntax.

Scalars are read as YAML 1.2 reads them (``1e-3`` is a number, ``no`` is a word, ``010`` is ten). Which keys
and values a file may hold is decided by its schema; see `yaml_mistakes`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.model.errors import InputError
from harness.model.files.text_files import read_text

YAML_SUFFIXES = (".yaml", ".yml")
# An alias of aliases of aliases is billions of values in a kilobyte.
MOST_VALUES = 10_000
_INT = re.compile(r"[-+]?[0-9]+(_[0-9]+)*")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
          "null": None, "Null": None, "NULL": None, "~": None, "": None}
_TEXT_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq", "!")


@dataclass(frozen=True)
class YamlFile:
    """A YAML file whose top level is a mapping: its text, values, and the line of each key and list item."""

    path: Path
    text: str
    values: dict[str, Any]
    lines: dict[tuple[str | int, ...], int]

    def line_of(self, keys: Sequence[str | int]) -> int:
        """The line (1-based) of the value under `keys`, or of the nearest enclosing key that is there."""
        keys = tuple(keys)
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return self.lines.get(keys, 1)

    def fault(self, keys: Sequence[str | int], message: str, hint: str | None = None) -> InputError:
        """What is wrong with the value under `keys`, at its line."""
        return InputError(message, self.path, self.line_of(keys), hint)


def read_yaml(path: Path, also: Sequence[Path] = (), suffixes: Sequence[str] = YAML_SUFFIXES) -> YamlFile:
    """Reads `path`. Raises InputError with the line for anything that is not one mapping of plain values; when the file
    is missing, those with `suffixes` in its folder and in the folders `also` are offered.
    """
    import yaml  # 30 ms, and only needed once a file is really read

    text = read_text(path, suffixes, also)
    try:
        # BaseLoader resolves no scalar, so the words of YAML 1.1 (no, on, 1:30) stay words.
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        character = f"U+{ord(text[error.position]):04X}"
        raise InputError(f"the character {character} cannot stand in YAML", path, line) from None
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, path) from None
    except RecursionError:
        raise InputError("is nested too deeply to be read", path) from None
    if root is None or (isinstance(root, yaml.ScalarNode) and not root.value):
        raise InputError("is empty", path, hint="Copy a neighbouring file and change it.")
    if not isinstance(root, yaml.MappingNode):
        raise InputError("must be keys and values, such as 'title: …', one to a line", path, root.start_mark.line + 1)
    lines: dict[tuple[str | int, ...], int] = {}
    values = _Walk(path, lines).value(root, ())
    return YamlFile(path, text, values, lines)


class _Walk:
    """Turns composed nodes into plain values and notes the line of each."""

    def __init__(self, path: Path, lines: dict[tuple[str | int, ...], int]) -> None:
        self.path, self.lines, self._seen = path, lines, 0

    def value(self, node: Any, keys: tuple[str | int, ...], above: tuple[int, ...] = ()) -> Any:
        line = node.start_mark.line + 1
        self._seen += 1
        if self._seen > MOST_VALUES:
            raise InputError(
                f"holds more than {MOST_VALUES:,} values, with what an alias (*) stands for counted each time", self.path, line
            )
        self.lines.setdefault(keys, line)
        if node.tag not in _TEXT_TAGS:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            raise InputError(f"the tag '{tag}' is not used in this file", self.path, line, "Write the plain value.")
        if id(node) in above:
            raise InputError("an alias (*) refers to the value that it stands in", self.path, line)
        if node.id == "scalar":
            return _scalar(node)
        above = (*above, id(node))
        return self._mapping(node, keys, above) if node.id == "mapping" else [
            self.value(item, (*keys, index), above) for index, item in enumerate(node.value)]

    def _mapping(self, node: Any, keys: tuple[str | int, ...], above: tuple[int, ...]) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.id != "scalar":
                raise InputError("a key must be a word, not a list or a mapping", self.path, line)
            key = key_node.value
            if key in mapping:
                raise InputError(f"'{dotted_name((*keys, key))}' stands here a second time", self.path, line,
                                 f"Keep this line or line {self.lines[(*keys, key)]}.")
            if re.fullmatch(r"\w+:\S+", key) and value_node.id == "scalar" and not value_node.value:
                raise InputError(f"'{key}' needs a space after its ':'", self.path, line,
                                 f"Write {key.replace(':', ': ', 1)}")
            self.lines[(*keys, key)] = line
            mapping[key] = self.value(value_node, (*keys, key), above)
        return mapping


def dotted_name(keys: Sequence[str | int]) -> str:
    """The way a value is named in messages: ``sizes.check[1].M``."""
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text


def _scalar(node: Any) -> str | int | float | bool | None:
    """The value of a scalar by the core schema of YAML 1.2, which leaves quoted text alone."""
    text = node.value
    if node.style is not None:
        return text
    if text in _WORDS:
        return _WORDS[text]
    with suppress(ValueError):  # Python refuses an integer of more than 4300 digits
        if _INT.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
    return text


_PLAIN_WORDS = (  # what PyYAML says, and what it comes from
    ("mapping values are not allowed here", "a ':' stands where no key can be",
     "Put text that holds ': ' in quotes, and give keys of one level one indent."),
    ("could not find expected ':'", "there is a key without its ':'", "Write key: value."),
    ("expected <block end>, but found '<scalar>'", "text follows after a closing quote or bracket",
     "Put the whole value in one pair of quotes."),
    ("expected <block end>, but found '<block", "this line is not indented like those above it",
     "Give keys of one level one indent."),
    ("expected '<document start>'", "this line is not indented like those above it",
     "Give keys of one level one indent."),
    ("expected <block end>, but found '?'", "keys and list items stand at one level", "Indent one of them."),
    ("expected <block end>, but found '-'", "keys and list items stand at one level", "Indent one of them."),
    ("expected <block end>, but found", "there is a bracket too many", "Take it away, or put the text in quotes."),
    ("but found ']'", "a ']' closes nothing", "Open it with '['."),
    ("but found '}'", "a '}' closes nothing", "Open it with '{'."),
    ("but found another document", "a second document begins after '---'", "Keep one document to a file."),
    ("unknown escape character", "a text in double quotes holds a backslash that means nothing", "Use single quotes."),
)


def _syntax_error(error: Any, text: str, path: Path) -> InputError:
    """One sentence for what PyYAML found, at the line where the hand that mends it has to go."""
    problem, context = error.problem or "", error.context or ""
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    opened = error.context_mark.line + 1 if error.context_mark else line
    if "cannot start any token" in problem:
        character = text[mark.index]
        if character == "\t":
            return InputError("a tab stands where YAML wants spaces", path, line, "Indent with spaces.")
        return InputError(f"a value cannot begin with '{character}'", path, line, "Put the value in quotes.")
    if "undefined alias" in problem or "expected alphabetic or numeric character" in problem:
        return InputError("a value cannot begin with '*' or '&'", path, line, "Put the value in quotes.")
    if "quoted scalar" in context and "end of stream" in problem:
        return InputError("the quote that opens here is never closed", path, opened)
    if "while parsing a flow" in context:
        return _bracket_error(error, text, path)
    if "could not find expected ':'" in problem:
        line = opened
    for phrase, says, hint in _PLAIN_WORDS:
        if phrase in problem:
            return InputError(says, path, line, hint)
    detail = " ".join(part for part in (context, problem) if part)
    return InputError(f"is no YAML from here on ({detail})", path, line)


def _bracket_error(error: Any, text: str, path: Path) -> InputError:
    """What is wrong between brackets, at the bracket where nothing but its end is missing."""
    mark = error.problem_mark
    opened, bracket = _open_bracket(text, mark.index)
    if "expected the node content" in error.problem:
        closing = next((each for each in "]}" if f"'{each}'" in error.problem), None)
        if closing is not None:
            return InputError(f"a '{closing}' closes nothing", path, mark.line + 1,
                              f"What is open here is the '{bracket}' of line {opened}.")
        if "','" in error.problem:
            return InputError("a ',' stands where a value is missing", path, mark.line + 1, "Take it away.")
    hint = f"What follows is read as part of it up to line {mark.line + 1}." if mark.line + 1 > opened else None
    if "<stream end>" in error.problem:
        return InputError(f"the '{bracket}' that opens here is never closed", path, opened)
    other_fault = "a '-' stands" if "'-'" in error.problem else "a ',' is missing"
    return InputError(f"the '{bracket}' that opens here is not closed, or {other_fault} after it", path, opened, hint)


def _open_bracket(text: str, end: int) -> tuple[int, str]:
    """The line (1-based) and the kind of the innermost bracket that is open at character `end` of `text`."""
    import yaml

    still_open = []
    with suppress(yaml.YAMLError):
        for token in yaml.scan(text, Loader=yaml.BaseLoader):
            if token.start_mark.index >= end:
                break
            if isinstance(token, (yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken)):
                still_open.append((token.start_mark.line + 1, text[token.start_mark.index]))
            elif isinstance(token, (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken)):
                still_open.pop()
    return still_open[-1]
