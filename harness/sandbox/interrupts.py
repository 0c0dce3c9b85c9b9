"""A few lines that Ctrl-C ends after them and not within: what puts things away would leave half of them there."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold the handler of SIGINT back until the end of the `with`; what is in it must not wait for the user.

    In the main thread: elsewhere none is called. The handler is Python's, so that a signal to any thread is held.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    came = []
    signal.signal(signal.SIGINT, lambda *arguments: came.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(*came[0])
