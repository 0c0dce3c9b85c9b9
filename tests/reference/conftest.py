"""The small problems of the referee's own tests."""

from tests.referee.conftest import problem_of  # noqa: F401
