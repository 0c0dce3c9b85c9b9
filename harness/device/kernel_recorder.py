"""The judge's half of the recorder: a word that begins and ends a recording in a worker, and what it then finds there,
which is data of somebody who may lie: it is copied first, and `attribution.recording` says what it proves.
"""

from __future__ import annotations

import ctypes
import time
from typing import Any

from harness.attribution.loaded_code import LoadedCode, read_modules
from harness.attribution.recording import Recording, Unproven, read_records
from harness.protocol.arena import Arena
from harness.protocol.recorder import HEAD, MODULES_BYTES, REACHED_BYTE, RECORDS_BYTES, REGION_BYTES, WANTED_BYTE

# CUPTI takes seconds at most to begin, which it does while a candidate is loaded, and milliseconds from then on.
_FIRST_PATIENCE_S, _PATIENCE_S = 20.0, 2.0
_POLL_S = 2e-4
_STEPS = (
    "", "PyTorch has loaded no CUPTI", "its CUPTI lacks a function", "CUPTI has another subscriber already",
    "CUPTI took no callbacks", "CUPTI refused to record kernels", "CUPTI did not hand over its records",
    "CUPTI did not say what it dropped", "the harness's subscription to CUPTI was ended", "no thread could be started",
)


class KernelRecorder:
    """Records launches of the worker that holds `arena`; `library` is `recorder.cpp` as built, None if it was not."""

    def __init__(self, arena: Arena, library: bytes | None) -> None:
        self._library = library
        self._place = arena.named("recording", REGION_BYTES)
        self._region = arena.map(**self._place)
        address = self._region.data_ptr()
        self._wanted = ctypes.c_uint32.from_address(address + WANTED_BYTE)
        self._reached = ctypes.c_uint32.from_address(address + REACHED_BYTE)
        self._fault: str | None = None  # of this worker: what failed once is not waited for again
        self._patience_s = _FIRST_PATIENCE_S

    def command(self) -> dict[str, Any]:
        """What a fresh worker must know of it, as a part of a frame."""
        self._region[: HEAD.size] = 0
        self._patience_s = _FIRST_PATIENCE_S
        self._fault = None if self._library is not None else "there is no C++ compiler here to build the recorder with"
        return {"recorder": None if self._library is None else self._library.hex(), "recording": self._place}

    def begin(self) -> None:
        """Have the worker's launches recorded from now on."""
        self._ask(odd=True)

    def end(self) -> Recording:
        """What was recorded since `begin`."""
        self._ask(odd=False)
        if self._fault is not None:
            return Recording(fault=self._fault)
        _, _, _, _, _, records, cut, dropped, size_bytes, *_ = self._head()
        if cut or dropped:
            return Recording(fault=f"{cut or dropped} records had no room")
        content = self._region[HEAD.size : min(HEAD.size + size_bytes, RECORDS_BYTES)].numpy().tobytes()
        try:
            return read_records(content, records)
        except Unproven as unproven:
            return Recording(fault=str(unproven))

    def loaded_code(self) -> LoadedCode:
        """The machine code that the worker has loaded into the GPU so far."""
        *_, modules, untaken, size_bytes = self._head()
        if self._fault is not None or size_bytes > MODULES_BYTES:
            return LoadedCode((), is_whole=False)
        content = self._region[RECORDS_BYTES : RECORDS_BYTES + size_bytes].numpy().tobytes()
        return read_modules(content, modules, is_whole=untaken == 0)

    def _ask(self, *, odd: bool) -> None:
        if self._fault is not None:
            return
        before = self._wanted.value
        wanted = self._wanted.value = before + 1 + (before % 2 == odd)  # a launch that failed ended none
        deadline, self._patience_s = time.monotonic() + self._patience_s, _PATIENCE_S
        while self._fault is None and self._reached.value != wanted:
            is_late = time.monotonic() > deadline
            self._fault = self._refused() or ("the recorder does not answer" if is_late else None)
            time.sleep(_POLL_S)
        self._fault = self._fault or self._refused()

    def _refused(self) -> str | None:
        _, _, is_open, step, code, *_ = self._head()
        if not is_open:
            return "the recorder was not opened"
        if not step:
            return None
        words = _STEPS[step] if step < len(_STEPS) else "the recorder failed"
        return words if code == 0xFFFFFFFF else f"{words} (code {code})"

    def _head(self) -> tuple[int, ...]:
        return HEAD.unpack(self._region[: HEAD.size].numpy().tobytes())
