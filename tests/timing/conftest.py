"""What tests of timing share with those of judge."""

from tests.judge.conftest import (  # noqa: F401
    child, cpu_backend, fixtures_folder, opened, problem_of, reference_of, returning, session_with, settings, undescribed,
)
