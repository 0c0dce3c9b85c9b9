"""Stand-ins for `load_inline` and `load` that note each call, build it where we want it, and keep what was
printed.

Installed by `builder` before a candidate is imported, inside the untrusted child.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch.utils.cpp_extension as cpp_extension

from harness.build import compile_only
from harness.wire.extension_key import extension_key

_FLAG = "-Xptxas=-v"
_HEADERS = ("*.h", "*.hpp", "*.cuh", "*.inl")
_COPIED = ("sources", "cpp_sources", "cuda_sources", "functions", "extra_cuda_cflags")


class NotCompiled(Exception):
    """Raised in place of what torch raises when a build fails; `log` is the compiler's output."""

    def __init__(self, message: str, log: str) -> None:
        self.log = log
        super().__init__(message)


class NoCompiler(Exception):
    """Raised when CUDA sources are to be built and there is no nvcc."""


class OnlyCompiled(BaseException):
    """Raised when a candidate calls what was compiled but cannot be loaded here; ends the import in peace."""


class CompiledStandIn:
    """What a candidate gets for an extension that was compiled without a GPU: every use ends the import."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)

        def call(*positional: Any, **named: Any) -> None:
            raise OnlyCompiled(f"{self._name}.{attribute} was called while the candidate was being imported")

        return call


class Recorder:
    """Builds below `folder` and collects `extensions` (one dict per distinct call), `log`, `files` and
    `failures`.
    """

    def __init__(self, folder: Path, *, nvcc: str | None, sm: str, without_gpu: bool) -> None:
        self.folder, self.nvcc, self.sm, self.without_gpu = folder, nvcc, sm, without_gpu
        self.extensions: list[dict[str, Any]] = []
        self.files: set[str] = set()
        self.failures: list[NotCompiled] = []
        self.log = ""
        self._modules: dict[str, Any] = {}

    def install(self) -> None:
        """Replace the two compile calls of torch."""
        # It deletes a header in torch's own folder, which is read-only here and shared with other builds.
        if hasattr(cpp_extension, "remove_extension_h_precompiler_headers"):
            cpp_extension.remove_extension_h_precompiler_headers = lambda: None
        for kind in ("load_inline", "load"):
            setattr(cpp_extension, kind, self._recording(kind, getattr(cpp_extension, kind)))

    def _recording(self, kind: str, real: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(real)

        def build(*positional: Any, **named: Any) -> Any:
            arguments = dict(signature.bind(*positional, **named).arguments)
            key = extension_key(kind, arguments)
            if key not in self._modules:
                self._modules[key] = self._build(kind, real, key, arguments)
            return self._modules[key]

        return build

    def _build(self, kind: str, real: Callable[..., Any], key: str, arguments: dict[str, Any]) -> Any:
        place = self.folder / key
        place.mkdir(parents=True, exist_ok=True)
        # torch puts its own headers into the lists that it was given.
        for name in _COPIED:
            if isinstance(arguments.get(name), (list, tuple)):
                arguments[name] = list(arguments[name])
        if kind == "load":
            self._note_files(arguments)
        cuda = compile_only.cuda_files(kind, arguments) or bool(arguments.get("with_cuda"))
        if cuda and self.nvcc is None:
            raise NoCompiler("it has CUDA sources, and there is no nvcc")
        if cuda and self.without_gpu:
            return self._compile_only(kind, key, arguments, place)
        if cuda:
            arguments["extra_cuda_cflags"] = [*(arguments.get("extra_cuda_cflags") or []), _FLAG]
        arguments.update(build_directory=str(place), verbose=True)
        arguments.pop("use_pch", None)
        try:
            with self._capturing(place / "compiler.log"):
                module = real(**arguments)
        except (RuntimeError, ImportError, OSError) as error:
            self.failures.append(NotCompiled(str(error), self.log))
            raise self.failures[-1] from error
        self._note_built(key, arguments, place, module, cuda=bool(cuda))
        return module

    def _note_built(
        self, key: str, arguments: dict[str, Any], place: Path, module: Any, *, cuda: bool
    ) -> None:
        libraries = sorted([*place.glob("*.so"), *place.glob("*.pyd")], key=lambda path: path.stat().st_mtime)
        if not libraries:
            return
        self.extensions.append({
            "key": key, "path": str(libraries[-1]), "cuda": cuda,
            "module_name": getattr(module, "__name__", None) or libraries[-1].stem,
            "is_python_module": bool(arguments.get("is_python_module", True)),
        })

    def _compile_only(self, kind: str, key: str, arguments: dict[str, Any], place: Path) -> CompiledStandIn:
        passed, log = compile_only.compile_cuda(kind, arguments, place, self.nvcc or "nvcc", self.sm)
        self.log += log
        if not passed:
            self.failures.append(NotCompiled("nvcc refused it", self.log))
            raise self.failures[-1]
        name = str(arguments.get("name"))
        self.extensions.append({
            "key": key, "path": "", "cuda": True, "module_name": name, "is_python_module": True,
        })
        return CompiledStandIn(name)

    def _note_files(self, arguments: dict[str, Any]) -> None:
        sources = arguments.get("sources") or []
        for source in [sources] if isinstance(sources, str) else sources:
            path = Path(source).resolve()
            self.files.add(str(path))
            self.files.update(str(header) for pattern in _HEADERS for header in path.parent.glob(pattern))

    @contextmanager
    def _capturing(self, path: Path):  # noqa: ANN202  a generator of one None
        """Send what is printed, by compilers too, to a file and append it to the log."""
        sys.stdout.flush()
        sys.stderr.flush()
        kept = os.dup(1), os.dup(2)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, 1)
        os.dup2(file, 2)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os.dup2(kept[0], 1)
            os.dup2(kept[1], 2)
            for fd in (*kept, file):
                os.close(fd)
            self.log += path.read_text(errors="replace")
