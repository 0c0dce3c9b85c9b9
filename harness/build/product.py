"""What a build comes to: the extensions a worker may load, what the compiler said, or the verdict that ends it here."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.build.compiler_report import KernelReport
from harness.model.verdict import ReasonCode, Status, Verdict


@dataclass(frozen=True)
class BuiltExtension:
    """One shared object; `key` is the `extension_key` of the call it answers, `sha256` that of its bytes."""

    key: str
    module_name: str
    path: Path
    sha256: str
    is_python_module: bool


@dataclass(frozen=True)
class Build:
    """The end of building one candidate. `verdict` None means that it may be run.

    It `is_bound` where it would be another one if the candidate lay elsewhere, and `is_of_init` where it may be another
    one if `ModelNew` were constructed with something else. `failed` are the keys of calls that no compiler took.
    `unproven` says why nobody knows whether the extensions are what their sources say; empty where they are. `seconds`
    is the time the build took (of the original one when `cached`); `built_by` is like "nvcc 13.0", "g++ 12.2", "triton"
    or "python"; `headers` "slim" when all extensions were built with the stand-in for PyTorch's headers, "stock" when
    one needed PyTorch's own; `log` the compilers' output; `warnings` what a reader of the row should know and
    `compiler_warnings` what the compilers warned of in the candidate's own lines, one a line.
    """

    verdict: Verdict | None
    extensions: tuple[BuiltExtension, ...] = ()
    kernels: tuple[KernelReport, ...] = ()
    seconds: float = 0.0
    cached: bool = False
    arch: str | None = None
    headers: str | None = None
    built_by: str = "python"
    log: str = ""
    warnings: str = ""
    compiler_warnings: str = ""
    is_bound: bool = False
    is_of_init: bool = False
    failed: tuple[str, ...] = ()
    unproven: str = ""

    def and_also(self, more: Build) -> Build:
        """This one, with what was built `more`, which a worker of the candidate's had asked for."""
        known = {each.key for each in self.extensions}
        return replace(
            self, extensions=(*self.extensions, *(each for each in more.extensions if each.key not in known)),
            kernels=(*self.kernels, *more.kernels), seconds=self.seconds + more.seconds, arch=self.arch or more.arch,
            headers="stock" if "stock" in (self.headers, more.headers) else self.headers or more.headers,
            built_by=more.built_by if self.built_by == "python" else self.built_by, log=self.log + more.log,
            warnings="\n".join(filter(None, (self.warnings, more.warnings))),
            compiler_warnings="\n".join(filter(None, (self.compiler_warnings, more.compiler_warnings))),
            failed=tuple(dict.fromkeys((*self.failed, *more.failed))), unproven=self.unproven or more.unproven,
        )

    @property
    def manifest(self) -> dict[str, dict[str, Any]]:
        """What a worker needs to load the extensions, by key."""
        return {
            one.key: {"module_name": one.module_name, "path": str(one.path), "is_python_module": one.is_python_module}
            for one in self.extensions
        }

    def to_json(self) -> dict[str, Any]:
        """Everything but `cached` and the folders of the extensions, for a cache entry."""
        body = asdict(self)
        del body["cached"]
        if self.verdict is not None:
            body["verdict"] = [self.verdict.status.value, self.verdict.reason_code.value, self.verdict.reason]
        for extension in body["extensions"]:
            extension["path"] = Path(extension["path"]).name
        return body

    @classmethod
    def from_json(cls, body: dict[str, Any], folder: Path) -> Build:
        """Undo `to_json` for an entry that lies in `folder`; the result is `cached`."""
        verdict = body["verdict"]
        if verdict is not None:
            verdict = Verdict(Status(verdict[0]), ReasonCode(verdict[1]), verdict[2])
        extensions = tuple(BuiltExtension(**{**each, "path": folder / each["path"]}) for each in body["extensions"])
        kernels, failed = tuple(KernelReport(**each) for each in body["kernels"]), tuple(body["failed"])
        read = {"verdict": verdict, "extensions": extensions, "kernels": kernels, "failed": failed, "cached": True}
        return cls(**{**body, **read})
