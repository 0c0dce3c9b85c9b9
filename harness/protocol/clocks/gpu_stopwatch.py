"""The stopwatch of a GPU in machine code: a mark is one call from Python, and no part of it is Python's or PyTorch's.

It needs no header of CUDA's, so that the host compiler builds it in a fraction of a second, which the judge has done
once a run; a worker gets it as bytes and loads it before anything of a candidate's.
"""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from harness.protocol.clocks.stopwatch import MARKS, Stopwatch, TorchEvents

SOURCE = r"""
#include <stdint.h>
#include <stdlib.h>

typedef int (*Create)(void** event, unsigned flags);
typedef int (*Record)(void* event, void* stream);
typedef int (*Elapsed)(float* milliseconds, void* start, void* stop);

static const int64_t kNotKept = 1000000;  // above every code of the driver's

struct Stopwatch {
  Record record;
  Elapsed elapsed;
  int64_t count, next;
  void* events[1];  // and the others behind it
};

extern "C" {

// A ring of `count` timing events, or null with what the driver said in `code`.
Stopwatch* stopwatch_open(Create create, Record record, Elapsed elapsed, int64_t count, int* code) {
  Stopwatch* watch = static_cast<Stopwatch*>(calloc(1, sizeof(Stopwatch) + count * sizeof(void*)));
  if (watch == NULL) return NULL;
  watch->record = record;
  watch->elapsed = elapsed;
  watch->count = count;
  for (int64_t index = 0; index < count; ++index) {
    *code = create(&watch->events[index], 0);
    if (*code != 0) {
      free(watch);
      return NULL;
    }
  }
  return watch;
}

// Record the next event on the legacy default stream: the number of the mark, or the driver's code as a negative.
int64_t stopwatch_mark(Stopwatch* watch) {
  const int64_t mark = __atomic_fetch_add(&watch->next, 1, __ATOMIC_RELAXED);
  const int code = watch->record(watch->events[mark % watch->count], NULL);
  return code == 0 ? mark : -static_cast<int64_t>(code);
}

// Microseconds between two marks that the device has passed, or a code as a negative.
double stopwatch_us(const Stopwatch* watch, int64_t start, int64_t stop) {
  if (start < 0 || stop < start || stop >= watch->next || watch->next - start > watch->count) return -kNotKept;
  float milliseconds = 0;
  const int code =
      watch->elapsed(&milliseconds, watch->events[start % watch->count], watch->events[stop % watch->count]);
  return code == 0 ? 1e3 * milliseconds : -static_cast<double>(code);
}

}
"""

_NOT_KEPT = 1_000_000
_BUILD_LIMIT_S = 60
_FLAGS = ("-x", "c++", "-O2", "-shared", "-fPIC", "-pthread")


class NativeEvents:
    """Pairs of the driver's timing events on the legacy default stream, whichever stream a candidate left current.

    They are made beforehand and taken in turn. A mark is good until `MARKS` later ones; one that is no longer is refused
    and never read as another's. `library` is what `compiled` gave, `driver` has the driver's functions by their names.
    Raises OSError where the library cannot be loaded, RuntimeError where the driver refuses.
    """

    name = "native_events"

    def __init__(self, library: bytes, driver: Any) -> None:
        functions = _loaded(library)
        opened, self._mark, self._us = functions.stopwatch_open, functions.stopwatch_mark, functions.stopwatch_us
        opened.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64, ctypes.POINTER(ctypes.c_int)]
        self._mark.argtypes = [ctypes.c_void_p]
        self._us.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
        opened.restype, self._mark.restype, self._us.restype = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
        self._called = [getattr(driver, name) for name in ("cuEventCreate", "cuEventRecord", "cuEventElapsedTime")]
        code = ctypes.c_int()
        addresses = (ctypes.cast(function, ctypes.c_void_p) for function in self._called)
        self._watch = opened(*addresses, MARKS, ctypes.byref(code))
        if self._watch is None:
            raise RuntimeError(f"CUDA error {code.value}, found when timing events were to be made")

    def start(self) -> int:
        mark = self._mark(self._watch)
        return mark if mark >= 0 else _refused(mark)

    def stop(self, mark: int) -> tuple[int, int]:
        end = self._mark(self._watch)
        return mark, end if end >= 0 else _refused(end)

    def microseconds(self, lap: tuple[int, int]) -> float:
        found_us = self._us(self._watch, *lap)
        return found_us if found_us >= 0.0 else _refused(int(found_us))


def stopwatch_of(device: torch.device, library: bytes | None) -> Stopwatch:
    """The native stopwatch of a GPU, or PyTorch's events if it does not load. Raises RuntimeError like the driver."""
    torch.cuda.set_device(device)
    if library is not None:
        with suppress(OSError):
            return NativeEvents(library, _driver())
    return TorchEvents(device)


@functools.lru_cache(maxsize=8)
def compiled(cxx: str | None, text: str = SOURCE) -> bytes | None:
    """The library of that `text` as the host compiler at `cxx` builds it; None where it does not, or there is none."""
    if cxx is None or sys.platform != "linux":
        return None
    try:
        with tempfile.TemporaryDirectory(prefix="native-") as folder:
            source, made = Path(folder, "library.cpp"), Path(folder, "library.so")
            source.write_text(text)
            subprocess.run(
                [cxx, *_FLAGS, "-o", str(made), str(source), "-ldl"], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_BUILD_LIMIT_S, check=True,
            )
            return made.read_bytes()
    except (OSError, subprocess.SubprocessError):
        return None


def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def loaded(library: bytes) -> ctypes.CDLL:
    """Load a library from memory: there may be no folder here that can be written and run from. Raises OSError."""
    # Kept open: the loader knows a library by its path, and takes the next one under this number for the same.
    descriptor = os.memfd_create("native", os.MFD_CLOEXEC)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(library)
    try:
        return ctypes.CDLL(f"/proc/self/fd/{descriptor}")
    except OSError:
        os.close(descriptor)
        raise


_loaded = functools.lru_cache(maxsize=4)(loaded)  # one stopwatch after another in a process is of one library


def _refused(code: int) -> Any:
    if -code == _NOT_KEPT:
        raise RuntimeError(f"a time was asked for between marks of which not both are among the last {MARKS}")
    # Most often an earlier kernel's fault, which every later call reports.
    raise RuntimeError(f"CUDA error {-code}, found when a timing event was to be recorded or read")
