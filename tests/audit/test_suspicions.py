"""What a source gives away before it runs."""

from __future__ import annotations

import pytest
from shipped import shipped

from harness.audit.suspicions import suspicions_in


@pytest.mark.parametrize(("source", "text", "patches"), [
    ("import torch\ntorch.cuda.Event.elapsed_time = lambda a, b: 0.001", "line 2 replaces torch.cuda.Event.elapsed_time", True),
    ("from torch.cuda import Event as E\nE.record = print", "line 2 replaces torch.cuda.Event.record", True),
    ("import time\nsetattr(time, 'perf_counter_ns', print)", "line 2 replaces an attribute of time", True),
    ("from harness.protocol.clocks import stopwatch", "line 1 imports harness.protocol.clocks, the judge's own code", True),
    ("import torch, harness.judge as judge", "line 1 imports harness.judge, the judge's own code", True),
    ("import gc\nx = gc.get_objects()", "line 2 looks through all objects of its process (gc.get_objects)", False),
    ("import torch\nf = torch._C._autograd._profiler_enabled()",
     "line 2 asks whether it is being traced (torch._C._autograd._profiler_enabled)", False),
    ("from torch._C._autograd import _profiler_enabled as on\nf = on()",
     "line 2 asks whether it is being traced (torch._C._autograd._profiler_enabled)", False),
    ("from sys import modules\nm = modules['x']", "line 2 looks through the loaded modules (sys.modules)", False),
    ("from torch.nn.modules.module import register_module_forward_hook as hook\nhook(print)",
     "line 2 is called wherever a module is (torch.nn.modules.module.register_module_forward_hook)", False),
    ("import sys\nf = sys._getframe(1)", "line 2 looks at its callers' frames (sys._getframe)", False),
    ("import ctypes\nc = ctypes.CDLL('libcupti.so.13')", "line 2 names CUPTI, which records its launches", False),
    ("c = None\nc.cuptiFinalize()", "line 2 names CUPTI, which records its launches", False),
    ("from cupti import cupti as c\nc.finalize()", "line 2 names CUPTI, which records its launches", False),
    ("S = 'int cuptiUnsubscribe(void*);'", "line 1 names CUPTI, which records its launches", False),
    ("m = open(f'/proc/{1}/maps')", "line 1 looks at its own process's memory and files (/proc)", False),
    ("S = 'FILE* f = fopen(\"/proc/self/maps\", \"r\");'", "line 1 looks at its own process's memory and files (/proc)", False),
    ("import sys\nm = sys.modules['x']", "line 2 looks through the loaded modules (sys.modules)", False),
])
def test_what_reaches_outside_is_named_with_its_line(source, text, patches):
    (found,) = suspicions_in(source)
    assert (found.text, found.patches) == (text, patches)


@pytest.mark.parametrize("source", [
    "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True",
    "import os\nos.environ['X'] = '1'",
    "import torch\nclass ModelNew(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.time = 1",
    "import torch\nx = torch.empty(3)\nx.data = x",
    "import sys\nsys.dont_write_bytecode = True",
    "\"\"\"What /proc/self/maps and CUPTI are.\"\"\"\nC = open('/proc/cpuinfo')",
    "def broken(:",
    "",
])
def test_ordinary_sources_give_nothing_away(source):
    assert suspicions_in(source) == []


def test_the_shipped_candidates_give_nothing_away():
    for path in shipped("candidates/**/*.py"):
        assert suspicions_in(path.read_text(encoding="utf-8")) == [], path


def test_a_path_of_thousands_of_names_is_no_error():
    source = "import torch\ndef never():\n    torch" + 900 * ".a" + "\n    torch.cuda.Event = None\n"
    assert [each.text for each in suspicions_in(source)] == ["line 4 replaces torch.cuda.Event"]
    assert suspicions_in("x" + 100_000 * ".a") == []
