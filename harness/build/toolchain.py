"""Which compilers, torch and Python stand behind a build, and the GPU architecture it is for: found without importing
torch. Every field of `Toolchain` is part of the cache's key.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from harness.model.errors import InputError

COMPILE_ONLY_ARCH = "9.0a"
NVCC_HINT = "pip install nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-cccl"
_READ_BY_COMPILERS = (
    "CC", "CXX", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "CUDNN_HOME",
)
# Those that name a compiler, which may be another one tomorrow under the same name. $CXX has a field of its own.
_NAME_A_COMPILER = ("CC", "NVCC_CCBIN")
_WITH_SUFFIX = frozenset({9, 10, 11, 12})


@dataclass(frozen=True)
class Toolchain:
    """`arch` is like "9.0a"; with `compile_only` there is no GPU and CUDA sources are only compiled, never loaded.

    `torch_cuda` is the CUDA version of the torch build or None; a compiler that is missing has None for its path and
    version. `host` names the processor, for which `-march=native` builds; `environment` are the variables that the
    compilers read, and the versions of those that they name.
    """

    torch: str
    torch_cuda: str | None
    nvcc_path: str | None
    nvcc_version: str | None
    cxx_path: str | None
    cxx_version: str | None
    python: str
    host: str
    arch: str
    compile_only: bool
    nvcc_build: str | None = None
    driver: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    more_archs: tuple[str, ...] = ()

    @property
    def sm(self) -> str:
        """The architecture as nvcc names it: "sm_90a"."""
        return f"sm_{self.arch.replace('.', '')}"

    @property
    def sms(self) -> tuple[str, ...]:
        """All architectures to compile for: one, but for a build that is only compiled."""
        return (self.sm, *(f"sm_{arch.replace('.', '')}" for arch in self.more_archs))

    @property
    def nvcc_text(self) -> str:
        return f"nvcc {self.nvcc_version}" if self.nvcc_version else "nvcc"

    @property
    def cxx_text(self) -> str:
        return f"{Path(self.cxx_path or 'c++').name} {self.cxx_version or ''}".strip()


def arch_of(capability: tuple[int, int]) -> str:
    """Return the architecture to build for: (9, 0) → "9.0a", with the suffix that wgmma needs from Hopper on."""
    major, minor = capability
    return f"{major}.{minor}{'a' if major in _WITH_SUFFIX else ''}"


def parse_architectures(text: str) -> tuple[str, ...]:
    """Read what --arch takes: "80,90a,100" → ("8.0", "9.0a", "10.0"). Raises InputError for what is none."""
    archs, hint = [], "Write them like --arch 80,90a,100"
    for word in filter(None, re.split(r"[\s,;]+", text)):
        match = re.fullmatch(r"(?:sm_|compute_)?(\d+)\.?(\d)([af]?)", word)
        if match is None:
            raise InputError(f"--arch {word} is no architecture", hint=hint)
        archs.append(f"{match[1]}.{match[2]}{match[3]}")
    if not archs:
        raise InputError("--arch names no architecture", hint=hint)
    return tuple(dict.fromkeys(archs))


def check_architectures(archs: Sequence[str], nvcc: str) -> None:
    """Raise InputError for an architecture that this nvcc does not compile for."""
    listed = re.findall(r"sm_\w+", _output(nvcc, "--list-gpu-code"))
    for arch in archs:
        wanted = f"sm_{arch.replace('.', '')}"
        if listed and wanted not in listed and wanted.rstrip("af") not in listed:
            known = ", ".join(name[3:] for name in listed)
            raise InputError(f"--arch {wanted[3:]}: {nvcc} does not compile for it", hint=f"It knows {known}")


def find_toolchain(device_arch: str | None, compile_for: Sequence[str] = ()) -> Toolchain:
    """What would build here for `device_arch` ("9.0a"), or without a GPU (None) compile for `compile_for`, or 9.0a."""
    nvcc, cxx, version_file = _find_nvcc(), find_host_compiler(), _version_file()
    return Toolchain(
        torch=_torch_version(version_file), torch_cuda=_match(r"^cuda\b.*=\s*'([^']+)'", version_file),
        nvcc_path=nvcc, nvcc_version=_version(nvcc, r"release (\d+\.\d+)"), nvcc_build=_version(nvcc, r"V(\d[\d.]*)"),
        cxx_path=_real_name(cxx), cxx_version=_version(cxx, r"(\d+(?:\.\d+)+)"),
        python=platform.python_version(), host=_processor(), driver=_driver(), environment=_environment(),
        arch=device_arch or next(iter(compile_for), COMPILE_ONLY_ARCH), compile_only=device_arch is None,
        more_archs=() if device_arch else tuple(compile_for[1:]),
    )


def _environment() -> tuple[tuple[str, str], ...]:
    variables = [(name, os.environ[name]) for name in _READ_BY_COMPILERS if os.environ.get(name)]
    for name, value in tuple(variables):
        if name in _NAME_A_COMPILER:
            # As nvcc does, which takes a folder for the place of its g++.
            program = os.path.join(value, "g++") if os.path.isdir(value) else value
            variables.append((f"{name} --version", _output(program, "--version")))
    return tuple(variables)


def find_host_compiler() -> str | None:
    """$CXX, else c++ or g++ on the PATH."""
    return shutil.which(os.environ.get("CXX") or "c++") or shutil.which("g++")


def cuda_home(nvcc_path: str) -> str:
    """Return the folder of the CUDA toolkit that `nvcc_path` belongs to."""
    return os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or str(Path(nvcc_path).parent.parent)


def _find_nvcc() -> str | None:
    """Look where torch looks, then into the wheels that bring a compiler."""
    program = "nvcc.exe" if sys.platform == "win32" else "nvcc"
    homes = [Path(os.environ[name], "bin") for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    wheels = (folder for entry in sys.path for folder in sorted(Path(entry or ".", "nvidia").glob("*/bin")))

    def found(places: Iterable[Path]) -> str | None:
        return next((str(place / program) for place in places if (place / program).is_file()), None)

    return found(homes) or shutil.which("nvcc") or found(chain([Path("/usr/local/cuda/bin")], wheels))


def _real_name(cxx: str | None) -> str | None:
    """Say g++ or clang++ where c++ is a link to one of them."""
    if cxx is None:
        return None
    real = Path(cxx).resolve().name
    for name in ("clang++", "g++"):
        if name in real and Path(cxx).name == "c++":
            return shutil.which(name) or cxx
    return cxx


def _version(program: str | None, pattern: str) -> str | None:
    return _match(pattern, _output(program, "--version")) if program else None


def _match(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else None


@functools.lru_cache(maxsize=8)
def _output(program: str, flag: str) -> str:
    try:
        answer = subprocess.run([program, flag], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout


def _driver() -> str | None:
    """The version of NVIDIA's kernel module, which compiles PTX where a build brings no machine code."""
    return _match(r"Kernel Module\D*([\d.]+)", _text_of(Path("/proc/driver/nvidia/version")))


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _torch_version(version_file: str) -> str:
    """As torch.__version__ says, with the build's own part (2.13.0+cu130), which the package's metadata may lack."""
    version = _match(r"^__version__\b.*=\s*'([^']+)'", version_file)
    if version is not None:
        return version
    import importlib.metadata  # with half of `email`: a mistake in a run would wait for it

    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return "none"


def _version_file() -> str:
    """The text of torch/version.py, read without importing torch; empty where there is none."""
    spec = importlib.util.find_spec("torch")
    return "" if spec is None or spec.origin is None else _text_of(Path(spec.origin).with_name("version.py"))


@functools.lru_cache(maxsize=1)
def _processor() -> str:
    """The model name and its instruction sets: a build for `native` is good for no other."""
    lines = _text_of(Path("/proc/cpuinfo")).split("\n\n")[0].splitlines()
    named = ("model name", "flags", "Features")
    kept = [line.partition(":")[2].strip() for line in lines if line.startswith(named)]
    return f"{platform.machine()} {' '.join(kept) if lines else platform.processor()}"
