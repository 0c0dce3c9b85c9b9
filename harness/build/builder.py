"""``python -m harness.build.builder FD``: import one candidate so that its extensions get built, and say what came; or
compile one call of another builder's, and run nothing of the candidate's.

Each is a fresh process behind the sandbox, without a GPU. While it works, a builder says what it is doing
(`builder_progress`); one that imports a candidate also sends the calls that are to be compiled. At last comes one
frame: the extensions, the compilers' output, and the failure, if any, with the candidate's line.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.build.builder_progress import Speaker
from harness.build.missing_extension import WENT_ON, NoCompiler, NotCompiled, OnlyCompiled
from harness.build.opened_files import OpenedFiles
from harness.model.files.reference_source import with_sizes
from harness.protocol.frames import Channel
from harness.protocol.gpu_wanted import wants_gpu
from harness.protocol.source_import import import_source
from harness.sandbox.mounts import SCRATCH

if TYPE_CHECKING:
    from harness.build.extension_maker import ExtensionMaker

Ask = Callable[[dict[str, Any]], Mapping[str, Any]]

_LOG_CHARACTERS = 1_000_000
_NICE, _TRIES = 19, 10
_OURS = str(Path(__file__).resolve().parents[1])


@dataclass(frozen=True)
class _Attempt:
    """How an import went: the `failure` that is the candidate's, or what it `wanted` a GPU for, in words."""

    failure: dict[str, Any] | None = None
    wanted: str | None = None
    note: str | None = None


def main() -> None:
    if hasattr(os, "nice"):
        os.nice(_NICE)  # a compiler has time; the judge's clock beside it has not
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    request = channel.receive()
    if request["gently"]:
        _give_way_to_other_sessions()
    speaker = Speaker(channel.send)
    speaker.answer(compiled(request, speaker) if request.get("compile") else build(request, speaker, asking(channel, speaker)))
    os._exit(0)


def asking(channel: Channel, speaker: Speaker) -> Ask:
    """What has the `speaker` ask for one call to be compiled, and returns the answer; one thread at a time."""
    lock = threading.Lock()

    def ask(call: dict[str, Any]) -> Mapping[str, Any]:
        with lock:
            speaker.ask(call)
            return channel.receive()

    return ask


def _give_way_to_other_sessions() -> None:
    """Leave the cores to another run's clock: Linux shares them out between sessions first, and this child has its own.

    A call of 22 ms took 41 beside another session's process, at nice 19 as at 0, and 22 where that was at 19 too.
    Where nobody times, a session so low would starve on a busy machine.
    """
    for _ in range(_TRIES):
        try:
            Path("/proc/self/autogroup").write_text(str(_NICE), encoding="ascii")
            return
        except BlockingIOError:  # it may be changed ten times a second on the whole machine
            time.sleep(0.1)
        except OSError:  # sessions count for nothing here
            return


def compiled(request: dict[str, Any], speaker: Speaker) -> dict[str, Any]:
    """Make the one call of `request`, and load nothing of it: this process runs none of the candidate's code."""
    from harness.build import extension_maker

    call = request["compile"]
    extension_maker.load_nothing()
    extension_maker.take_state(call["state"])
    maker = _maker(request, speaker)
    maker.install()
    went = _went(lambda: _make([call], maker), request)
    return {
        "extensions": maker.extensions, "log": maker.log[-_LOG_CHARACTERS:], "failure": went.failure,
        "failed": sorted(maker.failed), "files": sorted(maker.files),
    }


def _maker(request: dict[str, Any], speaker: Speaker, ask: Ask | None = None) -> ExtensionMaker:
    from harness.build.asking_maker import AskingMaker
    from harness.build.extension_maker import ExtensionMaker

    kind = ExtensionMaker if ask is None else partial(AskingMaker, ask=ask)
    return kind(
        Path(request["folder"]), Path(request["candidate"]).parent, nvcc=request["nvcc"], sms=request["sms"],
        without_gpu=request["without_gpu"], slim_headers=request["slim_headers"], speaker=speaker,
        unsettled=Path(request["unsettled"]) if request["unsettled"] else None,
    )


def build(request: dict[str, Any], speaker: Speaker, ask: Ask) -> dict[str, Any]:
    """Carry out `request`, and return the answer's frame, with what was compiled here.

    It has candidate, folder, unsettled, nvcc, sms, without_gpu, slim_headers, own_scratch, reference, sizes: a mapping for each
    at which it will be constructed, device: the properties of the GPU that it may ask for, or None; interpreted: whether
    Triton's interpreter is to run it; calls: what is to be built in place of what its import builds, or None.
    """
    from harness.protocol.stand_in_gpu import interpret_triton

    maker = _maker(request, speaker, ask)
    maker.install()
    if request["interpreted"]:
        interpret_triton(request["device"])
    private, calls = Path(request["folder"]).parent, request["calls"]
    not_its_own = private, Path(_OURS), Path(request.get("reference") or _OURS)
    opened = OpenedFiles(Path(request["candidate"]), not_its_own)
    went = _went(lambda: _make(calls, maker), request) if calls else _imported(request, maker, speaker)
    went_on = WENT_ON if went.failure is None and maker.failures else None
    warnings = [note for note in (went.note, went.wanted, went_on) if note]
    files = maker.files.union(opened.names())
    return {
        "extensions": maker.extensions, "log": maker.log[-_LOG_CHARACTERS:], "failure": went.failure,
        "warnings": warnings, "wanted_gpu": went.wanted is not None, "failed": sorted(maker.failed),
        "files": sorted(files - _of_this_process(files, private, own_scratch=request["own_scratch"])),
        "names_folder": maker.names_folder, "built_in_init": maker.built_in_init,
    }


def _imported(request: dict[str, Any], maker: ExtensionMaker, speaker: Speaker) -> _Attempt:
    """Import the candidate and construct it, its questions about the device answered as for the one of this run.

    Where that ends it, once more with the other answers: for a run on a GPU those of this machine, which has none, and
    for one without a GPU those of one that it is compiled for. That counts where it ends better. An interpreted one
    always hears of a GPU.
    """
    from harness.protocol.stand_in_gpu import answer_for

    first, other = (None, request["device"]) if request["without_gpu"] else (request["device"], None)
    if request["interpreted"]:
        first = other = request["device"]
    answer_for(first)
    speaker.imports()
    attempt = _went(lambda: _import_and_construct(request, maker), request)
    may_go_otherwise = attempt.wanted or (attempt.failure is not None and attempt.failure["kind"] == "import_error")
    if first == other or maker.extensions or not may_go_otherwise:
        return attempt
    answer_for(other)
    speaker.imports()
    again = _went(lambda: _import_and_construct(request, maker), request)
    if again.failure is not None and again.failure["kind"] == "import_error":
        return attempt
    if request["without_gpu"] and again.failure is None and not maker.extensions:
        # It goes where a GPU is, and this is not where.
        return replace(again, wanted=attempt.wanted or f"needs a GPU while it is imported ({attempt.failure['message']})")
    return again


def _went(do: Callable[[], dict[str, Any] | None], request: dict[str, Any]) -> _Attempt:
    """What came of `do`, which returns a failure or raises."""
    try:
        return _Attempt(do())
    except NoCompiler as error:
        return _Attempt({"kind": "no_nvcc", "message": str(error)})
    except NotCompiled as error:
        return _Attempt({
            "kind": "compile_error", "message": str(error), "log": error.log[-_LOG_CHARACTERS:],
            "slim_log": error.slim_log[-_LOG_CHARACTERS:], "headers": error.headers,
        })
    except OnlyCompiled as error:
        return _Attempt(note=str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return _describe(error, request)


def _import_and_construct(request: dict[str, Any], maker: ExtensionMaker) -> dict[str, Any] | None:
    import torch

    module = import_source(Path(request["candidate"]))
    model_new = getattr(module, "ModelNew", None)
    if isinstance(model_new, type) and issubclass(model_new, torch.nn.Module):
        _construct(module, request, maker)
        return None
    what = "there is no ModelNew in it" if model_new is None else "ModelNew is no class that derives from nn.Module"
    return {"kind": "no_model_new", "message": f"{what}; write class ModelNew(nn.Module)"}


def _make(calls: Sequence[Mapping[str, Any]], maker: ExtensionMaker) -> None:
    """Build what a worker of the candidate's asked for. Raises what the first that fails raises, once all are tried."""
    failed: Exception | None = None
    for call in calls:
        try:
            maker.make(call["kind"], dict(call["arguments"]), call["texts"])
        except (NotCompiled, NoCompiler) as error:
            failed = failed or error
    if failed is not None:
        raise failed


def _of_this_process(files: Collection[str], private: Path, *, own_scratch: bool) -> set[str]:
    """Those of `files` that are gone with it: in its private folder, and in a /tmp of its own. It has written them."""
    # Where the sandbox could not cover the machine's /tmp, that is read-only.
    has_own = own_scratch and not os.statvfs(SCRATCH).f_flag & os.ST_RDONLY
    private_root = f"{private.resolve()}{os.sep}"
    return {path for path in files if path.startswith(private_root) or (has_own and _is_in_scratch(path))}


def _is_in_scratch(path: str) -> bool:
    """Whether it lies in this process's own /tmp; what of the machine's is seen there lies on another device."""
    if not path.startswith(f"{SCRATCH}{os.sep}"):
        return False
    try:
        return os.stat(path).st_dev == os.stat(SCRATCH).st_dev
    except OSError:
        return True  # removed by the candidate, which could remove nothing else


def _construct(module: Any, request: dict[str, Any], maker: ExtensionMaker) -> None:
    """Make a ModelNew at each size, for those that build in `__init__`; what it raises there is no fault."""
    if not request.get("reference"):
        return
    from harness.protocol import parallel_draws
    from harness.protocol.call_form import called

    maker.is_in_init = True
    for sizes in request["sizes"]:
        try:
            with parallel_draws.entered():
                called(module.ModelNew, *_init_arguments(Path(request["reference"]), sizes))
        except (NotCompiled, NoCompiler, OnlyCompiled):
            raise
        except Exception:
            pass  # The worker constructs it again where it will run, and that one counts.
        if not maker.built_in_init:
            return


def _init_arguments(path: Path, sizes: Mapping[str, int]) -> tuple[list[Any], bool]:
    """What `get_init_inputs` of the reference at `path` returns at these sizes, and whether that is by name."""
    from harness.protocol.call_form import arguments_of

    tree = with_sizes(path.read_text(encoding="utf-8"), sizes, path)
    names: dict[str, Any] = {"__name__": "reference", "__file__": str(path)}
    exec(compile(tree, str(path), "exec"), names)
    return arguments_of(names["Model"], names.get("get_init_inputs", list)())


def _describe(error: BaseException, request: dict[str, Any]) -> _Attempt:
    """What `error` says of the candidate; nothing against it when it is only for want of a GPU."""
    text, raised_in = str(error), traceback.extract_tb(error.__traceback__)[-1:]
    # Without a GPU, PyTorch's own CUDA modules trip over what they did not find, in any words.
    trips = request["without_gpu"] and raised_in and f"{os.sep}torch{os.sep}cuda{os.sep}" in raised_in[0].filename
    if not isinstance(error, SyntaxError) and (wants_gpu(text) or trips):
        first_line = "".join(text.splitlines()[:1])[:200]
        return _Attempt(wanted=f"needs a GPU while it is imported ({type(error).__name__}: {first_line})")
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_OURS) and "<frozen importlib" not in frame.filename
    ]
    kind = "syntax_error" if isinstance(error, SyntaxError) else "import_error"
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == "triton":
        kind = "no_triton"
    own = [frame for frame in frames if frame.filename == str(request["candidate"])] or frames
    line = error.lineno if isinstance(error, SyntaxError) else own[-1].lineno if own else None
    return _Attempt({"kind": kind, "line": line, "message": f"{type(error).__name__}: {text}"[:2000]})


if __name__ == "__main__":
    main()
