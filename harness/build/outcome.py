"""From how a builder ended to a `Build`: its verdict, its extensions, and words that a person can act on.

The builder's answer is untrusted: paths must lie in its own folder, and everything else in it is only text.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.build.answers import FAILURE_CODES, MISSING
from harness.build.compiler_report import KernelReport, kernel_reports, summary
from harness.build.diagnostics import explain, first_warnings, missing_cuda_header, needs_architecture
from harness.build.machine_faults import machine_fault, without_compiler
from harness.build.product import Build, BuiltExtension
from harness.build.toolchain import NVCC_HINT, Toolchain
from harness.model.candidate import Candidate
from harness.model.paths import TRITON_HINT
from harness.model.verdict import ReasonCode, Status, Verdict
from harness.protocol.frames import BadFrame

_LOG_CHARACTERS, _LINE_CHARACTERS = 200_000, 4000
_GENERATED_BYTES, _MOST_GENERATED = 1 << 20, 64
# What a build says it made and read is copied and hashed here, where nobody ends it.
MOST_EXTENSIONS, _MOST_EXTENSION_BYTES = 64, 2 << 30
_MOST_FILES, _MOST_FILE_BYTES = 5000, 512 << 20
_NO_NVCC = Verdict(Status.SKIPPED, ReasonCode.NO_NVCC, f"there is no nvcc here; bring one with: {NVCC_HINT}")
_NO_TRITON = Verdict(Status.SKIPPED, ReasonCode.NO_TRITON, f"Triton is not installed; bring it with: {TRITON_HINT}")
# Below a build's private folder: what the process that runs the candidate's code may write, in it what that compiled
# after all, what processes compiled that run none of it, and the candidate's files where it is none of the user's own.
IMPORTED, BUILT, COMPILED, SOURCE = "imported", "build", "compiled", "source"


@dataclass(frozen=True)
class Compiled:
    """What came of one call where none of the candidate's code ran, and what of it may have started a program."""

    answer: Mapping[str, Any]
    unknown_flags: Sequence[str]


@dataclass(frozen=True)
class Ending:
    """How one builder ended: its `answer` or the `problem` ("timeout", "import timeout", "protocol: …", "died"). `spent_s` is
    the processor time that it and its compilers had until it was stopped at its time limit.
    """

    answer: Mapping[str, Any] | None
    problem: str = ""
    code: int | None = None
    death: str = ""
    out_of_memory: bool = False
    output: str = ""
    import_limit_s: float = 0.0
    compiled: Sequence[Compiled] = ()
    spent_s: float = 0.0


def before_building(candidate: Candidate, toolchain: Toolchain) -> Build | None:
    """Return the build of a candidate that need not be started: a fault in its file, or a tool or device missing."""
    if candidate.fault is not None:
        code = ReasonCode.IMPORT_ERROR if candidate.fault_code is ReasonCode.NONE else candidate.fault_code
        return Build(Verdict(Status.BUILD_FAILED, code, candidate.fault))
    if candidate.language == "triton" and importlib.util.find_spec("triton") is None:
        return Build(_NO_TRITON, built_by="triton")
    if candidate.language == "cuda" and toolchain.nvcc_path is None and "load_inline" in candidate.source:
        return Build(_NO_NVCC)
    compiles = "load_inline" in candidate.source or "cpp_extension" in candidate.source
    if compiles and candidate.language in ("cuda", "cpp"):  # nvcc needs a host compiler too
        missing = without_compiler()
        return None if missing is None else Build(missing)
    return None


def saved_meanwhile(candidate: Candidate) -> Verdict:
    """The verdict on a candidate of which two texts were seen, so that nothing is true of either."""
    reason = f"{candidate.path.name} was saved again, or removed, while it was built or judged: run again"
    return Verdict(Status.SKIPPED, ReasonCode.SAVED_MEANWHILE, reason)


def judge(
    ending: Ending, candidate: Candidate, toolchain: Toolchain, private: Path, seconds: float, timeout_s: float
) -> tuple[Build, list[str]]:
    """Return the build, and the files besides the candidate that it depends on. Answers have been checked as they came."""
    try:
        return _judge(ending, candidate, toolchain, private, seconds, timeout_s)
    except BadFrame as error:
        reason = f"its build answered with a frame that no builder of ours sends ({error})"
        return Build(Verdict(Status.REJECTED, ReasonCode.PROTOCOL, reason), seconds=seconds), []


def _judge(
    ending: Ending, candidate: Candidate, toolchain: Toolchain, private: Path, seconds: float, timeout_s: float
) -> tuple[Build, list[str]]:
    if ending.answer is None:
        verdict = machine_fault(ending.output, [private.parent]) or _without_answer(ending, timeout_s)
        return Build(verdict, seconds=seconds, log=ending.output), []
    answer = _with_compiled(ending.answer, [each.answer for each in ending.compiled])
    log, generated, extensions = _shortened(answer["log"]), _generated(private), answer["extensions"]
    has_cuda, kernels = any(each["cuda"] for each in extensions), kernel_reports(log)
    cuda, verdict, failure = has_cuda or candidate.language == "cuda", None, answer.get("failure")
    warned = answer.get("warnings") or ()
    if failure is not None:
        output = f"{failure['message']}\n{failure.get('log', '')}\n{log}"
        verdict = machine_fault(output, [private.parent]) or _failure(failure, log, candidate, generated)
    elif toolchain.compile_only and has_cuda:
        reason = f"for {_compiled_for(extensions, kernels, toolchain)}; there is no GPU here to run it"
        verdict = Verdict(Status.COMPILED, ReasonCode.NO_GPU, reason)
    elif toolchain.compile_only and answer.get("wanted_gpu") and not extensions:
        wanted = next((str(each) for each in warned), "needs a GPU while it is imported")
        reason = f"it {_shortened(wanted)}, and there is none here; run it where there is one"
        verdict = Verdict(Status.SKIPPED, ReasonCode.NO_GPU, reason)
    compiler_warnings = first_warnings(log, candidate.source, candidate.path, generated)
    build = Build(
        verdict, _extensions(extensions, private) if verdict is None else (), kernels, seconds,
        arch="+".join(toolchain.sms) if cuda else None, headers=_headers(extensions, failure),
        built_by=_built_by(candidate, toolchain, cuda=cuda, compiled=bool(extensions)), log=log,
        warnings=_shortened("\n".join(map(str, warned))), compiler_warnings="\n".join(compiler_warnings),
        is_bound=bool(answer.get("names_folder", True)), is_of_init=bool(answer.get("built_in_init", True)),
        failed=tuple(map(str, answer.get("failed") or ()))[:MOST_EXTENSIONS], unproven=_unproven(ending),
    )
    return build, _files(answer["files"], private)


def _with_compiled(answer: Mapping[str, Any], compiled: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The `answer` of the process that runs the candidate's code, with what was `compiled` for it in its own's place."""
    entries = {each["key"]: each for one in compiled for each in one["extensions"]}  # the last of two tries
    others = [each for each in answer["extensions"] if each["key"] not in entries]
    return {
        **answer, "extensions": [*entries.values(), *others],
        "log": "".join(str(one["log"]) for one in (*compiled, answer)),
        "files": [*answer["files"], *(path for one in compiled for path in one["files"])],
        "failed": [*(answer.get("failed") or ()), *(key for one in compiled for key in (one.get("failed") or ()))],
    }


def _unproven(ending: Ending) -> str:
    """Why nobody knows whether what was built is what its sources say; empty where it is."""
    proven = {each["key"] for one in ending.compiled for each in one.answer["extensions"]}
    if any(each["key"] not in proven for each in ending.answer["extensions"]):
        return "it was compiled by the process that ran the candidate's own code, which may have changed what came"
    flags = [flag for one in ending.compiled for flag in one.unknown_flags]
    if flags:
        return f"what it was compiled with may start a program, which may have changed what came: {flags[0][:100]}"
    told = (str(each.get("unproven") or "") for one in ending.compiled for each in one.answer["extensions"])
    return next(filter(None, told), "")


def _compiled_for(entries: Sequence[Mapping[str, Any]], kernels: Sequence[KernelReport], toolchain: Toolchain) -> str:
    """Each architecture with its figures, then those that it is not for, and why."""
    refused = {str(sm): str(why) for each in entries for sm, why in dict(each.get("refused") or {}).items()}
    passed = [sm for sm in toolchain.sms if sm not in refused]
    parts = [summary([kernel for kernel in kernels if kernel.arch == sm]) or sm for sm in passed]
    return "; ".join([*parts, *(f"not for {sm} ({why})" for sm, why in sorted(refused.items()))])


def _without_answer(ending: Ending, timeout_s: float) -> Verdict:
    if ending.out_of_memory:
        return Verdict(Status.OUT_OF_MEMORY, ReasonCode.HOST_MEMORY, f"its build was {ending.death}")
    if ending.problem == "timeout":
        had = f"not built after {timeout_s:.0f} s, in which it had {ending.spent_s:.0f} s of processor time, and stopped"
        return Verdict(Status.TIMED_OUT, ReasonCode.BUILD_TIMEOUT, had)
    if ending.problem == "import timeout":
        reason = f"its import did not end within {ending.import_limit_s:g} s, compilers not counted, and was stopped"
        return Verdict(Status.TIMED_OUT, ReasonCode.LOAD_TIMEOUT, reason)
    if ending.problem.startswith("protocol"):
        reason = f"its build broke the protocol: {ending.problem[10:]}"
        return Verdict(Status.REJECTED, ReasonCode.PROTOCOL, reason)
    last = next((line.strip() for line in reversed(ending.output.splitlines()) if line.strip()), "")
    reason = f"{ending.death} while it was imported for building" + (f": {last[:200]}" if last else "")
    signalled = ending.code is not None and ending.code < 0
    return Verdict(Status.CRASHED, ReasonCode.SIGNAL if signalled else ReasonCode.EXITED, reason)


def _failure(failure: Mapping[str, Any], log: str, candidate: Candidate, generated: Mapping[str, str]) -> Verdict:
    """Put a builder's failure into words, against the candidate's own lines."""
    kind, message = failure["kind"], _shortened(failure["message"])
    if kind in MISSING:
        return _NO_NVCC if kind == "no_nvcc" else _NO_TRITON
    if kind == "compile_error":
        output = _shortened(failure.get("log", "")) or log
        missing = needs_architecture(output)
        if missing:
            return Verdict(Status.SKIPPED, ReasonCode.NEEDS_ARCH, missing)
        absent = missing_cuda_header(output)
        if absent:
            reason = f"it needs {absent[0]}, which this CUDA toolkit lacks; bring it with: pip install {absent[1]}"
            # Where the stand-in needs no such header, the error may be the candidate's own.
            slim = _shortened(failure.get("slim_log", ""))
            without = "" if missing_cuda_header(slim) else explain(slim, candidate.source, candidate.path, generated)
            reason += f"\nwithout that header: {without}" if without else ""
            return Verdict(Status.SKIPPED, ReasonCode.NO_NVCC, reason)
        explanation = explain(f"{output}\n{message}", candidate.source, candidate.path, generated)
        first_line = message.strip().splitlines()[0] if message.strip() else kind
        reason = explanation or f"{candidate.path.name}: {first_line}"
        return Verdict(Status.BUILD_FAILED, ReasonCode.COMPILE_ERROR, reason)
    place = f"{candidate.path.name}:{failure['line']}" if failure.get("line") else candidate.path.name
    return Verdict(Status.BUILD_FAILED, FAILURE_CODES[kind], f"{place}: {message}")


def _shortened(text: Any) -> str:
    """The end of a log, no line of it so long that a search through it takes long."""
    return "\n".join(line[:_LINE_CHARACTERS] for line in str(text)[-_LOG_CHARACTERS:].split("\n"))


def _extensions(entries: Sequence[Mapping[str, Any]], private: Path) -> tuple[BuiltExtension, ...]:
    """What was built. Raises BadFrame for more than any candidate builds."""
    if len(entries) > MOST_EXTENSIONS:
        raise BadFrame(f"{len(entries)} extensions, where {MOST_EXTENSIONS} are the most")
    extensions = tuple(_extension(each, private) for each in entries)
    size_bytes = sum(each.path.stat().st_size for each in extensions)
    if size_bytes > _MOST_EXTENSION_BYTES:
        most_gb = _MOST_EXTENSION_BYTES / 1e9
        raise BadFrame(f"extensions of {size_bytes / 1e9:.1f} GB, where {most_gb:.1f} are the most")
    return extensions


def _files(named: Sequence[Any], private: Path) -> list[str]:
    """The files that a build depends on, but for the candidate and what is its own. Raises BadFrame for too many."""
    paths = sorted({str(path) for path in named})
    if len(paths) > _MOST_FILES:
        raise BadFrame(f"it names {len(paths)} files that it read, where {_MOST_FILES} are the most")
    files = [path for path in paths if Path(path).is_file()]
    size_bytes = sum(Path(path).stat().st_size for path in files)
    if size_bytes > _MOST_FILE_BYTES:
        most_gb = _MOST_FILE_BYTES / 1e9
        raise BadFrame(f"it names files of {size_bytes / 1e9:.1f} GB that it read, where {most_gb:.1f} are the most")
    return [path for path in files if not path.startswith(f"{private.resolve()}{os.sep}")]


def _extension(entry: Mapping[str, Any], private: Path) -> BuiltExtension:
    """Take one extension from the answer. Raises BadFrame for a path that is no file of the builder's own."""
    path = Path(str(entry["path"]))
    if path.is_symlink() or not path.is_file() or not path.resolve().is_relative_to(private.resolve()):
        raise BadFrame(f"{path.name} is no file in the build's own folder")
    key, name = str(entry["key"]), str(entry["module_name"])
    if not key.isalnum() or not name.isidentifier():
        raise BadFrame(f"{name!r} is no name of a module")
    return BuiltExtension(key, name, path, "", bool(entry["is_python_module"]))


def _generated(private: Path) -> dict[str, str]:
    """Read the files that the compilers were fed, for finding the way from their lines to the candidate's."""
    folders = private / IMPORTED / BUILT, *(private / COMPILED).glob(f"*/{BUILT}")
    paths = sorted(path for folder in folders for name in ("main.cpp", "cuda.cu") for path in folder.glob(f"*/{name}"))
    return {
        str(path): path.read_text(encoding="utf-8", errors="replace") for path in paths[:_MOST_GENERATED]
        if not path.is_symlink() and path.is_file() and path.stat().st_size <= _GENERATED_BYTES
    }


def _built_by(candidate: Candidate, toolchain: Toolchain, *, cuda: bool, compiled: bool) -> str:
    if cuda:
        return toolchain.nvcc_text
    if candidate.language == "triton":
        return "triton"
    return toolchain.cxx_text if compiled else "python"


def _headers(extensions: Sequence[Mapping[str, Any]], failure: Mapping[str, Any] | None) -> str | None:
    """Whose headers all of it was built with, or last tried with; None where nothing was compiled."""
    used = {str(each["headers"]) for each in extensions}
    used |= {str(failure["headers"])} if failure and failure.get("headers") else set()
    return ("slim" if used == {"slim"} else "stock") if used else None
