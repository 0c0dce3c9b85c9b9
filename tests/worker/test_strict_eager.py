"""Eager with TF32 off in a process that has it on, and all as it was afterwards."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from harness.model.paths import REPOSITORY

pytestmark = pytest.mark.processes

OLDER = "the flags, before PyTorch 2.9"  # which has nothing else
WAYS = {
    "nothing": "",
    "the flags": "torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True",
    "one flag": "torch.backends.cuda.matmul.allow_tf32 = True",
    "the flag of cuDNN": "torch.backends.cudnn.allow_tf32 = True",
    "high": "torch.set_float32_matmul_precision('high')",
    "medium": "torch.set_float32_matmul_precision('medium')",
    "a precision": "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
    "a precision of convolutions": "torch.backends.cudnn.conv.fp32_precision = 'tf32'",
    "one for all": "torch.backends.fp32_precision = 'tf32'",
    OLDER: "torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True; older()",
}
# A process for each way: what it says stays for its life.
SCRIPT = """
import json, os, sys, torch
from harness.worker import model as strict
from harness.worker.model import strictly

def read(what, *words):
    try:
        return what(*words)
    except RuntimeError:
        return "refused"

def state():
    C = torch._C
    return [
        read(C._get_cublas_allow_tf32), read(C._get_cudnn_allow_tf32), read(C._get_float32_matmul_precision),
        *(C._get_fp32_precision_getter(*each) for each in (
            ("cuda", "matmul"), ("cuda", "conv"), ("cuda", "rnn"), ("mkldnn", "matmul"), ("mkldnn", "conv"),
            ("generic", "all"),
        )),
    ]

def older():
    strict._get = strict._set = None
    strict._OPERATORS = strict._KEPT = ()

torch.backends.cudnn.allow_tf32 = False  # as a worker begins
for way, code in json.loads(sys.argv[1]).items():
    if os.fork():
        os.wait()
        continue
    exec(code)
    before = state()
    try:
        with strictly():
            inside = state()
            raise KeyError("what is timed fails")
    except KeyError:
        pass
    print(json.dumps({way: [before, inside, state()]}), flush=True)
    os._exit(0)
"""


@pytest.fixture(scope="module")
def states():
    """Of each way the state before, meanwhile and after: the two flags, the precision, and precisions by operator."""
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(WAYS)], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    return {way: found for line in ran.stdout.splitlines() for way, found in json.loads(line).items()}


@pytest.mark.parametrize("way", WAYS)
def test_tf32_is_off_meanwhile_and_everything_is_as_before(states, way):
    before, inside, after = states[way] if way != OLDER else [state[:3] for state in states[way]]
    assert inside[:2] == [False, False] and "tf32" not in inside[3:6]
    assert after == before


def test_where_it_is_off_nothing_is_touched(states):
    before, inside, _ = states["nothing"]
    assert inside == before and all(states[way][0] != before for way in WAYS if way != "nothing")
