"""The parts of the machine that can be looked at without torch: compilers, the sandbox, the cache, the disk.

Each function looks at one thing and returns its finding; none raises.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.attribution.device_code import find_cuobjdump
from harness.build.cache import ENVIRONMENT_VARIABLE, default_root
from harness.build.toolchain import NVCC_HINT, Toolchain
from harness.device import core_watch
from harness.model.paths import TRITON_HINT
from harness.sandbox.sandbox_choice import NO_SANDBOX, NO_SANDBOX_HINT, strongest_sandbox
from harness.tools.counters import ncu as counters
from harness.tools.sanitizer.compute_sanitizer import HINT, find_tool

OK, MISSING, NOTE = "ok", "missing", "note"
_LEAST_FREE_BYTES = 5 << 30
_VERSION_TIMEOUT_S = 30


@dataclass(frozen=True)
class Finding:
    """A line of the doctor's report; a "note" tells what is absent or weaker and not needed, `hint` how to get it."""

    name: str
    state: str
    text: str
    hint: str | None = None

    def to_json(self) -> dict[str, str | None]:
        return asdict(self)


def python_finding() -> Finding:
    text = f"{platform.python_version()} at {sys.executable}, on {platform.system()} {platform.machine()}"
    if sys.platform != "linux":
        return Finding("Python", MISSING, text, "the judge needs Linux: it shares memory by sealed anonymous files")
    if not Path(sysconfig.get_paths()["include"], "Python.h").is_file():
        hint = "extensions and Triton compile against it: apt install python3-dev"
        return Finding("Python", MISSING, f"{text}, without Python.h", hint)
    return Finding("Python", OK, text)


def bytecode_finding() -> Finding | None:
    """A note with the command that compiles PyTorch's bytecode where it is missing; None where it is there. A module
    that only candidates' processes import stands for the rest: the sandbox keeps those from writing any.
    """
    folder = _torch_folder()
    source = None if folder is None else Path(folder, "_inductor", "compile_fx.py")
    if source is None or not source.is_file() or Path(importlib.util.cache_from_source(source)).is_file():
        return None
    text = "PyTorch's is missing: each run reads some thousand source files anew, which takes seconds"
    return Finding("bytecode", NOTE, text, f"{shlex.quote(sys.executable)} -m compileall -q {shlex.quote(folder)}")


def advice_on_bytecode() -> str | None:
    """What to type before the next run, in one line; None where there is nothing to gain, or no right to write there."""
    advice = bytecode_finding()
    if advice is None or not os.access(_torch_folder(), os.W_OK):
        return None
    return f"each run begins seconds later than it could, as PyTorch has no compiled bytecode here; once: {advice.hint}"


def _torch_folder() -> str | None:
    spec = importlib.util.find_spec("torch")
    return None if spec is None or not spec.submodule_search_locations else spec.submodule_search_locations[0]


def nvcc_finding(toolchain: Toolchain, *, on_gpu: bool) -> Finding:
    if toolchain.nvcc_path is None:
        hint = "CUDA candidates are skipped; install the CUDA toolkit of torch's own CUDA version" if on_gpu else \
            f"CUDA candidates cannot be compiled to see whether they would; {NVCC_HINT}"
        return Finding("nvcc", MISSING, "not found (CUDA_HOME, PATH, /usr/local/cuda, the wheels)", hint)
    text = f"{toolchain.nvcc_version or 'of unknown version'} at {toolchain.nvcc_path}"
    if on_gpu and toolchain.torch_cuda and toolchain.nvcc_version:
        if toolchain.nvcc_version.split(".")[0] != toolchain.torch_cuda.split(".")[0]:
            hint = f"torch refuses to build with it: install the CUDA {toolchain.torch_cuda} toolkit, or set CUDA_HOME"
            return Finding("nvcc", MISSING, f"{text}, but torch is built for CUDA {toolchain.torch_cuda}", hint)
    return Finding("nvcc", OK, text if on_gpu else f"{text} (without a GPU it compiles only, for {toolchain.sm})")


def cxx_finding(toolchain: Toolchain) -> Finding:
    if toolchain.cxx_path is None:
        return Finding("C++ compiler", MISSING, "neither c++ nor g++ is on the PATH", "apt install g++, or set CXX")
    return Finding("C++ compiler", OK, f"{toolchain.cxx_text} at {toolchain.cxx_path}")


def ninja_finding() -> Finding:
    # The builder looks beside its Python too, where the wheel puts it.
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    program = shutil.which("ninja", path=places)
    version = None if program is None else next(iter(_printed_by([program, "--version"])), None)
    if version is None:
        return Finding("ninja", MISSING, "not found; load_inline builds with it", "pip install ninja")
    return Finding("ninja", OK, f"{version} at {program}")


def triton_finding(*, on_gpu: bool) -> Finding:
    if importlib.util.find_spec("triton") is None:
        text = "not installed; Triton candidates are skipped"
        return Finding("Triton", MISSING if on_gpu else NOTE, text, TRITON_HINT)
    from importlib.metadata import PackageNotFoundError, version

    try:
        text = version("triton")
    except PackageNotFoundError:
        text = "of unknown version"
    return Finding("Triton", OK, text if on_gpu else f"{text}; without a GPU its interpreter checks candidates at small sizes")


def cuobjdump_finding(*, on_gpu: bool) -> Finding | None:
    """Only of interest with a GPU: it reads which kernels an extension holds."""
    if not on_gpu:
        return None
    program = find_cuobjdump()
    if program is None:
        text = "not found; whose kernel ran is then told from the strings of the extension, which proves less"
        return Finding("cuobjdump", NOTE, text, "it comes with the CUDA toolkit, or: pip install nvidia-cuda-cuobjdump")
    return Finding("cuobjdump", OK, program)


def sanitizer_finding(*, on_gpu: bool) -> Finding | None:
    """Only of interest with a GPU, and for --sanitize alone."""
    return _tool_finding("compute-sanitizer", find_tool(), HINT, "run --sanitize") if on_gpu else None


def profiler_finding(*, on_gpu: bool) -> Finding | None:
    """Whether there is an ncu for `profile`; None where there is no GPU to read."""
    return _tool_finding("ncu", counters.find_tool(), counters.HINT, "`profile`") if on_gpu else None


def _tool_finding(name: str, program: str | None, hint: str, use: str) -> Finding:
    if program is None:
        return Finding(name, NOTE, f"not found; {use} cannot be had without it", hint)
    versions = [line.removeprefix("Version") for line in _printed_by([program, "--version"]) if line.startswith("Version")]
    version = versions[0].strip() if versions else ""
    return Finding(name, OK, f"{version or 'of unknown version'} at {program}, for {use}")


def core_watch_finding(*, on_gpu: bool) -> Finding | None:
    """Whether the judge can look at what a worker's cores run; None with a GPU, whose kernels are recorded."""
    if on_gpu:
        return None
    watch = core_watch.CoreWatch([os.getpid()])
    watch.close()
    if watch.fault is None:
        return Finding("perf events", OK, "the judge can look at whose code a worker's cores run")
    return Finding("perf events", NOTE, "whose code a worker's cores run is its own word alone", core_watch.HINT)


def sandbox_finding() -> Finding:
    sandbox = strongest_sandbox()
    if sandbox.name == NO_SANDBOX.name:
        return Finding("sandbox", NOTE, f"{sandbox.text}; candidates can read and write what you can", NO_SANDBOX_HINT)
    hint = "a candidate's memory is held only where this user may write a cgroup (version 2)"
    return Finding("sandbox", OK, sandbox.text) if sandbox.cgroup else Finding("sandbox", NOTE, sandbox.text, hint)


def cache_finding() -> Finding:
    root = default_root().expanduser()
    hint = f"{ENVIRONMENT_VARIABLE}=/some/writable/folder puts it elsewhere"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            pass
    except OSError as error:
        return Finding("cache", MISSING, f"{root} cannot be written: {error.strerror or error}", hint)
    return Finding("cache", OK, f"{root}, {bytes_text(_bytes_below(root))}, writable")


def disk_finding() -> Finding:
    root = default_root().expanduser()
    free = {}
    for place in (root, Path(tempfile.gettempdir())):
        existing = next((folder for folder in (place, *place.parents) if folder.exists()), Path("/"))
        free[place] = shutil.disk_usage(existing).free
    text = ", ".join(f"{bytes_text(size)} free for {place}" for place, size in free.items())
    if min(free.values()) < _LEAST_FREE_BYTES:
        hint = f"builds want about {bytes_text(_LEAST_FREE_BYTES)}; free some, or set {ENVIRONMENT_VARIABLE} and TMPDIR"
        return Finding("disk", NOTE, text, hint)
    return Finding("disk", OK, text)


def bytes_text(size_bytes: int) -> str:
    """`12.3 GB`, `4.0 MB`, `0 MB`, in powers of ten."""
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 1e9 else f"{size_bytes / 1e6:.0f} MB"


def _bytes_below(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # deleted by a run that goes on meanwhile
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def _printed_by(command: list[str]) -> list[str]:
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return ran.stdout.strip().splitlines() if ran.returncode == 0 else []
