"""The benchmarks as modules, though their folder is no package."""

from __future__ import annotations

import importlib
import sys

import pytest

from harness.model.paths import REPOSITORY


@pytest.fixture(scope="session")
def benchmark_named():
    """`benchmark_named("against_itself")`: that file of benchmarks/, imported."""

    def named(name):
        sys.path.insert(0, str(REPOSITORY / "benchmarks"))
        try:
            return importlib.import_module(name)
        finally:
            sys.path.remove(str(REPOSITORY / "benchmarks"))

    return named
