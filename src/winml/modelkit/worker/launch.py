"""Becomes another program that ends with the process that started it: `launch.py LIFELINE STATUS PARENT PROGRAM ...`.

`STATUS` is a pipe on which the number of the error is written when the program cannot be started, and which is closed
without a word when it can.
"""

from __future__ import annotations

import os
import signal
import sys


def main(lifeline: int, status: int, parent: int, argv: list[str]) -> None:
    """Take hold of the lifeline, then become the program: its number stays ours, and so does how it ends."""
    from lifeline import hold  # type: ignore[import-not-found, unused-ignore]  # beside this file

    os.set_inheritable(status, False)
    hold(lifeline, parent, (status,))
    _restore_signals()
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - the words come from our caller, and no shell is wanted
    except OSError as error:
        os.write(status, str(error.errno).encode())
        os._exit(127)


def _restore_signals() -> None:
    """What the interpreter ignores for itself is not for the program."""
    if sys.platform != "win32":
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))  # noqa: PTH120 - pathlib takes longer to import than all of this
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
