"""The adversarial corpus: candidates whose headers say what they do and what must become of them. A header is the
docstring of its file and is read as text, so that a file that is no Python has one too; nothing is imported here.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.model.candidate import named
from harness.model.errors import InputError, NothingToRun
from harness.model.files.text_files import files_in, joined
from harness.model.paths import SHIPPED
from harness.model.spelling import listed, nearest
from harness.model.verdict import CODES_OF, Status

CORPUS = SHIPPED / "tests" / "adversarial"
GROUPS = ("clock", "answer", "substance", "machine", "form", "honest")
FOOLS = ("clock", "answer", "substance", "nothing")
DEVICES = {"cpu": ("cpu",), "cuda": ("cuda",), "any": ("cpu", "cuda")}
KINDS = ("custom", "library", "mixed", "unknown")
PROBLEMS = {
    "tril_matmul": "tril_small.yaml", "matmul_transposed_a": "transposed_small.yaml", "vector_sum": "sum_small.yaml",
}
FIELDS = ("Mechanism", "Expected", "Fools", "Device", "Kind", "Problem", "Needs")
_OPTIONAL = {"Kind": "", "Problem": "tril_matmul", "Needs": ""}
_PASSES = f"{Status.OK.value}/"
_DOCSTRING = re.compile(r'\ufeff?(?:#[^\n]*\n|\s)*[rR]?("""|\'\'\')(.*?)\1', re.DOTALL)
_FIELD = re.compile(r"([A-Z][A-Za-z]*):(?: +(.*))?$")


@dataclass(frozen=True)
class Case:
    """One file of the corpus; its `name` is its row's. `expected` holds pairs "status/reason_code", any of which its
    row may have; `kinds` the kinds it may have, none when its header is silent on that; `devices` "cpu", "cuda" or
    both; `problem` is a key of `PROBLEMS`; `fools` one of `FOOLS`; `needs` the modules without which it is not run.
    """

    path: Path
    name: str
    group: str
    sentence: str
    mechanism: str
    expected: tuple[str, ...]
    fools: str
    devices: tuple[str, ...]
    kinds: tuple[str, ...]
    problem: str
    needs: tuple[str, ...] = ()

    @property
    def is_honest(self) -> bool:
        """Whether this is a control: a candidate that must pass."""
        return self.group == "honest"


def read_corpus(folder: Path) -> list[Case]:
    """Every case ``<group>/<name>.py`` below `folder`, by group in the order of `GROUPS` and then by name; files that
    begin with "_" or "." are left alone. Raises InputError with a sentence for each header that is no header, for a
    group that is none and for a name that stands twice.
    """
    cases, errors, seen = [], list(_foreign_groups(folder)), {}
    for group in GROUPS:
        for path in (each for each in files_in(folder / group, (".py",)) if not each.name.startswith("_")):
            try:
                if path.stem in seen:
                    hint = "A row is known by its name alone: rename one of the two."
                    raise InputError(f"there is a case of this name already, {seen[path.stem]}", path, hint=hint)
                seen[path.stem] = path
                cases.append(read_case(path))
            except InputError as error:
                errors.append(error)
    if errors:
        raise joined(errors)
    if not cases:
        raise InputError("holds no case of the corpus", folder, hint=f"A case is {folder}/<group>/<name>.py.")
    return cases


def cases_for(cases: Sequence[Case], device_kind: str, problem: str) -> list[Case]:
    """Those of `cases` that run on a "cpu" or "cuda" device and are candidates for `problem`."""
    return [case for case in cases if device_kind in case.devices and case.problem == problem]


def read_case(path: Path) -> Case:
    """The case in the file `path`, whose folder is its group. Raises InputError with file, line and what to write."""
    try:
        text = path.read_bytes().decode("utf-8", errors="replace").replace("\r\n", "\n")
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", path) from None
    match = _DOCSTRING.match(text)
    if match is None:
        raise InputError("has no header", path, 1, 'Begin the file with """ and a sentence on what it does.')
    first_line = text[: match.start(2)].count("\n") + 1
    sentence, fields = _split(match.group(2), path, first_line)
    values = {name: value for name, (value, _) in fields.items()}
    case = Case(
        path=path, name=named(path)[0], group=path.parent.name, sentence=sentence, mechanism=values["Mechanism"],
        expected=_expected(*fields["Expected"], path), fools=_one_of("Fools", FOOLS, *fields["Fools"], path),
        devices=DEVICES[_one_of("Device", tuple(DEVICES), *fields["Device"], path)],
        kinds=tuple(_one_of("Kind", KINDS, each, fields["Kind"][1], path) for each in _alternatives(values["Kind"])),
        problem=_one_of("Problem", tuple(PROBLEMS), *fields["Problem"], path), needs=_modules(*fields["Needs"], path),
    )
    _check_whole(case, fields["Expected"][1], fields["Fools"][1])
    return case


def _split(docstring: str, path: Path, first_line: int) -> tuple[str, dict[str, tuple[str, int]]]:
    """The header's sentence, and each field's text on one line with the line of the file that it begins on."""
    sentence: list[str] = []
    fields: dict[str, tuple[list[str], int]] = {}
    last: list[str] = sentence
    for number, line in enumerate(docstring.split("\n"), first_line):
        match = _FIELD.match(line)
        if match is not None and match.group(1) in FIELDS:
            if match.group(1) in fields:
                raise InputError(f"has {match.group(1)}: twice", path, number, "Leave one of the two out.")
            last = [match.group(2) or ""]
            fields[match.group(1)] = (last, number)
        elif fields and line.strip() and not line.startswith("  "):
            guess = nearest(match.group(1), FIELDS) if match is not None else None
            hint = f"Did you mean {guess}:?" if guess else \
                f"Indent a line that goes on by two spaces, or begin it with one of {listed(FIELDS)} and a colon."
            raise InputError(f"cannot be read as a field of the header: {line.strip()[:60]}", path, number, hint)
        else:
            last.append(line)
    joined_up = {name: (" ".join(" ".join(parts).split()), number) for name, (parts, number) in fields.items()}
    text = " ".join(" ".join(sentence).split())
    if not text:
        raise InputError("the header does not say what it does", path, first_line, "Begin it with one sentence.")
    for name in FIELDS:
        if name in _OPTIONAL:
            joined_up.setdefault(name, (_OPTIONAL[name], first_line))
        elif not joined_up.get(name, ("", 0))[0]:
            at = joined_up[name][1] if name in joined_up else first_line
            raise InputError(f"the header has no {name}", path, at, f"Add a line that begins with {name}: to it.")
    return text, joined_up


def _alternatives(text: str) -> list[str]:
    return re.split(r"\s+or\s+", text) if text else []


def _modules(text: str, line: int, path: Path) -> tuple[str, ...]:
    names = tuple(re.split(r"\s+and\s+", text)) if text else ()
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise InputError(f"Needs: {name} is no module", path, line, 'Write the names that Python imports, joined by "and".')
    return names


def _expected(text: str, line: int, path: Path) -> tuple[str, ...]:
    """The pairs of `text`, each one that `verdict` knows."""
    for pair in _alternatives(text):
        status, slash, code = pair.partition("/")
        known = {each.value: sorted(code.value for code in CODES_OF[each]) for each in Status}
        if not slash or status not in known:
            guess = nearest(status, tuple(known))
            hint = f"Did you mean {guess}/{code}?" if guess else f"The statuses are {listed(tuple(known))}."
            raise InputError(f"Expected: {pair} is no status/reason_code", path, line, hint)
        if code not in known[status]:
            guess = nearest(code, known[status])
            hint = f"Did you mean {status}/{guess}?" if guess else \
                f"Write {' or '.join(f'{status}/{each}' for each in known[status])}."
            raise InputError(f"Expected: {code or 'no code'} is no reason for {status}", path, line, hint)
    return tuple(_alternatives(text))


def _one_of(name: str, allowed: Sequence[str], value: str, line: int, path: Path) -> str:
    if value not in allowed:
        raise InputError(f"{name}: {value} is not known", path, line, f"Write {listed(allowed, 'or')}.")
    return value


def _check_whole(case: Case, expected_line: int, fools_line: int) -> None:
    """Refuse a header whose fields do not go together: nobody could say then what a catch is."""
    if case.is_honest and (case.expected != (_PASSES,) or case.fools != "nothing"):
        raise InputError("an honest control fools nothing and must pass", case.path, expected_line,
                         f"Write Expected: {_PASSES} and Fools: nothing, or move it to another group.")
    if _PASSES in case.expected and case.fools == "answer":
        raise InputError(f"what fools by the {case.fools} may not be {_PASSES}", case.path, expected_line,
                         "Name the status that it must have instead.")
    # What tries to fool a clock may gain nothing by it; then it is the library's work that it always was.
    tricks = case.fools in ("substance", "clock")
    if tricks and ("custom" in case.kinds or (_PASSES in case.expected and not case.kinds)):
        raise InputError("a library's work behind a decoy is of another kind than custom", case.path, fools_line,
                         "Write Kind: library, mixed or unknown.")


def _foreign_groups(folder: Path) -> Iterator[InputError]:
    if not folder.is_dir():
        raise InputError("there is no such folder of cases", folder)
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name not in GROUPS and files_in(path, (".py",)):
            guess = nearest(path.name, GROUPS)
            hint = f"Did you mean {folder / guess}?" if guess else f"The groups are {listed(GROUPS)}."
            yield InputError("is no group of the corpus", path, hint=hint)


def chosen(cases: Sequence[Case], only: Sequence[str], skip: Sequence[str]) -> list[Case]:
    """Those of `cases` that `only` names and `skip` does not; a glob is for a name or for group/name. Raises InputError
    for a glob that matches no case, NothingToRun when none is left.
    """
    wanted = _matching(cases, only, "--only") if only else set(cases)
    left = [case for case in cases if case in wanted - _matching(cases, skip, "--skip")]
    if not left:
        raise NothingToRun("no case of the corpus is left after --only and --skip. Skip fewer")
    return left


def _matching(cases: Sequence[Case], globs: Sequence[str], flag: str) -> set[Case]:
    matched: set[Case] = set()
    for glob in globs:
        pattern = glob.removesuffix(".py")
        matches = [each for each in cases if fnmatch.filter((each.name, f"{each.group}/{each.name}"), pattern)]
        if not matches:
            guess = nearest(pattern, [case.name for case in cases])
            hint = f"Did you mean '{guess}'?" if guess else "A glob is for a name, or for group/name as in 'clock/*'."
            raise InputError(f"{flag} '{glob}' matches no case of the corpus", hint=hint)
        matched.update(matches)
    return matched
