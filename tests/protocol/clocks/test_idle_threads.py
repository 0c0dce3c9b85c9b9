"""How long the idle threads of libraries spin, which take a core from whoever is timed next."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from harness.protocol.clocks.idle_threads import SPIN, shorten_spinning

pytest.importorskip("numpy")


def core_seconds_after_a_product(**more: str) -> float:
    """What NumPy's threads take of the cores in the 0.3 s after a product."""
    program = (
        "import numpy, os, time\n"
        "A = numpy.ones((512, 512))\n"
        "A @ A\n"
        "before = time.process_time()\n"
        "time.sleep(0.3)\n"
        "took = time.process_time() - before\n"
        "print(took, len(os.sched_getaffinity(0)), numpy.show_config('dicts'))\n"
    )
    environment = {name: text for name, text in os.environ.items() if name not in SPIN}
    environment |= {"OPENBLAS_NUM_THREADS": "2", **more}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True,
        # A process of the suite may have one core to itself, on which there is no other thread to spin.
        preexec_fn=lambda: os.sched_setaffinity(0, range(os.cpu_count())),
    )
    took, cores, *built_with = done.stdout.split()
    if "openblas" not in " ".join(built_with) or int(cores) < 2:
        pytest.skip("there is no second core, or another library than OpenBLAS")
    return float(took)


def test_spinning_is_shortened_unless_the_user_chose_otherwise():
    environment = {"KMP_BLOCKTIME": "200"}
    shorten_spinning(environment)
    assert environment == {**SPIN, "KMP_BLOCKTIME": "200"}
    assert set(SPIN) == {"GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OPENBLAS_THREAD_TIMEOUT"}


@pytest.mark.alone
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="which cores it may use is not said here")
def test_the_threads_of_numpys_products_rest_soon_after_them():
    if max(core_seconds_after_a_product() for _ in range(3)) < 0.02:
        pytest.skip("they do without being told, or a busy machine leaves them no core to spin on")
    assert min(core_seconds_after_a_product(**SPIN) for _ in range(3)) < 0.01


@pytest.mark.parametrize("program", [
    "import harness; harness.Referee", "from harness import evaluate",
    "from harness.cli import main; main(['serve', '--device', 'cpu'])",
])
@pytest.mark.processes
def test_programs_that_keep_a_judge_shorten_it_before_pytorch_is_there(program):
    watching = (
        "import os, sys\n"
        "def heed(event, arguments):\n"
        "    if event == 'import' and arguments[0] == 'torch':\n"
        "        print('torch', os.environ.get('GOMP_SPINCOUNT'), file=sys.stderr)\n"
        "sys.addaudithook(heed)\n"
    )
    environment = {name: text for name, text in os.environ.items() if name not in SPIN}
    done = subprocess.run(
        [sys.executable, "-c", watching + program], env=environment, capture_output=True, text=True, check=True,
        stdin=subprocess.DEVNULL,
    )
    assert [line for line in done.stderr.splitlines() if line.startswith("torch ")][0] == "torch 10000"
