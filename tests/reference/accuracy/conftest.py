"""Property tests here are the same in every run and are not timed: a busy machine is no failure."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")
