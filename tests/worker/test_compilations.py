"""How many graphs torch.compile has compiled in a worker: asked before and after a baseline is timed."""

from __future__ import annotations

import threading

import torch

from harness.protocol.frames import Channel, channel_pair
from harness.worker.__main__ import Worker


def test_a_compilation_is_counted_once_and_a_new_shape_again():
    near, far = channel_pair()
    worker = Worker(Channel(far), None)
    threading.Thread(target=lambda: _serve(worker), daemon=True).start()

    def counted() -> int:
        near.send({"op": "compilations"}, 5.0)
        return near.receive(5.0)["compilations"]

    twice = torch.compile(lambda x: x + x, backend="eager")
    twice(torch.ones(3))
    before = counted()
    twice(torch.ones(3))
    assert counted() == before >= 1
    twice(torch.ones(5))
    assert counted() == before + 1
    near.close()


def _serve(worker: Worker) -> None:
    try:
        worker.serve()
    except Exception:
        pass  # the test has closed its end
