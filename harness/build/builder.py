"""``python -m harness.build.builder FD``: import one candidate so that its extensions get built, and say what
came.

Runs untrusted code: behind the wall, without a GPU, one fresh process per candidate. It answers with one
frame: the extensions, the compilers' output, and the failure, if any, without a frame of ours in its
traceback. One may come before it, which says that something is built again with PyTorch's own headers.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.build.missing_extension import NoCompiler, NotCompiled, OnlyCompiled
from harness.build.opened_files import OpenedFiles
from harness.build.slim import BEGINS_AGAIN
from harness.reading.reference_source import with_sizes
from harness.wire.frames import Channel

if TYPE_CHECKING:
    from harness.build.recording import Recorder

_LOG_CHARACTERS = 1_000_000
_OURS = str(Path(__file__).resolve().parents[1])
_NEEDS_GPU = (
    "No CUDA GPUs are available", "Found no NVIDIA driver", "no CUDA-capable device", "0 active drivers",
    "Torch not compiled with CUDA enabled", "no NVIDIA", "CUDA driver initialization failed",
    "Invalid device id", "CUDA is not available", "Cannot access accelerator device",
    "CUDA unknown error", "cuda available",
)


def main() -> None:
    if hasattr(os, "nice"):
        os.nice(19)  # a compiler has time; the referee's clock beside it has not
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    request = channel.receive()
    once = threading.Lock()

    def begin_again() -> None:
        if once.acquire(blocking=False):  # a candidate may build in threads
            channel.send(BEGINS_AGAIN)

    answer = build(request, begin_again)
    channel.send(answer)
    os._exit(0)


def build(request: dict[str, Any], begin_again: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Carry out `request` (candidate, folder, nvcc, sms, without_gpu, slim_headers, reference, sizes: a mapping for each
    at which it will be constructed). Returns the answer's frame. `begin_again` is called as something is built again with
    PyTorch's own headers.
    """
    from harness.build.recording import Recorder

    recorder = Recorder(
        Path(request["folder"]), Path(request["candidate"]).parent, nvcc=request["nvcc"], sms=request["sms"],
        without_gpu=request["without_gpu"], slim_headers=request["slim_headers"], begin_again=begin_again,
    )
    recorder.install()
    not_its_own = Path(request["folder"]).parent, Path(_OURS), Path(request.get("reference") or _OURS)
    opened = OpenedFiles(Path(request["candidate"]), not_its_own)
    failure, warnings = None, []
    try:
        module = _import(Path(request["candidate"]))
        failure = _without_model(module)
        if failure is None:
            _construct(module, request, recorder)
    except NoCompiler as error:
        failure = {"kind": "no_nvcc", "message": str(error)}
    except NotCompiled as error:
        failure = {
            "kind": "compile_error", "message": str(error), "log": error.log[-_LOG_CHARACTERS:],
            "slim_log": error.slim_log[-_LOG_CHARACTERS:], "headers": error.headers,
        }
    except OnlyCompiled as error:
        warnings.append(str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        failure, warning = _describe(error, request)
        warnings += warning
    if failure is None and recorder.failures:
        warnings.append("an extension failed to build, and the candidate went on without it")
    return {
        "extensions": recorder.extensions, "log": recorder.log[-_LOG_CHARACTERS:], "failure": failure,
        "warnings": warnings, "files": sorted(recorder.files.union(opened.names())),
        "names_folder": recorder.names_folder, "built_in_init": recorder.built_in_init,
    }


def _import(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"candidate_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _without_model(module: Any) -> dict[str, Any] | None:
    import torch

    found = getattr(module, "ModelNew", None)
    if isinstance(found, type) and issubclass(found, torch.nn.Module):
        return None
    missing = "there is no ModelNew in it"
    what = missing if found is None else "ModelNew is no class that derives from nn.Module"
    return {"kind": "no_model_new", "message": f"{what}; write class ModelNew(nn.Module)"}


def _construct(module: Any, request: dict[str, Any], recorder: Recorder) -> None:
    """Make one ModelNew, for candidates that build in `__init__`, and then one at each further size; what it raises for
    want of a GPU is no fault.
    """
    if not request.get("reference"):
        return
    from harness.wire.call_form import called

    recorder.is_in_init = True
    for sizes in request["sizes"]:
        try:
            called(module.ModelNew, *_init_arguments(Path(request["reference"]), sizes))
        except (NotCompiled, NoCompiler, OnlyCompiled):
            raise
        except Exception:
            pass  # The player constructs it again where it will run, and that one counts.
        if not recorder.built_in_init:
            return


def _init_arguments(path: Path, sizes: Mapping[str, int]) -> tuple[list[Any], bool]:
    """What `get_init_inputs` of the reference at `path` returns at these sizes, and whether that is by name."""
    from harness.wire.call_form import arguments_of

    tree = with_sizes(path.read_text(encoding="utf-8"), sizes, path)
    names: dict[str, Any] = {"__name__": "reference", "__file__": str(path)}
    exec(compile(tree, str(path), "exec"), names)
    return arguments_of(names["Model"], names.get("get_init_inputs", list)())


def _describe(error: BaseException, request: dict[str, Any]) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the failure that `error` is, or None and a warning when it is only for want of a GPU."""
    text = str(error)
    if not isinstance(error, SyntaxError) and any(sign in text for sign in _NEEDS_GPU):
        first_line = text.splitlines()[0][:200]
        return None, [f"needs a GPU while it is imported ({type(error).__name__}: {first_line})"]
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_OURS) and "<frozen importlib" not in frame.filename
    ]
    kind = "syntax_error" if isinstance(error, SyntaxError) else "import_error"
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == "triton":
        kind = "no_triton"
    own = [frame for frame in frames if frame.filename == str(request["candidate"])] or frames
    line = error.lineno if isinstance(error, SyntaxError) else own[-1].lineno if own else None
    shown = traceback.format_list(frames) + traceback.format_exception_only(type(error), error)
    return {
        "kind": kind, "line": line, "message": f"{type(error).__name__}: {text}"[:2000],
        "traceback": "".join(shown)[-8000:],
    }, []


if __name__ == "__main__":
    main()
