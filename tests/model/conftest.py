"""What tests of model share with those of results."""

from tests.results.conftest import make_record  # noqa: F401
