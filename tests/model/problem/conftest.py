"""A working folder with a right problem file and its reference in it, each of which a test may get wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.model.problem import Problem, load_problem

REFERENCE = """\
import torch
M = 4096
K: int = 4 * 2
N = 4
class Model(torch.nn.Module):
    pass
def get_inputs():
    return []
def get_init_inputs():
    return []
"""
YAML = """\
title: A product
reference: x.py
dtype: float32
sizes:
  timed: {M: 4096, K: 8, N: 4}
  check:
    - {M: 1, K: 1, N: 1}
    - {M: 31, K: 9, N: 3}
  cpu: {M: 512, K: 8, N: 4}
useful:
  flops: "2*M*K*N"
  bytes: "4*(M*K + K*N + M*N)"
accuracy: {class: fp32, scale: abs_inputs, terms: K, contracted: [1, 0]}
baselines: [eager, torch.compile, eager-tf32]
kinds: [custom]
"""
MINIMAL = "title: A sum\nreference: x.py\n"


class Files:
    """The texts of a right `x.yaml` and `x.py`, and of the shortest YAML there is."""

    yaml, reference, minimal = YAML, REFERENCE, MINIMAL

    def load(self, yaml: str | bytes = YAML, reference: str | bytes = REFERENCE) -> Problem:
        for name, content in (("x.yaml", yaml), ("x.py", reference)):
            Path("problems", name).write_bytes(content.encode() if isinstance(content, str) else content)
        return load_problem(Path("problems/x.yaml"))

    def message(self, yaml: str | bytes = YAML, reference: str | bytes = REFERENCE) -> str:
        """What is said of texts that are no problem."""
        with pytest.raises(InputError) as caught:
            self.load(yaml, reference)
        assert caught.value.exit_code == 2
        return str(caught.value)


@pytest.fixture
def files(tmp_path, monkeypatch) -> Files:
    """Below a working folder with `problems/` in it, so that messages read as they do in a repository."""
    (tmp_path / "problems").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.model.paths.SHIPPED", tmp_path)
    return Files()
