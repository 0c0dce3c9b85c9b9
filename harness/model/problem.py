"""A problem: what is computed, at which sizes, how exact it must be, and against what it is timed.

What cannot be run is refused with sentences that name file and line. Nothing of the user's is imported here.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.model.candidate import OwnBaseline, read_baseline
from harness.model.errors import InputError
from harness.model.files.candidate_names import BASELINES
from harness.model.files.reference_source import read_reference, sizes_in
from harness.model.files.text_files import files_in, joined, shown
from harness.model.files.yaml_lines import YAML_SUFFIXES, YamlFile, read_yaml
from harness.model.formats import is_foreign, problem_in, read_foreign
from harness.model.formats.foreign import CandidateForm
from harness.model.formulas import Formula, FormulaError
from harness.model.paths import SHIPPED, folders_of, located, own
from harness.model.spelling import hint_for

PROBLEMS_DIR = SHIPPED / "problems"
_DEFAULT_BASELINES = ("eager", "torch.compile")
MODES = ("forward", "forward_backward")


@dataclass(frozen=True)
class AccuracyRule:
    """How a candidate's error is measured and what it is held to; `accuracy` turns it into bounds.

    `precision_class` is fp32, tf32, bf16 or fp16; `scale` is the error scale D: "abs_inputs" (the reference
    on absolute inputs) or "row_max" (the largest magnitude along the last dimension); `terms` is the length
    of the longest sum; `contracted` names, for a product, the axis of each input that is summed over, and is
    None for everything else, which admits no family of inputs but "as given".
    """

    precision_class: str = "fp32"
    scale: str = "row_max"
    terms: Formula | None = None
    contracted: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Problem:
    """A validated problem. `path` is the file the user named; `flops` and `bytes` are useful work per call. `mode` says
    what a call is: "forward", or "forward_backward" for the gradients too.

    Every mapping of sizes names the same sizes; all are empty for a KernelBench file, which keeps its own but for those
    that `--sizes` named.
    `more_sizes` are further ones to time at, on every device, where `--sizes` asked for several.
    New candidates go into `candidates_dir`; those of `more_candidates` count too where none there has their name.
    `form` is how candidates of another project's problem are written, None for KernelBench files.
    `hash` is the first 16 hex digits of the SHA-256 of problem file and reference, line ends as ``\\n``.
    `baseline` is a file of the user's in eager's place, None for eager.
    """

    name: str
    title: str
    path: Path
    reference_path: Path
    reference_source: str
    sizes: dict[str, int]
    cpu_sizes: dict[str, int]
    check_sizes: tuple[dict[str, int], ...]
    dtype: str
    flops: Formula | None
    bytes: Formula | None
    accuracy: AccuracyRule
    baselines: tuple[str, ...]
    kinds: tuple[str, ...]
    candidates_dir: Path
    hash: str
    mode: str = "forward"
    more_sizes: tuple[dict[str, int], ...] = ()
    more_candidates: tuple[Path, ...] = ()
    form: CandidateForm | None = None
    baseline: OwnBaseline | None = None

    @property
    def candidate_folders(self) -> tuple[Path, ...]:
        """The folders that its candidates lie in; where there is none, the one for new candidates."""
        there = tuple(each for each in (self.candidates_dir, *self.more_candidates) if each.is_dir())
        return there or (self.candidates_dir,)

    def each_size(self) -> tuple[Problem, ...]:
        """This problem once for each of the sizes to time at."""
        further = (replace(self, sizes=sizes, cpu_sizes=sizes, more_sizes=()) for sizes in self.more_sizes)
        return (replace(self, more_sizes=()), *further)

    def timed_sizes(self, device_kind: str) -> dict[str, int]:
        """The sizes to time at on a "cuda" or "cpu" device. Raises ValueError for another kind."""
        return dict(self.cpu_sizes if _is_cpu(device_kind) else self.sizes)

    def checks_for(self, device_kind: str) -> tuple[dict[str, int], ...]:
        """The further sizes to check at: on "cuda" all; on "cpu" those with no size above the cpu one's."""
        return tuple(dict(sizes) for sizes in self.check_sizes if not _is_cpu(device_kind)
                     or all(size <= self.cpu_sizes[name] for name, size in sizes.items()))


def load_problem(path: Path | str, candidates_dir: Path | str | None = None) -> Problem:
    """The problem in `path`: a YAML file (.yaml, .yml), a KernelBench reference (.py), or another project's (`formats`).

    Candidates come from the folder ``<name>`` in `candidates_dir`, or from that itself where it has none. By default
    they come from ``candidates/<name>`` of the current project and of what the problem is shipped with. Raises
    InputError; its text has one line for each mistake found.
    """
    path = Path(path)
    if is_foreign(path):
        return _foreign_problem(path, candidates_dir)
    candidates, *more = _candidate_folders(path, candidates_dir)
    if path.suffix == ".py":
        return _kernelbench_problem(path, candidates, tuple(more))
    if path.suffix not in YAML_SUFFIXES and path.is_file():
        hint = "A problem is a .yaml file, a KernelBench .py file, a task.yml or a definition's .json."
        raise InputError("is no problem file", path, hint=hint)
    file = read_yaml(path, also=folders_of("problems"), suffixes=(*YAML_SUFFIXES, ".py"))
    from harness.model.files.problem_file import read_problem_file  # with an engine that no missing file waits for

    parts = read_problem_file(file)
    schema, accuracy = parts.schema, parts.schema.accuracy
    timed, cpu, checks = ({}, {}, ()) if schema.sizes is None else \
        (schema.sizes.timed, schema.sizes.cpu or schema.sizes.timed, schema.sizes.check)
    contracted = None if accuracy.contracted is None else tuple(accuracy.contracted)
    return Problem(
        name=path.stem, title=schema.title, path=path, reference_path=parts.reference_path,
        reference_source=parts.reference_text, sizes=dict(timed), cpu_sizes={name: cpu[name] for name in timed},
        check_sizes=tuple({name: each[name] for name in timed} for each in checks), dtype=schema.dtype,
        flops=_formula(schema.useful.flops), bytes=_formula(schema.useful.bytes),
        accuracy=AccuracyRule(accuracy.precision_class, accuracy.scale, _formula(accuracy.terms), contracted),
        baselines=tuple(schema.baselines), kinds=tuple(schema.kinds), candidates_dir=candidates,
        hash=_hash(parts.yaml_text, parts.reference_text), mode=schema.mode, more_candidates=tuple(more),
        baseline=None if schema.baseline is None else _baseline_beside(file, schema.baseline),
    )


def _baseline_beside(file: YamlFile, name: str) -> OwnBaseline:
    """Return the baseline that the YAML names, at a path relative to it. Raises InputError with the line."""
    try:
        return read_baseline(file.path.parent / name)
    except InputError as error:
        raise file.fault(("baseline",), f"baseline: {error}") from None


def _candidate_folders(path: Path, chosen: Path | str | None) -> list[Path]:
    """Where candidates for the problem in `path` may lie; the first is the place for new ones."""
    if chosen is not None:
        inside = Path(chosen) / path.stem
        return [inside if inside.is_dir() else Path(chosen)]
    mine, folder = own("candidates") / path.stem, Path(os.path.abspath(path)).parent
    beside = folder.parent / "candidates" / path.stem
    is_another = folder.name == "problems" and os.path.realpath(beside) != os.path.realpath(mine)
    return [mine, beside] if is_another else [mine]


def find_problem(word: Path) -> Path:
    """The file of a problem: `word` itself, the definition or task in a folder of that path, or without a suffix that
    of the problem of this name. What does not lie in the working directory is looked for in the current project, then
    in what is shipped. Raises InputError, with the nearest name, when there is none of this name.
    """
    if word.suffix or len(word.parts) != 1 or word.is_file() or problem_in(word):
        path = located(word)
        return problem_in(path) or path
    names = problems_by_name()
    if word.name not in names:
        raise InputError(f"there is no problem '{word}'", hint=hint_for(word.name, list(names), "There are"))
    return names[word.name]


def problems_by_name() -> dict[str, Path]:
    """The file of each problem of the current project, then of each that is shipped and has another name."""
    names: dict[str, Path] = {}
    for folder in folders_of("problems"):
        for path in files_in(folder, YAML_SUFFIXES) or files_in(folder, (".py",)):
            if path.name[0] != "_":
                names.setdefault(path.stem, path)
    return names


def typed(path: Path) -> str:
    """What to type for the problem in `path`: its name where the file does not lie below the working directory."""
    text = shown(path)
    by_name = problems_by_name().get(path.stem) if Path(text).is_absolute() else None
    return path.stem if by_name is not None and by_name.resolve() == path.resolve() else text


def in_mode(problem: Problem, mode: str | None) -> Problem:
    """The problem with another `mode`, or as it is for None; what its formulas say of useful work holds no more then.
    Raises InputError for a mode that there is not.
    """
    if mode not in (None, *MODES):
        raise InputError(f"there is no mode '{mode}'", hint=hint_for(str(mode), MODES, "There are"))
    return problem if mode in (None, problem.mode) else replace(problem, mode=mode, flops=None, bytes=None)


def with_baselines(problem: Problem, text: str | None, *, in_suite: bool = False) -> Problem:
    """The problem with the baselines that --baselines names, eager always among them; without a `text` with its own,
    but eager alone for a KernelBench file `in_suite`, which names none. Raises InputError.
    """
    if text is None:
        return replace(problem, baselines=("eager",)) if in_suite and problem.path.suffix == ".py" else problem
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in BASELINES:
            raise InputError(f"--baselines: there is no baseline '{name}'", hint=hint_for(name, BASELINES, "There are"))
    return replace(problem, baselines=tuple(name for name in BASELINES if name in ("eager", *names)))


def over_baseline(problem: Problem, path: Path | None) -> Problem:
    """Return the problem with speedups over the file that --baseline names; as it is without one. Raises InputError."""
    return problem if path is None else replace(problem, baseline=read_baseline(located(path)))


def at_sizes(problem: Problem, texts: Sequence[str]) -> Problem:
    """The problem timed at what `--sizes` names instead, on every device; as it is for no texts. Raises InputError."""
    if not texts:
        return problem
    known = problem.sizes or _sizes_of_the_file(problem)
    chosen = read_sizes(texts, known)
    if not problem.sizes:  # the others stay as they are, and need not be named in each row
        named = names_in(texts)
        chosen = [{name: each[name] for name in known if name in named} for each in chosen]
    first, *more = chosen
    formulas = [each for each in (problem.flops, problem.bytes, problem.accuracy.terms) if each]
    for sizes, formula in itertools.product(chosen, formulas):
        try:
            fault = None if formula.evaluate(sizes) > 0 else "is not positive there"
        except FormulaError as error:
            fault = error.fault
        if fault is not None:
            at = ",".join(f"{name}={value}" for name, value in sizes.items())
            raise InputError(f"--sizes {at}: the formula '{formula.text}' {fault}", problem.path)
    return replace(problem, sizes=first, cpu_sizes=first, more_sizes=tuple(more))


def asked_problem(options: argparse.Namespace) -> Problem:
    """Return the one problem that the flags of a run, a watch or a search name, as they want it. Raises InputError."""
    problem = load_problem(find_problem(options.problem[0]), options.candidates)
    problem = with_baselines(at_sizes(in_mode(problem, options.mode), options.sizes), options.baselines)
    return over_baseline(problem, options.baseline)


def _sizes_of_the_file(problem: Problem) -> dict[str, int]:
    """The sizes that a KernelBench file by itself can be run at others of. Raises InputError where it has none."""
    if problem.path != problem.reference_path:
        raise InputError(f"{problem.name} names no sizes, so there are no others", problem.path,
                         hint="Add sizes: {timed: {M: …}} to it")
    known = sizes_in(problem.reference_source)
    if not known:
        raise InputError("gives no whole number a name at its left margin, so it has no sizes but its own",
                         problem.path, hint="Write M = 1024 at the top and use it in get_inputs, or leave --sizes out")
    return known


def _kernelbench_problem(path: Path, candidates_dir: Path, more_candidates: tuple[Path, ...]) -> Problem:
    """A KernelBench file by itself: its own sizes, the default accuracy rule, no formulas."""
    text, _, errors = read_reference(path, also=folders_of("problems"))
    if errors:
        raise joined(errors)
    return Problem(name=path.stem, title=path.stem.replace("_", " "), path=path, reference_path=path,
                   reference_source=text, sizes={}, cpu_sizes={}, check_sizes=(), dtype="float32", flops=None,
                   bytes=None, accuracy=AccuracyRule(), baselines=_DEFAULT_BASELINES, kinds=("custom",),
                   candidates_dir=candidates_dir, hash=_hash(text), more_candidates=more_candidates)


def _foreign_problem(path: Path, candidates_dir: Path | str | None) -> Problem:
    """A definition or a task: the largest of its workloads or benchmarks is timed, the others are checks."""
    foreign = read_foreign(path)
    folders = (own("candidates") / foreign.name, *foreign.folders)
    if candidates_dir is not None:
        inside = Path(candidates_dir) / foreign.name
        folders = (inside if inside.is_dir() else Path(candidates_dir),)
    return Problem(name=foreign.name, title=foreign.title, path=path, reference_path=path,
                   reference_source=foreign.source, sizes=foreign.timed, cpu_sizes=foreign.timed,
                   check_sizes=foreign.checks, dtype=foreign.dtype, flops=None, bytes=None, accuracy=AccuracyRule(),
                   baselines=_DEFAULT_BASELINES, kinds=("custom",), candidates_dir=folders[0], hash=_hash(foreign.text),
                   more_candidates=folders[1:], form=foreign.form)


def _formula(text: str | None) -> Formula | None:
    return None if text is None else Formula(text)


def _hash(*texts: str) -> str:
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:16]


def _is_cpu(device_kind: str) -> bool:
    if device_kind not in ("cuda", "cpu"):
        raise ValueError(f"device kind must be 'cuda' or 'cpu', not '{device_kind}'")
    return device_kind == "cpu"


def names_in(texts: Sequence[str]) -> set[str]:
    """The names that the texts give a number to, as far as they do."""
    return {part.partition("=")[0] for text in texts for part in _parts(text)}


def read_sizes(texts: Sequence[str], timed: Mapping[str, int]) -> list[dict[str, int]]:
    """One mapping for each text, in the order of `timed`, with its values where a text is silent. Raises InputError."""
    chosen = [_one(text, timed) for text in texts]
    for text, sizes in zip(texts, chosen):
        if chosen.count(sizes) > 1:
            raise InputError(f"--sizes {text} stands there twice", hint="Once is enough")
    return chosen


def _one(text: str, timed: Mapping[str, int]) -> dict[str, int]:
    example = ",".join(f"{name}={value}" for name, value in timed.items())
    given_sizes: dict[str, int] = {}
    for part in _parts(text):
        name, equals, number = part.partition("=")
        if not equals or not re.fullmatch(r"[0-9]+", number) or int(number) < 1:
            raise InputError(f"--sizes {text}: '{part}' is no NAME=NUMBER, a whole number of at least 1",
                             hint=f"As in --sizes {example}")
        if name not in timed:
            raise InputError(f"--sizes {text}: '{name}' is no size of this problem",
                             hint=hint_for(name, list(timed), "Its sizes are"))
        if name in given_sizes:
            raise InputError(f"--sizes {text} gives {name} twice", hint=f"As in --sizes {example}")
        given_sizes[name] = int(number)
    return {name: given_sizes.get(name, value) for name, value in timed.items()}


def _parts(text: str) -> list[str]:
    return re.split(r"[,\s]+", text.strip(", "))
