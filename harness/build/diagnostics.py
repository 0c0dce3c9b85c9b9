"""A compiler's errors, told against the candidate's own file and line, or those of a file beside it: the source is a
string inside a Python file, and compilers speak of a generated one. ninja, command lines and templates are left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from harness.build import source_suffixes
from harness.build.compiler_report import short_name

_SHOWN, _WARNINGS = 3, 20
# A builder writes what it likes into its log, and a candidate as many strings into its source.
_MOST_PLACED, _MOST_STRINGS, _MOST_BESIDE_BYTES = 200, 100, 1 << 20
_GCC = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<kind>fatal error|error|warning): (?P<text>.*)$"
)
_NVCC = re.compile(
    r"^(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\): "
    r"(?P<kind>catastrophic error|error|warning)(?: #[\w-]+)?: (?P<text>.*)$"
)
_PTXAS = re.compile(r"^ptxas (?:\S+, line \d+; )?(?:fatal|error)\s*: (?P<text>.*)$")
PTXAS = "ptxas: "  # begins the text of what the assembler says, which has no place in a source
_LINKER = re.compile(r"(undefined reference to .*|multiple definition of .*|cannot find -l\S+)")
_UNDEFINED = re.compile(r"undefined symbol: (\w+)")
_FATAL = re.compile(r"^nvcc fatal\s*: (?P<text>.*)$")
_NEEDED_BY = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):\d+:\s+required from here")
_SYMBOL = re.compile(r"'(_Z\w+)'")
_WORD, _MOST_QUOTED = re.compile(r"\w+"), 160
_GCC_QUOTE = re.compile(r"^\s*\d+ \| ")
_NO_HEADER = re.compile(r"fatal error: (?P<header>[\w./]+): No such file")
_WHEELS = {
    "cublas": "nvidia-cublas", "cusparse": "nvidia-cusparse", "cusolver": "nvidia-cusolver", "curand": "nvidia-curand",
    "cufft": "nvidia-cufft", "cub/": "nvidia-cuda-cccl", "thrust/": "nvidia-cuda-cccl", "cuda/": "nvidia-cuda-cccl",
}
_KIND = r"(?:[Ii]nstruction|[Ff]eature|[Mm]odifier) '?(?P<what>[\w.:]+).*?"
_NOT_ON = re.compile(_KIND + r"not supported on \.target '?(?P<target>sm_\w+)")
_REQUIRES = re.compile(_KIND + r"requires \.target '?(?P<target>sm_\w+)")
_GENERATED = ("main.cpp", "cuda.cu")  # what `load_inline` writes
# Instructions of one architecture alone, which no later one has.
_OF_ONE_ARCH = {"wgmma": "sm_90a", "tcgen05": "sm_100a"}


@dataclass(frozen=True)
class Diagnostic:
    """One message; `line` is 1-based in `file`, None where the compiler named no place. `quoted` is the text of the
    line without its indent, `offset` where in it the compiler points.
    """

    kind: str
    text: str
    file: str = ""
    line: int | None = None
    offset: int | None = None
    quoted: str = ""


def explain(log: str, source: str, path: Path, generated: Mapping[str, str] | None = None) -> str:
    """Return the first errors in `log` with the candidate's file, line, source line and a caret; "" when there is none.
    `generated` gives the texts that the compilers were fed, by path, as far as they are known.
    """
    errors = [each for each in diagnostics(log) if each.kind == "error"][:_MOST_PLACED]
    origin = _Origin(source, path, generated or {})
    blocks = list(dict.fromkeys(_block(error, origin, path) for error in errors))
    if len(blocks) > _SHOWN:
        left = len(blocks) - _SHOWN
        blocks[_SHOWN:] = [f"and {left} more error{'s' if left > 1 else ''}"]
    return "\n".join(blocks)


def first_warnings(log: str, source: str, path: Path, generated: Mapping[str, str] | None = None) -> list[str]:
    """The first 20 of the compilers' warnings about the candidate's own source and files beside it, one line each."""
    origin = _Origin(source, path, generated or {})
    warnings = [each for each in diagnostics(log) if each.kind == "warning"][:_MOST_PLACED]
    placed = [(origin.place_of(each), each.text) for each in warnings]
    lines = (f"{place.name}:{place.line}: {text}" for place, text in placed if place is not None)
    return list(dict.fromkeys(lines))[:_WARNINGS]


def needs_architecture(log: str) -> str | None:
    """What the source needs and this target lacks ("needs sm_90a: …") when that is why ptxas refused, else None."""
    for missing in _NOT_ON.finditer(log):
        arch = _OF_ONE_ARCH.get(missing["what"].partition(".")[0])
        if arch:
            return f"needs {arch}: it uses {missing['what']}, which {missing['target']} does not have"
    if required := _REQUIRES.search(log):
        return f"needs {required['target']}: it uses {required['what']}"
    missing = _NOT_ON.search(log)
    return f"it uses {missing['what']}, which {missing['target']} does not have" if missing else None


def missing_cuda_header(log: str) -> tuple[str, str] | None:
    """Return (header, the wheel that brings it) when a header of CUDA's libraries was not to be found, else None."""
    match = _NO_HEADER.search(log)
    header = match["header"] if match else ""
    return next(((header, wheel) for start, wheel in _WHEELS.items() if header.startswith(start)), None)


def why_refused(log: str) -> str:
    """Say in a few words why a source was not compiled for one architecture where others went."""
    missing = needs_architecture(log)
    return missing or next((each.text for each in diagnostics(log) if each.kind == "error"), "the compiler refused it")


def diagnostics(log: str) -> list[Diagnostic]:
    """Return the errors and warnings of g++, nvcc, ptxas and the linker in `log`, in its order."""
    lines = log.splitlines()
    messages: list[Diagnostic] = []
    for index, line in enumerate(lines):
        if place := _GCC.match(line) or _NVCC.match(line):
            quoted, offset = _quotation(lines[index + 1:index + 3], place.groupdict().get("column"))
            kind = "warning" if place["kind"] == "warning" else "error"
            messages.append(Diagnostic(kind, place["text"], place["file"], int(place["line"]), offset, quoted))
        elif assembler := _PTXAS.match(line):
            # What follows the first complaint is only that it gave up.
            if "aborted due to errors" not in assembler["text"]:
                text = _SYMBOL.sub(lambda symbol: short_name(symbol[1]), assembler["text"])
                messages.append(Diagnostic("error", f"{PTXAS}{text}"))
        elif linker := _LINKER.search(line):
            messages.append(Diagnostic("error", f"linker: {linker[1]}"))
        elif symbol := _UNDEFINED.search(line):
            name = short_name(symbol[1])
            messages.append(Diagnostic("error", f"built, but cannot be loaded: nothing defines {name}"))
        elif fatal := _FATAL.match(line):
            messages.append(Diagnostic("error", f"nvcc: {fatal['text']}"))
        elif (needed := _NEEDED_BY.match(line)) and messages and not messages[-1].file.endswith(_GENERATED):
            line_number = int(needed["line"])
            messages[-1] = replace(messages[-1], file=needed["file"], line=line_number, offset=None, quoted="")
    return messages


def as_told(error: Diagnostic) -> str:
    """An error with a place as nvcc tells it, or one of ptxas, from which `diagnostics` reads the same."""
    if error.text.startswith(PTXAS):
        return f"ptxas error   : {error.text[len(PTXAS):]}\n"
    caret = "" if error.offset is None else f"\n  {' ' * error.offset}^"
    return f"{error.file}({error.line}): error: {error.text}\n  {error.quoted}{caret}\n"


def _quotation(after: list[str], column: str | None) -> tuple[str, int | None]:
    """Read the source line that follows a message, and where it points: g++ by `column`, nvcc by a lone ^ below."""
    if not after or _GCC.match(after[0]) or _NVCC.match(after[0]):
        return "", None
    raw = _GCC_QUOTE.sub("", after[0])
    indent = len(raw) - len(raw.lstrip())
    if column is not None:
        offset = int(column) - 1 - indent
    elif len(after) == 2 and after[1].strip() == "^":
        offset = after[1].index("^") - indent
    else:
        return raw.strip(), None
    return raw.strip(), offset if 0 <= offset <= len(raw.strip()) else None


class _Place(NamedTuple):
    """A line of an author's file: the file's name from the candidate's folder on, the number, the text."""

    name: str
    line: int
    text: str


class _Origin:
    """Finds the line of a candidate's file, or of one beside it, that a compiler's message is about."""

    def __init__(self, source: str, candidate: Path, generated: Mapping[str, str]) -> None:
        self._candidate, self._lines = candidate, source.splitlines()
        self._generated, self._strings = generated, _strings(source)
        self._beside: dict[str, list[str]] = {}
        self._places: dict[str, list[tuple[int, int, int]]] = {}
        self._numbers: dict[str, list[int]] = {}
        for number, line in enumerate(self._lines, 1):
            self._numbers.setdefault(line.strip(), []).append(number)

    def place_of(self, diagnostic: Diagnostic) -> _Place | None:
        """Where an author looks for it; None where that is in none of the author's files, or not known."""
        line = self._line_of(diagnostic)
        if line is not None:
            return _Place(self._candidate.name, line, self._lines[line - 1])
        lines, line = self._lines_beside(diagnostic.file), diagnostic.line
        if line is None or not 1 <= line <= len(lines):
            return None
        name = Path(diagnostic.file).resolve().relative_to(self._candidate.resolve().parent)
        return _Place(str(name), line, lines[line - 1])

    def _lines_beside(self, file: str) -> list[str]:
        """The lines of a source below the candidate's folder; none of any other file, whatever a log says."""
        if file not in self._beside:
            self._beside[file] = []
            with suppress(OSError, ValueError, RuntimeError):  # the last for links in a circle
                path = Path(file).resolve()
                is_source = Path(file).is_absolute() and path.suffix in source_suffixes.SOURCES
                is_beside = is_source and path.is_relative_to(self._candidate.resolve().parent)
                if is_beside and path.is_file() and path.stat().st_size <= _MOST_BESIDE_BYTES:
                    self._beside[file] = path.read_text(encoding="utf-8", errors="replace").splitlines()
        return self._beside[file]

    def _line_of(self, diagnostic: Diagnostic) -> int | None:
        """The line in the candidate (1-based), None when it did not come from there or more than one line could be."""
        if diagnostic.line is None:
            return None
        file, wanted = diagnostic.file, diagnostic.quoted
        ends = Path(file).parts[-2:]
        path = next((path for path in self._generated if path == file or Path(path).parts[-2:] == ends), None)
        if path is not None:
            line = self._by_place(path, diagnostic.line)
            if line is not None:
                return line
            if not wanted and 0 < diagnostic.line <= len(lines := self._generated[path].splitlines()):
                wanted = lines[diagnostic.line - 1].strip()
        elif not file.endswith(_GENERATED):
            return None
        same = self._numbers.get(wanted, []) if wanted else []
        return same[0] if len(same) == 1 else None

    def _by_place(self, path: str, line: int) -> int | None:
        """By the string that the generated line lies in: it stands in the file as it stands in the source."""
        if path not in self._places:
            text = self._generated[path]
            self._places[path] = [
                (text.count("\n", 0, start), string.count("\n"), first_line)
                for string, first_line in self._strings if (start := text.find(string)) >= 0
            ]
        for begins, more_lines, first_line in self._places[path]:
            if 0 <= line - 1 - begins <= more_lines:
                return first_line + line - 1 - begins
        return None


def _strings(source: str) -> list[tuple[str, int]]:
    """The longest string constants of a Python source that span as many lines as they hold, longest first."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, SystemError, ValueError):  # the second where two threads parse at once (Python 3.11)
        return []
    strings = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) > 8:
            if node.value.count("\n") == (node.end_lineno or node.lineno) - node.lineno:
                # Empty lines at the ends are often stripped before the compiler sees them.
                text = node.value.lstrip("\n")
                strings.append((text.rstrip("\n"), node.lineno + len(node.value) - len(text)))
    return sorted(strings, key=lambda pair: -len(pair[0]))[:_MOST_STRINGS]


def _block(error: Diagnostic, origin: _Origin, candidate: Path) -> str:
    """One error as people read it: place and message, the line, a caret."""
    place = origin.place_of(error)
    if place is None:
        if error.line is None:
            return f"{candidate.name}: {error.text}"
        quoted = f"\n      | {error.quoted}" if error.quoted else ""
        return f"{candidate.name}: {error.text} (in {Path(error.file).name}, line {error.line}){quoted}"
    text = place.text.rstrip()
    block = f"{place.name}:{place.line}: {error.text}\n{place.line:5d} | {text}"
    if error.offset is None:
        return block
    indent = len(text) - len(text.lstrip())
    if error.quoted == text.strip():
        return f"{block}\n      | {' ' * (indent + error.offset)}^"
    # nvcc quotes what the preprocessor made of the line.
    name = _WORD.match(error.quoted, error.offset)
    own = [match.start() for match in _WORD.finditer(text) if name and match[0] == name[0]]
    block += f"\n      | {' ' * (own[0] if len(own) == 1 else indent)}^"
    if len(error.quoted) <= _MOST_QUOTED:
        block += f"\n      | with its macros: {error.quoted}\n      | {' ' * (len('with its macros: ') + error.offset)}^"
    return block
