"""A process that ends with the one that started it, with everything it has started, whatever native code does.

The starting process keeps one end of a pipe, the lifeline, and its system closes it when that process ends, however
it ends. A guard, forked before anything is loaded, waits for that and then kills the whole group of processes. Native
code cannot keep it from doing so: a thread of the same interpreter waits for a lock that native code may hold forever.
On Linux the kernel also kills the process itself (`PR_SET_PDEATHSIG`), should the guard be killed. Windows needs
none of this: a job object ends a tree with the last handle to it.

Only the standard library is imported here, and little of it: this runs first in every process that we start.
"""

from __future__ import annotations

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def hold(lifeline: int, parent: int, others: tuple[int, ...] = ()) -> None:
    """End with `parent`, the process that has the other end of the pipe `lifeline`; the guard leaves `others` alone."""
    if sys.platform == "linux":
        end_with_parent()
    if sys.platform != "win32":
        if os.getppid() != parent:  # it ended before the kernel was asked, so no signal would come
            os._exit(1)
        _fork_guard(lifeline, others)
        os.close(lifeline)


def end_with_parent() -> None:
    """Be killed when the thread that started us ends; processes are therefore started in a thread that stays."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return  # an interpreter without ctypes still has the guard


if sys.platform != "win32":

    def _fork_guard(lifeline: int, others: tuple[int, ...]) -> None:
        """Leave a process in our group that kills it when the lifeline closes; it is not our child."""
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            return
        # The program must not find a child that it did not start, so that the guard is the child of a child.
        if os.fork():
            os._exit(0)
        _guard(lifeline, others)

    def _guard(lifeline: int, others: tuple[int, ...]) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        # Readers of our pipes must see them closed when the program ends, and not when the guard does; and the
        # folder that the program works in must be free to go.
        nothing = os.open(os.devnull, os.O_RDWR)
        for file in (0, 1, 2, *others):
            os.dup2(nothing, file)
        os.chdir("/")  # noqa: TID251 - a process of its own, in which nothing else runs
        try:
            os.read(lifeline, 1)
        finally:
            os.killpg(0, signal.SIGKILL)
