"""The program that runs in the other process: reads requests, calls operations, writes answers.

Started as a script, so that it works in an environment that does not have winml-modelkit: the folder of our own
source is appended after that environment's packages. Only the standard library is imported here.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import queue
import signal
import sys
import threading
import traceback
import warnings
from typing import Any, BinaryIO, NoReturn

Message = dict[str, Any]


class Context:
    """What an operation may use in addition to its arguments."""

    def __init__(self, channel: BinaryIO) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self.stop = threading.Event()
        """Set when the caller wants what there is so far; long operations look at it between steps."""

    def send(self, message: Message) -> None:
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            self._channel.write(line)
            self._channel.flush()

    def tell(self, event: object) -> None:
        """Send the caller an event on progress, by a value whose field `event` is the name."""
        from winml.modelkit.core.values import to_json

        self.send(to_json(event))


def ping(args: Message, context: Context) -> Message:
    """Answer; imports the modules named in `args` first, so that a caller can wait for a warm process."""
    for name in args.get("modules", ()):
        importlib.import_module(name)
    return {"pid": os.getpid(), "python": sys.version.split()[0], "echo": args.get("echo")}


def _own_stdout() -> BinaryIO:
    """The pipe to the caller; what native code prints to stdout goes to the log from now on."""
    sys.stdout.flush()
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return channel


def _own_stdin() -> BinaryIO:
    """The pipe from the caller; anything else that reads stdin finds it empty from now on.

    Windows serializes access to a pipe: while a thread waits to read it, a library that asks for the kind of its stdin
    when it is loaded waits too, indefinitely (numpy does, https://github.com/numpy/numpy/issues/24290).
    """
    channel = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return channel


def _read_requests(channel: BinaryIO, requests: queue.SimpleQueue[Message], context: Context) -> None:
    """Feed the queue until the caller closes the pipe, which means it is gone: then leave at once.

    A thread of its own, because an operation cannot look; while native code keeps the interpreter's lock this thread
    cannot either, and the lifeline ends the process.
    """
    for line in channel:
        message = json.loads(line)  # noqa: TID251 - our own process wrote it
        if message.get("op") == "stop":
            context.stop.set()
        else:
            requests.put(message)
    # Native libraries that crash in their exit handlers must not have a say.
    os._exit(0)


def _failure(error: BaseException) -> Message:
    """The error as the caller needs it: ours with its class, a bug with its traceback."""
    from winml.modelkit.core.errors import (
        DiskFull,
        ModelkitError,
        RunFailedError,
        UnavailableError,
        is_full,
        of_name,
        of_system,
    )
    from winml.modelkit.core.values import to_json

    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("winml"):
        error = UnavailableError(
            f"Python package `{error.name.partition('.')[0]}` is not installed",
            hint=f"install it for {sys.executable}",
        )
    if isinstance(error, OSError):
        error = of_system(error) or error
    elif isinstance(error, UnicodeEncodeError):
        error = of_name(error) or error
    elif is_full(error):  # a native library, which has only words for it
        error = DiskFull(f"disk full: {str(error).strip().splitlines()[0]}", hint="free some space, then run it again")
    if isinstance(error, MemoryError):
        error = RunFailedError(f"out of memory: {error or 'allocation failed'}", hint="use a smaller batch or input")
    if isinstance(error, ModelkitError):
        known = {} if error.result is None else to_json(error.result)
        return {"error": error.to_json(), "details": {**error.details, **known}}
    return {"bug": "".join(traceback.format_exception(error))}


def _answer(message: Message, table: dict[str, str], context: Context) -> Message:
    module, _, function = table[message["op"]].partition(":")
    try:
        from winml.modelkit.core.values import to_json

        operation = getattr(importlib.import_module(module), function)
        return {"ok": to_json(operation(message.get("args", {}), context))}
    except Exception as error:  # noqa: BLE001 - whatever an operation raises is its answer
        return _failure(error)


def _preload(modules: list[str]) -> None:
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception:  # noqa: BLE001 - the operation that needs it fails the same way and can say so
            return


_OWN_THREADS = 2
"""The one that works and the one that reads requests, which waits for the system and holds no lock of ours."""


if sys.platform == "linux":

    def _may_fork() -> bool:
        """Whether this process has no threads of others: a fork takes one thread only, and locks as they are."""
        return len(os.listdir("/proc/self/task")) <= _OWN_THREADS  # noqa: PTH208 - imports less

    def _answer_apart(message: Message, table: dict[str, str], context: Context) -> None:
        """Answer in a forked process, so that whatever the operation leaves behind goes with it."""
        reading, writing = os.pipe()
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of Python 3.12, on threads
            child = os.fork()
        if child:
            os.close(writing)
            with os.fdopen(reading, "rb") as answer:
                line = answer.read()
            _, status = os.waitpid(child, 0)
            if os.WIFSIGNALED(status):  # the caller learns how it died from our own death
                with contextlib.suppress(OSError):  # SIGKILL has no handler to set
                    signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
                os.kill(os.getpid(), os.WTERMSIG(status))
            if status:
                os._exit(os.waitstatus_to_exitcode(status))
            context.send(json.loads(line))  # noqa: TID251 - our own process wrote it
            return
        import tempfile

        from winml.modelkit.worker.lifeline import end_with_parent

        end_with_parent()
        folder = tempfile.mkdtemp(prefix="apart-", dir=os.getcwd())  # noqa: PTH109 - imports less
        os.chdir(folder)  # noqa: TID251 - a process of its own, which answers one request
        context.send({"forked": os.getpid()})
        found = {"id": message["id"], "apart": True, **_answer(message, table, context)}
        with os.fdopen(writing, "wb") as answer:
            answer.write(json.dumps(found).encode())
        os._exit(0)

else:

    def _may_fork() -> bool:
        return False

    def _answer_apart(message: Message, table: dict[str, str], context: Context) -> None:
        raise NotImplementedError("a process is forked on Linux only")


def serve(preload: list[str]) -> NoReturn:
    """Answer requests until the caller closes the pipe."""
    context = Context(_own_stdout())
    context.send({"pid": os.getpid()})  # not the process that was started, where that is a launcher
    requests: queue.SimpleQueue[Message] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(_own_stdin(), requests, context), daemon=True).start()
    from winml.modelkit.worker.operations import OPERATIONS

    _preload(preload)
    while True:
        message = requests.get()
        context.stop.clear()
        if message.get("apart") and _may_fork():
            _answer_apart(message, OPERATIONS, context)
        else:
            context.send({"id": message["id"], **_answer(message, OPERATIONS, context)})


if __name__ == "__main__":
    sys.path.append(sys.argv[1])
    if sys.argv[2]:
        from winml.modelkit.worker.lifeline import hold

        hold(int(sys.argv[2]), int(sys.argv[3]))
    serve(sys.argv[4:])
