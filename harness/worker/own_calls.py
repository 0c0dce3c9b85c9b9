"""Marks for the profiler of when the candidate's own extensions ran: on a CPU nothing else says so.

Which functions are theirs is noted by `extensions` as they are opened; what of that time PyTorch's operators took is
for `profiler_events` to take off.
"""

from __future__ import annotations

import _thread
import os
from typing import Any

from torch._C._profiler import _RecordFunctionFast

from harness.worker import extensions

_start_new_thread, _urandom = _thread.start_new_thread, os.urandom


class OwnCalls:
    """A profile function for the interpreter that marks calls into the candidate's extensions for the profiler.

    The mark's name is new each time, so that none of the candidate's own marks has it. `began` is whether a thread was
    started, of which Python's own hooks hear from 3.12 on; `called_back` whether Python ran inside such a call.
    """

    def __init__(self) -> None:
        self.name, self.began, self.called_back = f"own {_urandom(8).hex()}", False, False
        self._depth, self._mark = 0, None

    def __call__(self, frame: Any, event: str, function: Any) -> None:
        self.began |= function is _start_new_thread
        self.called_back |= event == "call" and self._depth > 0
        if not event.startswith("c_") or id(function) not in extensions.opened_functions:
            return
        if event == "c_call":
            self._depth += 1
            if self._depth == 1:
                self._mark = _RecordFunctionFast(self.name)
                self._mark.__enter__()
        else:
            self._depth -= 1
            if self._depth == 0:
                self._mark.__exit__(None, None, None)
