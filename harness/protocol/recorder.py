"""The worker's half of the recorder, and the places that both sides read. `recorder.cpp` does the work; the judge
builds it and reads what it leaves (`device/kernel_recorder.py`).
"""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path

CPP = Path(__file__).with_suffix(".cpp")
# Wanted, reached, whether it is open, the step that CUPTI refused and its code, records, cut, dropped, bytes; modules, those
# that had no room, and their bytes.
HEAD = struct.Struct("<8IQ2IQ8x")
WANTED_BYTE, REACHED_BYTE = 0, 4
# Number, kind, correlation, stream, start, end (ns), grid (of a copy or fill how many bytes, low and high), block (of a copy
# first the way it goes), graph or the call within, bytes of the name behind it.
RECORD = struct.Struct("<4I2Q6i2I")
KERNEL, COPY, FILL, LAUNCH, GRAPH_LAUNCH = range(1, 6)
# The ways of a copy that CUPTI counts, of those with the host at one end: from it, and to it. Arrays have their own.
FROM_HOST, TO_HOST = (1, 3), (2, 4)
WORD_BYTES = 8  # a name is filled up to these
# Records of some 100,000 kernels, and the machine code of modules; what was never written takes no memory.
RECORDS_BYTES, MODULES_BYTES = 16 << 20, 128 << 20
REGION_BYTES = RECORDS_BYTES + MODULES_BYTES


def open_recorder(library: ctypes.CDLL, descriptor: int, offset: int, bytes: int) -> None:
    """Have the process's launches recorded whenever the judge asks for it, through a region of the arena's file. Call
    it once, before a candidate is there: nothing stays within Python's reach, and faults are told to the judge alone.
    """
    library.recorder_open.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    library.recorder_open.restype = None
    library.recorder_open(descriptor, offset, bytes)
