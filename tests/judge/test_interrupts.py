"""Ctrl-C while things are put away: it is heard, after them."""

from __future__ import annotations

import signal
import threading

import pytest

from harness.judge.build_pool import undisturbed


@pytest.fixture(autouse=True)
def pythons_own_handler():
    """A suite started in the background inherits SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_within_is_raised_at_the_end_and_once():
    done = []
    with pytest.raises(KeyboardInterrupt):
        with undisturbed():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            done.append("put away")
    assert done == ["put away"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_one_nothing_is_raised_and_an_error_within_is_told():
    with undisturbed():
        pass
    with pytest.raises(ValueError, match="of its own"), undisturbed():
        raise ValueError("of its own")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_another_thread_which_no_signal_reaches_changes_nothing():
    during = []

    def put_away():
        with undisturbed():
            during.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=put_away)
    thread.start()
    thread.join()
    assert during == [signal.default_int_handler]


def test_who_ignores_interrupts_goes_on_ignoring_them():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with undisturbed():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
