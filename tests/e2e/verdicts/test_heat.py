"""A device that slows down for heat for as long as a run lasts: rows without a time, and a run that ends as any other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.build.cache import ENVIRONMENT_VARIABLE
from harness.device.cpu import CpuBackend
from harness.device.identity import Telemetry
from harness.judge import run
from harness.model.candidate import read_candidate
from harness.model.paths import REPOSITORY
from harness.model.problem import load_problem
from harness.model.settings import load_settings
from harness.report.progress import NullProgress

CORPUS = REPOSITORY / "tests" / "adversarial"
CANDIDATE = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return torch.tril(a @ b)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("players", [1, 2])
def test_a_device_that_is_too_hot_all_along_gives_no_time_and_blames_nobody(tmp_path, monkeypatch, players):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(CpuBackend, "telemetry", lambda bench, own_pids: Telemetry(celsius=95.0, throttle="sw_thermal"))
    problem = replace(load_problem(CORPUS / "tril_small.yaml", CORPUS), check_sizes=({"M": 31},), cpu_sizes={"M": 64})
    (tmp_path / "mine.py").write_text(CANDIDATE)
    settings = replace(load_settings("quick"), players=players)
    request = run.RunRequest(problem, [read_candidate(tmp_path / "mine.py")], "cpu", settings, tmp_path / "results")
    records = {record.candidate: record for record in run.run(request, NullProgress()).records}
    assert set(records) == {"eager", "mine"}
    for record in records.values():
        assert (record.status.value, record.reason_code.value) == ("unsure", "throttled"), record.reason
        assert "rounds were dropped because the GPU slowed down for heat" in record.reason
        assert record.speedup is record.time_us is record.rank is None
        assert (record.throttle, record.celsius) == ("sw_thermal", 95.0)
