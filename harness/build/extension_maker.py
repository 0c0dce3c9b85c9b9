"""Stand-ins for `load_inline` and `load` that note each call, build it where we want it, and keep what was printed.

Installed by `builder` before a candidate is imported, inside the untrusted child. A call is built with the stand-in
for PyTorch's headers first (`stand_in_headers`), and as it was written where that fails.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch.utils.cpp_extension as cpp_extension

from harness.build import (
    certain_errors, compile_only, cpp_half, cubin, dependencies, flags, source_suffixes, stand_in_headers,
)
from harness.build.builder_progress import Speaker
from harness.build.diagnostics import PTXAS, Diagnostic, as_told, diagnostics, needs_architecture, why_refused
from harness.build.missing_extension import CompiledStandIn, NoCompiler, NotCompiled
from harness.build.ninja_file import with_device_linking, with_quoted_folders
from harness.build.taken_in import NOTHING_TOLD, ToolWatch, below, why_unproven
from harness.protocol.extension_key import extension_key, names_folder

_FLAG = "-Xptxas=-v"
_ARCHITECTURES = "TORCH_CUDA_ARCH_LIST"
_COPIED = ("sources", "cpp_sources", "cuda_sources", "functions", "extra_cuda_cflags", "extra_ldflags")


class _Refused(Exception):
    """Raised with the errors of a build that no headers could mend, as the compilers tell them."""


class ExtensionMaker:
    """Builds below `folder` and collects `extensions` (one dict per distinct call), `log`, `files` and `failures`, of a
    candidate that lies in `own_folder`; and whether what is built is another one elsewhere (`names_folder`).
    """

    def __init__(
        self, folder: Path, own_folder: Path, *, nvcc: str | None, sms: Sequence[str], without_gpu: bool,
        slim_headers: bool = True, speaker: Speaker | None = None, unsettled: Path | None = None,
    ) -> None:
        """`speaker` says when compilers are waited for, and when a build is done again without the stand-in. Below
        `unsettled` the candidate's process may write while this one compiles.
        """
        self.folder, self.own_folder = folder, own_folder
        self.nvcc, self.sms, self.without_gpu = nvcc, sms, without_gpu
        self.slim_headers, self.names_folder, self.unsettled = slim_headers, False, unsettled
        self._speaker = speaker or Speaker(lambda frame: None)
        self.extensions: list[dict[str, Any]] = []
        self.files: set[str] = set()
        self.failures: list[NotCompiled] = []
        self.failed: set[str] = set()  # the keys of the calls that no compiler took
        self._real = {kind: getattr(cpp_extension, kind) for kind in ("load_inline", "load")}
        self.log = self._slim_log = ""
        self._modules: dict[str, Any] = {}
        # Whether a ModelNew is being constructed, and whether something was built in it, that its arguments may decide.
        self.is_in_init = self.built_in_init = False

    @functools.cached_property
    def _tools(self) -> ToolWatch:
        return ToolWatch(self.folder / "told", self.own_folder, self.nvcc)

    def install(self) -> None:
        """Replace the two compile calls of torch."""
        # It deletes a header in torch's own folder, which is read-only here and shared with other builds.
        if hasattr(cpp_extension, "remove_extension_h_precompiler_headers"):
            cpp_extension.remove_extension_h_precompiler_headers = lambda: None
        if hasattr(cpp_extension, "_write_ninja_file"):
            cpp_extension._write_ninja_file = with_device_linking(with_quoted_folders(cpp_extension._write_ninja_file))
        for kind, real in self._real.items():
            setattr(cpp_extension, kind, self._recording(kind, inspect.signature(real)))

    def _recording(self, kind: str, signature: inspect.Signature) -> Callable[..., Any]:
        return lambda *positional, **named: self._made(kind, dict(signature.bind(*positional, **named).arguments))

    def make(self, kind: str, arguments: dict[str, Any], texts: Mapping[str, str]) -> None:
        """Build what another process asked for; `texts` are those of its files. Raises NotCompiled and NoCompiler."""
        if kind == "load":
            arguments["sources"] = [self._file(path, texts.get(path)) for path in arguments["sources"]]
        self._made(kind, arguments)

    def _file(self, path: str, text: str | None) -> str:
        """Where this process finds a file of that text: at `path` if nobody may change that, or where it writes it to."""
        with suppress(OSError):
            is_settled = self.unsettled is None or not below(self.unsettled, [path])
            if text is None or (is_settled and Path(path).read_text(encoding="utf-8", errors="replace") == text):
                return path
        place = self.folder / "asked" / hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16] / Path(path).name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        return str(place)

    def _made(self, kind: str, arguments: dict[str, Any]) -> Any:
        """What a call comes to, which is built once."""
        key = extension_key(kind, arguments, self.own_folder)
        if key not in self._modules:
            self.names_folder |= names_folder(kind, arguments, self.own_folder)
            self.built_in_init |= self.is_in_init
            try:
                with self._speaker.compiling():
                    self._modules[key] = self._build(kind, key, arguments)
            except NotCompiled:
                self.failed.add(key)
                raise
        return self._modules[key]

    def _build(self, kind: str, key: str, arguments: dict[str, Any]) -> Any:
        place = self.folder / key
        place.mkdir(parents=True, exist_ok=True)
        if kind == "load":
            self.files.update(map(str, source_files(arguments)))
        cuda = compile_only.cuda_files(kind, arguments) or bool(arguments.get("with_cuda"))
        if cuda and self.nvcc is None:
            raise NoCompiler("it has CUDA sources, and there is no nvcc")
        if cuda:
            arguments["extra_cuda_cflags"] = [*(arguments.get("extra_cuda_cflags") or []), _FLAG]
        arguments.update(build_directory=str(place), verbose=True)
        arguments.pop("use_pch", None)
        build = self._compile_only if cuda and self.without_gpu else self._build_and_load
        try:
            went, module = self._with_slim_headers(build, kind, key, arguments)
            if not went:
                module = build(kind, key, arguments)
        except _Refused as error:  # whatever else was said may be for want of other headers
            self.failures.append(NotCompiled("the compiler refused it", str(error), headers="slim"))
            raise self.failures[-1] from error
        except (RuntimeError, ImportError, OSError, NotCompiled) as error:
            self.failures.append(NotCompiled(str(error), self.log, self._slim_log))
            raise self.failures[-1] from error
        self._note_files(flags.files_named(arguments, place, self.own_folder))
        noted = {"key": key, "cuda": bool(cuda), "headers": "slim" if went else "stock"}
        self._note_built(noted, arguments, place, module)
        return module

    def _note_files(self, paths: Iterable[str]) -> None:
        self.files |= dependencies.local(paths, self.folder, self.nvcc)

    def _with_slim_headers(
        self, build: Callable[..., Any], kind: str, key: str, arguments: dict[str, Any]
    ) -> tuple[bool, Any]:
        """Whether the call builds with the stand-in first on the include path, and what `build` then returned. A failed
        attempt leaves nothing. Raises what `build` raised where it would do so without the stand-in, too.
        """
        place, headers = self.folder / key, self.folder / f"{key}-headers"
        versions = getattr(getattr(cpp_extension, "JIT_EXTENSION_VERSIONER", None), "entries", {})
        self._slim_log, log, version = "", self.log, versions.get(arguments.get("name"))
        try:
            texts, torch_include = texts_of_halves(kind, arguments), Path(cpp_extension.include_paths()[0])
            included = stand_in_headers.headers_of([*texts[0], *texts[1]], header_folders(kind, arguments))
            if not self.slim_headers or not stand_in_headers.write(headers, torch_include, *texts, included):
                return False, None
            paths = [str(headers), *(arguments.get("extra_include_paths") or [])]
            return True, build(kind, key, {**arguments, "extra_include_paths": paths})
        except Exception as error:
            said = self.log[len(log):]
            certain = self._certain(error, said, kind, key, arguments)
            lines = dict.fromkeys(map(as_told, certain or self._certain_in_cpp(said, kind, key, arguments)))
            if lines:
                raise _Refused("\n".join(lines)) from error
            self._speaker.begin_again()
            self._slim_log, self.log = said, log
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True, exist_ok=True)
            # torch counts the builds of a name and would call the module NAME_v1 the second time.
            versions.pop(arguments.get("name"), None)
            if version is not None:
                versions[arguments.get("name")] = version
            return False, None

    def _build_and_load(self, kind: str, key: str, arguments: dict[str, Any]) -> Any:
        log_path = self.folder / key / "compiler.log"
        # Lists of its own: torch puts its own headers into those that it is given.
        own = {name: list(arguments[name]) for name in _COPIED if isinstance(arguments.get(name), (list, tuple))}
        try:
            with printed_to(log_path), self._tools.watching():
                return self._real[kind](**{**arguments, **own})
        finally:
            self.log += log_path.read_text(errors="replace")

    def _compile_only(self, kind: str, key: str, arguments: dict[str, Any]) -> CompiledStandIn:
        nvcc, at_once = self.nvcc or "nvcc", int(os.environ.get("MAX_JOBS") or 1)
        texts = self._own_texts(kind, key, arguments)
        came = compile_only.compile_cuda(kind, arguments, self.folder / key, nvcc, self.sms, texts, at_once)
        self.log += came.log
        # With other headers it may go for one of those, too, unless it is the machine that lacks what is used.
        is_slim = str(self.folder / f"{key}-headers") in map(str, arguments.get("extra_include_paths") or [])
        if not came.passed or (is_slim and not all(map(needs_architecture, came.refused.values()))):
            raise NotCompiled("the compiler refused it", self.log, refused=came.refused)
        return CompiledStandIn(str(arguments.get("name")), came)

    def _certain(self, error: Exception, log: str, kind: str, key: str, arguments: dict[str, Any]) -> list[Diagnostic]:
        """The errors that nvcc would find with PyTorch's own headers too, in the same words, by architecture. There are
        none where one of these may do without any, or where something else than nvcc failed.
        """
        if not compile_only.cuda_files(kind, arguments):
            return []
        refused, nvcc, certain = {}, self.nvcc or "nvcc", []
        if isinstance(error, NotCompiled):
            refused = error.refused
        elif self.nvcc is not None and isinstance(error, RuntimeError):  # torch has it in its log
            refused = dict.fromkeys(self.sms, log)
        for sm in self.sms:
            errors = [each for each in diagnostics(refused.get(sm, "")) if each.kind == "error"]
            found = [each for each in errors if each.text.startswith(PTXAS) and needs_architecture(each.text)]
            if not found:  # else that is the assembler's word, which comes after all headers
                if not certain_errors.may_be_certain(errors):
                    return []
                try:
                    texts = self._own_texts(kind, key, arguments)
                    with_stock = compile_only.preprocessed(kind, arguments, self.folder / key, nvcc, sm, texts)
                except OSError:
                    return []
                found = _certain_in(with_stock, errors)
            if not found:
                return []
            certain += found
        return certain

    def _certain_in_cpp(self, log: str, kind: str, key: str, arguments: dict[str, Any]) -> list[Diagnostic]:
        """The errors that the host compiler would find with PyTorch's own headers too."""
        place = self.folder / key
        errors = [each for each in diagnostics(log) if each.kind == "error"]
        errors = [each for each in errors if not each.file.endswith(source_suffixes.CUDA)]
        if not certain_errors.may_be_certain(errors):
            return []
        try:
            last = [place / compile_only.STAND_INS]
            with_stock = cpp_half.preprocessed(kind, arguments, place, self.nvcc, compile_only.torch_standard(), last)
        except OSError:
            return []
        return _certain_in(with_stock, errors)

    def _own_texts(self, kind: str, key: str, arguments: dict[str, Any]) -> list[str]:
        """The texts of a call and of its own headers, without those of the stand-in."""
        texts = all_texts(kind, arguments)
        own = [each for each in header_folders(kind, arguments) if each != self.folder / f"{key}-headers"]
        return [*texts, *stand_in_headers.headers_of(texts, own)]

    def _note_built(self, noted: dict[str, Any], arguments: dict[str, Any], place: Path, module: Any) -> None:
        for path in sorted(place.glob("*.sm_*.cubin")):
            self.log += cubin.told(cubin.constant_bytes(path.read_bytes()), path.name.split(".")[-2])
        if isinstance(module, CompiledStandIn):
            came = object.__getattribute__(module, "_came")
            refused = {sm: why_refused(output) for sm, output in came.refused.items()}
            self._note_files(came.read)
            name = str(arguments.get("name"))
            noted |= {"path": "", "module_name": name, "is_python_module": True, "refused": refused}
        else:
            # Of sources that are no C++ or CUDA, assembler's say, ninja is not told, and of headers nobody but it.
            sources, told = source_files(arguments), dependencies.files_of_ninja(place)
            read = told.union(map(str, sources))
            taken = self._tools.taken_in(place, [*map(str, sources)]) if told else NOTHING_TOLD
            self._note_files({*read, *taken.files, *(map(str, headers_beside(sources)) if not told else ())})
            # What PyTorch wrote of the call lies in the build's own folder, as the headers that stand in for its own do.
            own = dependencies.local(read, Path(f"{place}-headers"), self.nvcc)
            unproven = why_unproven(taken, read, own, _all_flags(arguments), self.unsettled)
            libraries = sorted([*place.glob("*.so"), *place.glob("*.pyd")], key=lambda path: path.stat().st_mtime)
            if not libraries:
                return
            name = getattr(module, "__name__", None) or libraries[-1].stem
            is_python_module = bool(arguments.get("is_python_module", True))
            noted |= {
                "path": str(libraries[-1]), "module_name": name, "is_python_module": is_python_module, "unproven": unproven,
            }
        self.extensions.append(noted)


def _all_flags(arguments: Mapping[str, Any]) -> str:
    return "\n".join([*flags.texts_of(arguments), *map(str, cpp_extension.COMMON_NVCC_FLAGS)])


def _certain_in(with_stock: Mapping[str, str], errors: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Those of `errors` that are certain in the files, whose texts with PyTorch's own headers are given by name."""
    return [each for file, text in with_stock.items() for each in certain_errors.certain_among(errors, text, file)]


def state_of_torch() -> dict[str, Any]:
    """What besides a call decides what PyTorch builds, as a candidate left it: flags for nvcc, architectures."""
    return {"common": list(map(str, cpp_extension.COMMON_NVCC_FLAGS)), "architectures": os.environ.get(_ARCHITECTURES)}


def take_state(state: Mapping[str, Any]) -> None:
    """Have PyTorch build as it did in the process that this is the `state` of."""
    cpp_extension.COMMON_NVCC_FLAGS[:] = map(str, state["common"])
    if state["architectures"] is not None:
        os.environ[_ARCHITECTURES] = str(state["architectures"])
    cpp_extension.CUDA_HOME = cpp_extension.CUDA_HOME or os.environ.get("CUDA_HOME")  # a PyTorch without CUDA looks for none


def load_nothing() -> None:
    """Leave what is built unopened in this process: what a library does as it is opened is its author's code."""
    cpp_extension._import_module_from_library = lambda *arguments, **named: None


def source_files(arguments: Mapping[str, Any]) -> list[Path]:
    """The files that a call of "load" names, one or several."""
    given = arguments.get("sources") or []
    return [Path(each).resolve() for each in ([given] if isinstance(given, (str, os.PathLike)) else given)]


def headers_beside(sources: Sequence[Path]) -> set[Path]:
    """The headers in the folders of `sources`."""
    suffixes = source_suffixes.HEADERS
    return {header for source in sources for suffix in suffixes for header in source.parent.glob(f"*{suffix}")}


def header_folders(kind: str, arguments: Mapping[str, Any]) -> list[Path]:
    """Where a call's own headers are looked for: beside its sources, and on the include paths that it gives."""
    beside = [path.parent for path in source_files(arguments)] if kind == "load" else []
    return [*beside, *flags.header_folders(arguments)]


def all_texts(kind: str, arguments: Mapping[str, Any]) -> list[str]:
    """The texts of both halves of a call, as `texts_of_halves` has them. Raises OSError."""
    return [each for half in texts_of_halves(kind, arguments) for each in half]


def texts_of_halves(kind: str, arguments: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The C++ and the CUDA texts of a call; of "load" also the headers beside them. Raises OSError."""
    if kind == "load_inline":
        cpp = arguments.get("cpp_sources") or []
        implicit = [] if arguments.get("no_implicit_headers") else ["#include <torch/extension.h>"]
        return [*implicit, *([cpp] if isinstance(cpp, str) else cpp)], compile_only.cuda_files(kind, arguments)
    sources = source_files(arguments)
    headers = headers_beside(sources)
    cuda = {path for path in [*sources, *headers] if path.suffix in source_suffixes.CUDA}
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in {*sources, *headers}}
    return [texts[path] for path in texts if path not in cuda], [texts[path] for path in cuda]


@contextmanager
def printed_to(path: Path) -> Iterator[None]:
    """Send what this process and its compilers print to a new file at `path`. Raises OSError."""
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
