"""A small problem, its reference on the CPU, and devices and workers that follow a script."""

from __future__ import annotations

import functools
import json
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from fake_worker import PRODUCT

from harness.device.cpu import CpuBackend
from harness.launch.session import Session
from harness.model.formulas import Formula
from harness.model.problem import AccuracyRule, Problem
from harness.model.settings import Settings
from harness.protocol.frames import channel_pair
from harness.reference.reference_model import Reference

UNDESCRIBED = """
import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {layers}

    def forward(self, *x):
        return {result}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""

CPU = torch.device("cpu")


@pytest.fixture
def problem_of(tmp_path):
    """`problem_of(source, **fields)`: a problem whose reference is `source`; written to a file, never validated."""

    def make(source: str = PRODUCT, **fields: Any) -> Problem:
        path = tmp_path / "reference_under_test.py"
        path.write_text(source)
        plain = Problem(
            name="small", title="small", path=path, reference_path=path, reference_source=source, sizes={"M": 16},
            cpu_sizes={"M": 16}, check_sizes=(), dtype="float32", flops=None, bytes=None,
            accuracy=AccuracyRule(scale="abs_inputs", terms=Formula("M"), contracted=(1, 0)), baselines=("eager",),
            kinds=("custom",), candidates_dir=tmp_path, hash="0" * 16,
        )
        return replace(plain, **fields)

    return make


@pytest.fixture
def reference_of(problem_of):
    """`reference_of(source, sizes, **fields)`: its reference on the CPU."""

    def make(source: str = PRODUCT, sizes: dict[str, int] | None = None, **fields: Any) -> Reference:
        return Reference(problem_of(source, **fields), {"M": 16} if sizes is None else sizes, CPU, seed=1)

    return make


@pytest.fixture
def undescribed(reference_of):
    """`undescribed(result, inputs, layers)`: a reference that returns `result` of `x` and the model's `layers`; nothing
    says how long its sums are.
    """

    def make(result: str, inputs: str, layers: str = "pass") -> Reference:
        source = UNDESCRIBED.format(result=result, inputs=inputs, layers=layers)
        return reference_of(source, sizes={}, accuracy=AccuracyRule())

    return make


@pytest.fixture
def settings():
    return Settings(
        name="test", half_width=0.005, budget_s=30, players=1, warmup_s=0.0, check_launches=1, looks=(5, 10, 20),
        load_timeout_s=1.0, launch_timeout_s=1.0,
    )


@pytest.fixture
def returning():
    """`returning(result)`: the source of a product of oblong matrices, whose forward returns `result` instead."""
    oblong = PRODUCT.replace("M = 16", "M = 16\nN = M // 2")
    oblong = oblong.replace("rand(M, M), torch.rand(M, M)", "rand(M, N), torch.rand(N, M)")
    return lambda result="torch.matmul(A, B)": oblong.replace("torch.matmul(A, B)", result)


@dataclass
class Far:
    """The far end of a wire, in the hands of a scripted worker on `backend`."""

    socket: socket.socket
    backend: ClassVar[CpuBackend]

    def say(self, frame: Any) -> None:
        self.raw(json.dumps(frame).encode())

    def raw(self, body: bytes) -> None:
        self.socket.sendall(struct.pack(">I", len(body)) + body)

    def hear(self) -> dict[str, Any]:
        (length,) = struct.unpack(">I", self._exactly(4))
        return json.loads(self._exactly(length))

    def greet(self) -> None:
        """Everything that an honest worker says before it is asked to load."""
        self.say({"hello": 1})
        assert self.hear()["op"] == "prepare"
        self.say({"prepared": "cpu"})

    def load(self, reply: Any = None) -> None:
        self.greet()
        assert self.hear()["op"] == "load"
        self.say({"loaded": True, "state": {}, "alike": True} if reply is None else reply)

    def make_ready(self) -> None:
        self.load()
        for op in ("open", "layout"):
            assert self.hear()["op"] == op
            self.say({"opened" if op == "open" else "laid_out": True})

    def launches(self, count: int, *, report: Any = None, times: Any = None) -> int:
        """One round of launches: turns in order, answered by go, and a report. Returns the number of the first."""
        command = self.hear()
        assert command["op"] == "launch"
        first = command["first"]
        for index in range(count):
            self.begin(first + index)
        self.say({"turn": first + count})
        self.say({"queued": count})
        each = report or {"host_us": 5.0, "values": []}
        self.say({
            "launched": [dict(each, time_us=time_us) for time_us in times or [10.0] * count], "end_to_end_us": 12.0
        })
        return first

    def begin(self, sequence: int) -> None:
        """Reach a launch, be let go, and make the cache cold as a worker does."""
        self.say({"turn": sequence})
        self.flush(sequence)

    def flush(self, sequence: int) -> None:
        """Hear that launch `sequence` may go, and make the cache cold."""
        answer = self.hear()
        assert answer["go"] == sequence
        self.backend._cache_flush.run(answer["word"])
        self.say({"flushed": sequence})

    def stay(self) -> None:
        """Live, and say nothing, until the other end hangs up."""
        while self.socket.recv(4096):
            pass

    def _exactly(self, count: int) -> bytes:
        body = b""
        while len(body) < count:
            chunk = self.socket.recv(count - len(body))
            if not chunk:
                raise EOFError
            body += chunk
        return body


class ScriptedChild:
    """Stands for a spawned worker: `script(far)` runs in a thread, and its return is the death of the process."""

    pid, has_greeted = 0, False

    def __init__(self, script: Callable[[Far], None], death: str = "exited with status 0", said: str = "") -> None:
        self.channel, far = channel_pair()
        self._death, self._said = death, said
        self.ran_out_of_memory = False
        self.killed = 0
        self._thread = threading.Thread(target=self._attempt, args=(script, far), daemon=True)
        self._thread.start()

    def _attempt(self, script: Callable[[Far], None], far: socket.socket) -> None:
        far.settimeout(20)
        try:
            script(Far(far))
        except (EOFError, OSError):
            pass
        finally:
            far.close()

    def wait(self, timeout_s: float) -> int:
        self._thread.join(timeout_s)
        return 0

    def death(self) -> str:
        return self._death

    def output(self) -> str:
        return self._said

    def kill(self, meanwhile: Callable[[], None] | None = None) -> None:
        self.killed += 1
        self.channel.close()


@pytest.fixture
def child():
    """Makes scripted workers and ends them."""
    made = []

    def make(script: Callable[[Far], None], **how: Any) -> ScriptedChild:
        made.append(ScriptedChild(script, **how))
        return made[-1]

    yield make
    for each in made:
        each.kill()
        each.wait(5.0)  # one that still makes a cache cold would write into the next test's


@functools.cache
def _the_cpu_backend() -> CpuBackend:
    """One for all folders of tests: each conftest that takes over the fixture has it anew, and a `Far` knows one alone."""
    Far.backend = CpuBackend()
    return Far.backend


@pytest.fixture
def cpu_backend():
    return _the_cpu_backend()


@pytest.fixture
def fixtures_folder() -> Path:
    return Path(__file__).resolve().parents[1] / "fixtures"


@pytest.fixture
def session_with(child, cpu_backend):
    """`session_with(script)`: a session with a scripted worker and limits of 0.6 s."""
    return lambda script, **how: Session(child(script, **how), cpu_backend, 0.6, 0.6)


@pytest.fixture
def opened(session_with, reference_of):
    """`opened(script)`: a session that is loaded and open for two launches, its reference, and two sets of inputs."""

    def make(script, **how):
        def attempt(far):
            far.make_ready()
            script(far)

        session, reference = session_with(attempt, **how), reference_of()
        session.load("/x.py", reference, {}, 1)
        session.open(reference, 2)
        return session, reference, [reference.draw(), reference.draw()]

    return make
