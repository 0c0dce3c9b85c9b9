"""Property tests here are the same in every run and are not timed: a busy machine is no failure."""

from __future__ import annotations

import socket

import pytest
from hypothesis import HealthCheck, settings

from harness.protocol.frames import channel_pair

settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("steady")


@pytest.fixture
def wire():
    """A channel and the raw socket of its far end; both are closed afterwards."""
    channel, far = channel_pair()
    far.settimeout(5)
    yield channel, far
    channel.close()
    try:
        far.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    far.close()
