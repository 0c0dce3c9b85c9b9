"""Candidates: the files of a folder, read as text and never imported.

One that cannot work (no Python, no `ModelNew`) is returned with its fault in words: it costs its own row of the table.
"""

from __future__ import annotations

import ast
import fnmatch
import functools
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import ClassVar

from harness.model.errors import InputError, NothingToRun
from harness.model.files import parameters
from harness.model.files.candidate_names import BASELINES, cell_of, fault_of_name, forms_of, is_plainest
from harness.model.files.neighbours import Places, beside
from harness.model.files.python_source import ModuleNames, SourceFault, called_name, parsed, top_level_names
from harness.model.files.text_files import declared_encoding, decoded, shown
from harness.model.formats.foreign import CandidateForm
from harness.model.paths import PROGRAM, own
from harness.model.spelling import hint_for, listed, nearest
from harness.model.verdict import ReasonCode
from harness.protocol.source_import import WITH_FILES

_MOST_BYTES = 1 << 20  # of what is parsed and searched here, where nobody can end it
# Position of `cuda_sources` in load_inline(name, cpp_sources, cuda_sources, …)
_CUDA_SOURCES_POSITION = 2
_CUDA_MODULES = ("cupy", "pycuda", "numba.cuda", "cuda", "cutlass.cute", "tilelang")
_CUDA_FILES = (".cu", ".cuh")
_CPP_FILES = (".cpp", ".cc", ".cxx", ".c")


@dataclass(frozen=True)
class Candidate:
    """A candidate file. `name` is its stem, as far as that fits into a table; `source_hash` the first 16 hex digits of
    the SHA-256 of `source`.

    `language` is "cuda", "triton", "cpp" or "torch", by what the file calls. `fault` is None, or one sentence with file
    and line on why it cannot be run; `fault_code` is the reason code that goes with it. `parameters` are the values of
    `PARAMETERS` that count, as text, None where it declares none; with values of its YAML, or of a trial, `source` is
    the file with those alone, and `is_frozen`. So it is for another project's candidate, whose `files` (name and text)
    lie beside the copy that is run; they are None for a KernelBench file.
    """

    name: str
    path: Path
    source: str
    source_hash: str
    language: str
    fault: str | None = None
    fault_code: ReasonCode = ReasonCode.NONE
    parameters: str | None = None
    is_frozen: bool = False
    files: tuple[tuple[str, str], ...] | None = None
    role: ClassVar[str] = "candidate"

    def beside(self) -> Places:
        """What it may read of its own folder; nothing of another project's, whose imports lie beside a copy."""
        places = beside(self.path)
        return places if self.files is None else places._replace(own=[])

    def file_in(self, folder: Path) -> Path:
        """The file to be run: its own, or a copy below `folder` of the `source` that counts. Raises OSError."""
        if not self.is_frozen:
            return self.path
        copy = folder / f"{WITH_FILES if self.files else 'frozen-'}{self.source_hash}" / f"{self.path.stem}.py"
        for path, text in (*((copy.parent / name, text) for name, text in self.files or ()), (copy, self.source)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return copy

    @property
    def is_as_read(self) -> bool:
        """Whether what is run is what was read: its file has not been saved again with another text since."""
        return self.is_frozen or read_candidate(self.path, tuned=False).source_hash == self.source_hash

    def with_parameters(self, values: Mapping[str, parameters.Value]) -> Candidate:
        """The same with other values of its `PARAMETERS`."""
        source = parameters.frozen(self.source, parsed(self.source), values)
        return replace(self, source=source, source_hash=_hash(source.encode()),
                       parameters=parameters.parameters_text(values), is_frozen=True)


def read_candidate(
    path: Path, *, tuned: bool = True, form: CandidateForm | None = None, among: Sequence[Path] | None = None
) -> Candidate:
    """The candidate in `path`, with the values of the YAML file beside it, if it is `tuned`; in the `form` of its
    problem. Its name must look like that of no other file `among` which it is judged, those of its folder where that is
    not said. Raises nothing: what is wrong with the file is its `fault`.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        fault = f"{path.name}: cannot be read ({error.strerror or error})"
        return Candidate(named(path, among)[0], path, "", _hash(b""), "torch", fault, ReasonCode.IMPORT_ERROR)
    return candidate_of(content, path, tuned=tuned, form=form, among=among)


def candidate_of(
    content: bytes, path: Path, *, tuned: bool = True, form: CandidateForm | None = None,
    among: Sequence[Path] | None = None,
) -> Candidate:
    """The candidate whose file at `path` has this `content`, or would have it; as `read_candidate` else."""
    name, fault_of_its_name = named(path, among)
    if len(content) > _MOST_BYTES:
        fault = f"{path.name}: has {len(content) / 1e6:.1f} MB; a candidate may have {_MOST_BYTES / 1e6:.1f}. " \
            "Put what is long into a file beside it"
        return Candidate(name, path, "", _hash(content), "torch", fault, ReasonCode.IMPORT_ERROR)
    try:
        source = decoded(content, Path(path.name))
    except InputError as error:
        text = content.decode("utf-8", errors="replace")
        return Candidate(name, path, text, _hash(content), "torch", str(error), ReasonCode.SYNTAX_ERROR)
    if (declared := declared_encoding(content)) is not None:
        fault = f"{path.name}: declares the encoding {declared}, and is read as UTF-8. Leave the declaration out"
        return Candidate(name, path, source, _hash(content), "torch", fault, ReasonCode.SYNTAX_ERROR)
    files = None
    if form is not None:
        try:
            written = form.written(path, source)
        except InputError as error:
            return Candidate(name, path, source, _hash(content), "torch", str(error), ReasonCode.IMPORT_ERROR)
        source, files = written.source, written.files
    # over the text and not the bytes: line ends differ between the machines whose results are compared
    source_hash = _hash("\0".join([source, *(text for each in files or () for text in each)]).encode())
    if fault_of_its_name is not None:
        fault = f"{name}{path.suffix}: {fault_of_its_name}. Rename the file"
        return Candidate(name, path, source, source_hash, "torch", fault, ReasonCode.IMPORT_ERROR)
    try:
        tree = parsed(source)
    except SourceFault as error:
        fault = f"{path.name}:{error.line}: {error.message}{_quoted_line(source, error.line)}"
        return Candidate(name, path, source, source_hash, "torch", fault, ReasonCode.SYNTAX_ERROR)
    fault = _without_model_new(top_level_names(tree), source, path.name)
    code = ReasonCode.NONE if fault is None else ReasonCode.NO_MODEL_NEW
    candidate = Candidate(name, path, source, source_hash, language_of(tree), fault, code)
    return _with_values(candidate, tuned) if form is None else replace(candidate, is_frozen=True, files=files)


@dataclass(frozen=True)
class OwnBaseline(Candidate):
    """A candidate file of the user's in eager's place: judged as any other, and what the speedups of the rows are over."""

    role: ClassVar[str] = "baseline"


def read_baseline(path: Path) -> OwnBaseline:
    """Return the baseline in `path`. Raises InputError where it is no file that could be run as a candidate."""
    if not path.is_file():
        guess = nearest(path.name, [each.name for each in path.parent.glob("*.py")])
        hint = "--baselines names the harness's own" if str(path.name) in BASELINES else \
            f"Did you mean {shown(path.parent / guess)}?" if guess else \
            "Give the path of a Python file with a class ModelNew: --baseline candidates/tril_matmul/tiled_shared.py"
        raise InputError("there is no such file of a baseline", shown(path), hint=hint)
    if path.suffix != ".py":
        raise InputError("a baseline is a .py file with class ModelNew", shown(path))
    candidate = read_candidate(path)
    if candidate.fault is not None:
        raise InputError(f"the baseline {candidate.fault.removeprefix('?')}")  # that of a refused name in a table
    return OwnBaseline(**{each.name: getattr(candidate, each.name) for each in fields(candidate)})


def rivals_of(baseline: OwnBaseline | None, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that are judged beside `baseline`: all but its own file. Raises InputError where another
    file has its name, and NothingToRun where none is left.
    """
    if baseline is None:
        return list(candidates)
    file = baseline.path.resolve()
    left = [each for each in candidates if each.path.resolve() != file]
    if any(each.name == baseline.name for each in left):
        raise InputError(f"{baseline.name} is the name of the baseline and of a candidate", shown(baseline.path),
                         hint="Rename one of the two files")
    if not left and candidates:
        raise NothingToRun(f"no candidate is left: {baseline.name} is the baseline itself")
    return left


def named(path: Path, among: Sequence[Path] | None = None) -> tuple[str, str | None]:
    """The name of the candidate in `path` as tables have it, and why it may not be called so; None where it may."""
    fault = fault_of_name(path.stem) or _fault_of_look_alike(path, among)
    return cell_of(path.stem, is_refused=fault is not None), fault


def _fault_of_look_alike(path: Path, among: Sequence[Path] | None) -> str | None:
    """Whose name that of the file looks like, where the other is the plainer one, or as plain and was there first."""
    if among is not None and not among:
        return None
    others = _beside(str(path.parent), _changed_ns(path.parent)) if among is None else {
        form: tuple(each for each in among if form in forms_of(each.stem)) for form in forms_of(path.stem)
    }
    alike = {each for form in forms_of(path.stem) for each in others.get(form, ()) if each.stem != path.stem}
    keeps = min((*alike, path), key=lambda each: (not is_plainest(each.stem), _changed_ns(each), each.name))
    return None if keeps == path else f"its name looks like that of {keeps.name}, another candidate's"


@functools.lru_cache(maxsize=16)
def _beside(folder: str, changed_ns: int) -> Mapping[str, tuple[Path, ...]]:
    """The candidates' files in `folder` by the forms of their names; it is looked at again once something was put there."""
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".py") and name[0] not in "_."]
    except OSError:
        names = []
    paths_by_form: dict[str, tuple[Path, ...]] = {}
    for path in (Path(folder, name) for name in names):
        for form in forms_of(path.stem) if fault_of_name(path.stem) is None else ():
            paths_by_form[form] = (*paths_by_form.get(form, ()), path)
    return paths_by_form


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def values_of(candidate: Candidate) -> dict[str, list[parameters.Value]] | None:
    """What the candidate's `PARAMETERS` allow; None without such. Raises InputError with file and line."""
    try:
        return parameters.declared(parsed(candidate.source))
    except SourceFault as error:
        raise InputError(error.message, candidate.path.name, error.line) from None


def _with_values(candidate: Candidate, tuned: bool) -> Candidate:
    if candidate.fault is not None or parameters.NAME not in candidate.source:
        return candidate
    beside = candidate.path.with_suffix(".yaml")
    try:
        allowed = values_of(candidate)
        if allowed is None:
            return candidate
        if not tuned or not beside.is_file():
            return replace(candidate, parameters=parameters.parameters_text(parameters.defaults(allowed)))
        if "__file__" in candidate.source:
            raise InputError("reads what lies beside it, so that a copy with its tuned values would miss it",
                             candidate.path.name, hint=f"Remove {beside.name}, or put everything into the one file")
        return candidate.with_parameters(parameters.tuned_in(beside, allowed))
    except InputError as error:
        return replace(candidate, fault=str(error), fault_code=ReasonCode.IMPORT_ERROR)


def find_candidates(
    folders: Path | str | Sequence[Path], only: Sequence[str] = (), skip: Sequence[str] = (),
    form: CandidateForm | None = None,
) -> list[Candidate]:
    """The candidates in `folders`, sorted by name, in the `form` of their problem; files that begin with "_" or "." are
    left alone. Of two files of one name that in the earlier folder counts. `only` and `skip` are globs for the name,
    with or without ".py". Raises InputError when there is no such folder or a glob matches no candidate, and
    NothingToRun when no candidate is there or left.
    """
    folders = [Path(folders)] if isinstance(folders, (str, Path)) else folders
    by_name: dict[str, Path] = {}
    for folder in folders:
        for file in _files_of(folder, form):
            by_name.setdefault(file.stem, file)
    names = sorted(by_name)
    files = [by_name[name] for name in names]
    where = " and ".join(shown(folder) for folder in folders)
    if not files:
        wanted = form.wanted if form is not None else "Put a .py file with class ModelNew(nn.Module) there"
        raise NothingToRun(f"{where}: holds no candidate. {wanted}.")
    wanted = _matching(only, names, "--only", where) if only else set(names)
    wanted -= _matching(skip, names, "--skip", where)
    chosen = [file for file in files if file.stem in wanted]
    if not chosen:
        taken = "what --only chose. Leave one of the two out." if only else "all of them. Skip fewer."
        raise NothingToRun(f"no candidate is left of {listed(names)}: --skip takes away {taken}")
    among = None if len(folders) == 1 else [file for file in files if fault_of_name(file.stem) is None]
    return [read_candidate(file, form=form, among=among) for file in chosen]


def file_named(word: str, folders: Sequence[Path]) -> Path:
    """Return the candidate's file at the path `word`, or of that name in the first of `folders`. Raises InputError."""
    path = Path(word)
    if path.suffix in (".py", ".json") and path.is_file():
        return path
    files = {file.stem: file for folder in reversed(folders) for file in sorted(folder.glob("[!_.]*.py"))}
    name = word.removesuffix(".py")
    if name not in files:
        where = " and ".join(map(shown, folders)) or "candidates/"
        raise InputError(f"there is no candidate '{name}' in {where}", hint=hint_for(name, sorted(files), "There are"))
    return files[name]


def candidate_files(directory: Path, form: CandidateForm | None = None) -> list[Path]:
    """Return the files of a folder that are candidates, sorted by name; none where there is no such folder."""
    return sorted(_files_of(directory, form), key=lambda path: path.stem) if directory.is_dir() else []


def _files_of(directory: Path, form: CandidateForm | None) -> list[Path]:
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        raise _no_such_folder(directory) from None
    except NotADirectoryError:
        hint = f"Type --candidates {directory.parent} --only {directory.stem}"
        raise InputError("is a file, not a folder of candidates", directory, hint=hint) from None
    except PermissionError:
        raise InputError("permission denied", directory, hint=f"Type chmod u+rx {directory}") from None
    suffix = ".py" if form is None else form.suffix
    files = [directory / name for name in names if name.endswith(suffix) and name[0] not in "_."]
    # A pipe would keep its reader for ever, and a device has no end; a link that leads nowhere is told of.
    return [file for file in files if (file.is_file() or not file.exists()) and (form is None or form.holds(file))]


def _no_such_folder(directory: Path) -> InputError:
    """Names the nearest folder beside the missing one, or how to make it."""
    parent = directory.parent
    try:
        beside = sorted(each.name for each in parent.iterdir() if each.is_dir() and each.name[0] not in "_.")
    except OSError:
        beside = []
    guess = nearest(directory.name, beside)
    holding = [name for name in beside if next((parent / name).glob("*.py"), None)]
    hint = f"Did you mean {shown(parent / guess)}?" if guess else \
        f"Type {PROGRAM} new {directory.name} my_first" if parent.resolve() == own("candidates").resolve() else \
        f"There are {listed([shown(parent / name) for name in holding])}." if len(holding) > 1 else \
        f"Make it with: mkdir -p {shown(directory)}"
    return InputError("there is no such folder of candidates", shown(directory), hint=hint)


def _matching(globs: Sequence[str], names: Sequence[str], flag: str, where: str) -> set[str]:
    """The names that any of `globs` matches. Raises InputError for a glob that matches none."""
    matched: set[str] = set()
    for glob in globs:
        pattern = glob.removesuffix(".py")
        matches = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
        if not matches:
            guess = nearest(pattern, names) or _nearest_beginning(pattern, names)
            there = f"There {'is' if len(names) == 1 else 'are'} {listed(names)}."
            hint = f"Did you mean '{guess}'?" if guess else there
            raise InputError(f"{flag} '{glob}' matches no candidate in {where}", hint=hint)
        matched.update(matches)
    return matched


def _nearest_beginning(pattern: str, names: Sequence[str]) -> str | None:
    """A pattern like "tield*" mended: "tiled*"; None where it is of another form or nothing is near."""
    start = pattern[:-1]
    if not pattern.endswith("*") or not start or any(each in start for each in "*?["):
        return None
    near = nearest(start, [name[: len(start)] for name in names])
    return f"{near}*" if near else None


def _without_model_new(names: ModuleNames, source: str, file_name: str) -> str | None:
    """None when the module has `ModelNew`, else the sentence that says what it has instead."""
    if names.defines("ModelNew"):
        return None
    runs = "the harness runs the class named ModelNew"
    if not source.strip():
        return f"{file_name}: the file is empty; {runs}"
    class_name = nearest("ModelNew", names.classes) or next(iter(names.classes), None)
    if class_name is None:
        return f"{file_name}: found no class; {runs}"
    return f"{file_name}:{names.classes[class_name]}: found class {class_name}; {runs}"


def _quoted_line(source: str, line: int) -> str:
    """The line that a fault is about, for the end of its sentence."""
    lines = source.split("\n")
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    return f": {text[:60]}" if text and text.isprintable() else ""


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


# What a candidate is written in: a hint for the builder and for the column "built by", not evidence. Whose kernels
# really ran is found out by `attribution` from a profiled launch.


def language_of(tree: ast.Module) -> str:
    """"cuda", "triton", "cpp" or "torch"; a file that mixes them is called by the first that applies."""
    nodes = list(ast.walk(tree))  # once: `list` reads every candidate of every problem
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    imported = _imported_modules(froms, [node for node in nodes if isinstance(node, ast.Import)])
    builds, loads = (_named(calls, _names_of(froms, function)) for function in ("load_inline", "load"))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    runtime = _named(calls, {"_compile_kernel", "RawKernel", "RawModule"})
    keywords = {node.arg for node in nodes if isinstance(node, ast.keyword)}
    if runtime or _any_below(imported, _CUDA_MODULES) or _gives_cuda_sources(builds, keywords, texts):
        return "cuda"
    if loads and any(text.endswith(_CUDA_FILES) for text in texts):
        return "cuda"
    if _any_below(imported, ("triton",)):
        return "triton"
    if builds or (loads and any(text.endswith(_CPP_FILES) for text in texts)):
        return "cpp"
    return "torch"


def _imported_modules(froms: list[ast.ImportFrom], plain: list[ast.Import]) -> set[str]:
    modules = {alias.name for node in plain for alias in node.names}
    for node in froms:
        if node.module and not node.level:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return modules


def _any_below(imported: set[str], modules: tuple[str, ...]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for name in imported for module in modules)


def _names_of(froms: list[ast.ImportFrom], function: str) -> set[str]:
    """The names under which the file may call `function`: its own, and those of ``import … as``."""
    aliases = [alias for node in froms for alias in node.names if alias.name == function and alias.asname]
    return {function, *(alias.asname for alias in aliases)}


def _named(calls: list[ast.Call], names: set[str]) -> list[ast.Call]:
    return [call for call in calls if called_name(call) in names]


def _gives_cuda_sources(builds: list[ast.Call], keywords: set[str | None], texts: list[str]) -> bool:
    """Whether any load_inline gets CUDA, also by ``**options`` made elsewhere of the file's `keywords` and `texts`."""
    spoken_of = "cuda_sources" in keywords or "cuda_sources" in texts
    for call in builds:
        given = [keyword.value for keyword in call.keywords if keyword.arg == "cuda_sources"]
        given += call.args[_CUDA_SOURCES_POSITION : _CUDA_SOURCES_POSITION + 1]
        is_open = spoken_of and any(keyword.arg is None for keyword in call.keywords)
        if is_open or not all(map(_is_nothing, given)):
            return True
    return False


def _is_nothing(value: ast.expr) -> bool:
    """None, an empty text or an empty list, which load_inline takes for "no CUDA"."""
    if isinstance(value, ast.Constant):
        return not value.value
    return isinstance(value, (ast.List, ast.Tuple)) and all(_is_nothing(item) for item in value.elts)
