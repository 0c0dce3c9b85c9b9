"""What a candidate gets in the place of an extension that it cannot have here: an error, or a stand-in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.build.compile_only import Compiled

WENT_ON = "an extension failed to build, and the candidate went on without it"


class NotCompiled(Exception):
    """Raised in place of what torch raises when a build fails; `log` is the compiler's output, `slim_log` what it had
    said with the stand-in for PyTorch's headers, `refused` what it said for each architecture where it only compiles,
    `headers` whose were the last that it was tried with.
    """

    def __init__(
        self, message: str, log: str, slim_log: str = "", refused: Mapping[str, str] | None = None, headers: str = "stock"
    ) -> None:
        self.log, self.slim_log, self.refused, self.headers = log, slim_log, dict(refused or {}), headers
        super().__init__(message)


class NoCompiler(Exception):
    """Raised when CUDA sources are to be built and there is no nvcc."""


class OnlyCompiled(BaseException):
    """Raised when a candidate calls what was compiled but cannot be loaded here; ends the import in peace."""


class CompiledStandIn:
    """What a candidate gets for an extension that was compiled without a GPU: every use ends the import."""

    def __init__(self, name: str, came: Compiled | None = None) -> None:
        self._name, self._came = name, came

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)

        def call(*positional: Any, **named: Any) -> None:
            raise OnlyCompiled(f"{self._name}.{attribute} was called while the candidate was being imported")

        return call
