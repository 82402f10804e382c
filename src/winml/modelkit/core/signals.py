"""What servers do on Ctrl-C and SIGTERM."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def end_on_signals(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` on Ctrl-C, and on SIGTERM: a shell starts background processes with Ctrl-C ignored.

    Not by an exception: one that is raised while Python cleans something up is lost, and with it the Ctrl-C.
    """
    before = {number: signal.signal(number, lambda *_: stop()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
