"""A matrix is of one model of GPU: a cluster of several is refused before anything is judged there."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from listening import Listening

from harness.model.errors import InputError
from harness.selftest import adversarial
from harness.selftest.corpus import CORPUS, read_corpus


def test_a_cluster_of_several_models_is_refused_before_anything_is_judged(monkeypatch, tmp_path):
    judged = []
    monkeypatch.setattr(adversarial, "judge_on_cluster", lambda asked, *_: judged.append(asked) or [])
    link = SimpleNamespace(kind="cuda", models=["A100", "H100"])
    with pytest.raises(InputError, match="A100, H100. Choose one with --accelerator A100"):
        adversarial.run_corpus(read_corpus(CORPUS), ("auto",), tmp_path, Listening(), link)
    assert not judged
