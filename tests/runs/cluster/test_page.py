"""The program on the page about clusters does what the page says of it."""

from __future__ import annotations

import re
from contextlib import nullcontext

import pytest
from fake_executors import FakeExecutors, answer_to

from harness.model.paths import REPOSITORY
from harness.runs.cluster import referees
from harness.runs.cluster.link import Link

PAGE = REPOSITORY / "docs" / "cluster.md"
SOURCE = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n"


def test_every_port_that_ray_can_be_told_is_named():
    from ray.scripts.scripts import start

    flags = {flag for each in start.params if not getattr(each, "hidden", False) for flag in each.opts if "port" in flag}
    named = set(re.findall(r"--[\w-]+", PAGE.read_text(encoding="utf-8")))
    assert "--runtime-env-agent-port" in flags and flags <= named, flags - named


@pytest.mark.timeout(120)
def test_the_training_loop_opens_the_judges_once_and_learns_from_every_reward(monkeypatch):
    opened, sampled, learned = [], [], []

    def judge(place, asked):
        is_noisy = "# noisy" in asked["candidate"]["source"]
        changes = {"status": "unsure", "reason_code": "noisy", "reason": "noisy"} if is_noisy else {}
        return answer_to(asked, **changes)

    def places(*_, **__):
        opened.append(FakeExecutors(judge))
        return opened[-1]

    def sample_from_the_policy(count):
        sampled.append(count)
        return [f"{SOURCE}# {len(sampled)}\n", f"{SOURCE}# noisy {len(sampled)}\n"]

    monkeypatch.setattr(referees, "RayExecutors", places)
    monkeypatch.setattr(referees, "connected", lambda *_: nullcontext(Link("cpu")))
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    exec(compile(program, str(PAGE), "exec"), {  # noqa: S102
        "sample_from_the_policy": sample_from_the_policy, "learn_from": lambda *pair: learned.append(pair),
    })
    assert len(opened) == 1 and len(sampled) > 1
    # What another try may judge otherwise teaches nothing.
    assert learned == [(f"{SOURCE}# {step}\n", 0.1) for step in range(1, len(sampled) + 1)]
    assert len(opened[0].jobs) == 2 * len(sampled)
