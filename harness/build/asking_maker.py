"""The maker of a builder that runs a candidate's code: it compiles nothing, but has each call compiled by a process that
runs none of it.

What the candidate's own process made could be anything by the time the judge sees it. The compiling process writes where
this one can only read. It is told the call, and what decides a build besides: PyTorch's common flags and the architectures,
as the candidate left them. A call that only goes here, with an environment or files that are this process's own, is
compiled here after all; whose code that is nobody knows then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from harness.build import extension_maker
from harness.build.extension_maker import ExtensionMaker
from harness.build.missing_extension import CompiledStandIn, NoCompiler, NotCompiled
from harness.protocol.extension_call import call_as_json
from harness.sandbox.mounts import SCRATCH
from harness.worker.extensions import load_entry

# What else of an environment compilers and PyTorch's build go by.
_HEEDED = (
    "CC", "CXX", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS",
    "NVCC_CCBIN", "PATH", "PYTORCH_NVCC",
)


class AskingMaker(ExtensionMaker):
    """An `ExtensionMaker` that has what it can compiled by `ask`, which returns a builder's answer to one call."""

    def __init__(self, *arguments: Any, ask: Callable[[dict[str, Any]], Mapping[str, Any]], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._ask = ask
        self._environment = self._heeded()

    def _build(self, kind: str, key: str, arguments: dict[str, Any]) -> Any:
        call = {**call_as_json(kind, arguments), "state": extension_maker.state_of_torch()}
        for slim_headers in (True, False) if self.slim_headers else (False,):
            answer = self._ask({"compile": call, "slim_headers": slim_headers})
            failure = answer["failure"]
            if failure is not None:
                break
            try:
                return self._loaded(answer, arguments)
            except (ImportError, OSError) as error:  # with PyTorch's own headers it may have all that it asks for
                unloaded = error
        else:
            raise self._noted(NotCompiled(str(unloaded), answer["log"])) from unloaded
        if self._is_only_here(call):
            self.slim_headers = False  # with the stand-in it has been tried
            return super()._build(kind, key, arguments)
        if failure["kind"] == "no_nvcc":
            raise NoCompiler(failure["message"])
        if failure["kind"] != "compile_error":  # no compiler came as far as the sources
            raise RuntimeError(failure["message"])
        raise self._noted(NotCompiled(
            failure["message"], failure.get("log", ""), failure.get("slim_log", ""), headers=failure.get("headers", "stock")
        ))

    def _loaded(self, answer: Mapping[str, Any], arguments: Mapping[str, Any]) -> Any:
        """What the candidate gets for what was compiled. Raises ImportError and OSError."""
        entry = answer["extensions"][-1]
        if not entry["path"]:
            return CompiledStandIn(str(arguments.get("name")))
        return load_entry(entry)

    def _noted(self, failure: NotCompiled) -> NotCompiled:
        self.failures.append(failure)
        return failure

    def _is_only_here(self, call: Mapping[str, Any]) -> bool:
        """Whether it may go in this process though it went nowhere else."""
        own = str(self.folder.parent), SCRATCH
        return self._heeded() != self._environment or any(place in str(call["arguments"]) for place in own)

    @staticmethod
    def _heeded() -> list[str | None]:
        return [os.environ.get(name) for name in _HEEDED]
