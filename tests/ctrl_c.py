"""Ctrl-C as a person presses it, at a moment that a test names.

Windows tells everybody at a console of it, so a program that a test presses it for has one of its own
(`OWN_CONSOLE`), and another program goes there to press it. Started as a program itself, this file is `winml` that
writes the classes of its events and their texts to a file: the sign that a test waits for.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CTRL_C = 0
CTRL_BREAK = 1
OWN_CONSOLE: dict[str, Any] = {"creationflags": subprocess.CREATE_NO_WINDOW} if sys.platform == "win32" else {}
"""Options of `subprocess.Popen`; a console without a window, so that no screen is needed."""

_PRESSES = """
import ctypes, sys
kernel = ctypes.WinDLL("kernel32", use_last_error=True)
kernel.FreeConsole()
pid, key = map(int, sys.argv[1:])
# It is not for us. Windows has a switch for Ctrl-C alone, and calls a function for the other keys.
heard = ctypes.WINFUNCTYPE(ctypes.c_int, ctypes.c_uint)(lambda key: 1) if key else None
if not (
    kernel.AttachConsole(pid)
    and kernel.SetConsoleCtrlHandler(heard, True)
    and kernel.GenerateConsoleCtrlEvent(key, 0)
):
    sys.exit(str(ctypes.WinError(ctypes.get_last_error())))
"""


def start(argv: list[str], **options: Any) -> subprocess.Popen[str]:
    """Start a program that Ctrl-C can be pressed for."""
    return subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", **OWN_CONSOLE, **options
    )


def press_ctrl_c(process: subprocess.Popen[Any]) -> None:
    """Press Ctrl-C where a process runs, which was started with `OWN_CONSOLE`."""
    if sys.platform == "win32":
        press(CTRL_C, process)
    else:
        import signal

        process.send_signal(signal.SIGINT)


def press(key: int, process: subprocess.Popen[Any]) -> None:
    """Press a key of Windows at the console of a process."""
    argv = [sys.executable, "-c", _PRESSES, str(process.pid), str(key)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, **OWN_CONSOLE)
    assert done.returncode == 0, done.stderr


class Telling:
    """`winml` as a program that tells which events it had."""

    def __init__(self, folder: Path) -> None:
        self._marks = folder / "events.txt"

    def argv(self, *words: str | Path) -> list[str]:
        return [sys.executable, __file__, str(self._marks), *map(str, words)]

    def wait_for(self, kind: str, process: subprocess.Popen[Any], *, count: int = 1) -> None:
        """Wait until there were `count` events of a class, or with a text."""
        deadline = time.monotonic() + 300
        while not self._marks.is_file() or self._marks.read_text("utf-8").split().count(kind) < count:
            assert process.poll() is None, f"it ended before `{kind}`"
            assert time.monotonic() < deadline, f"no `{kind}`"
            time.sleep(0.02)


def _tell(marks: Path) -> None:
    from winml.modelkit.cli.perf_progress import PerfProgress
    from winml.modelkit.cli.progress import LineProgress

    for kind in (PerfProgress, LineProgress):
        kind.on_event = _telling(marks, kind.on_event)  # type: ignore[method-assign]


def _telling(marks: Path, shown: Any) -> Any:
    def on_event(self: object, event: Any) -> None:
        texts = [value for value in vars(event).values() if isinstance(value, str)]
        with marks.open("a", encoding="utf-8") as stream:
            stream.write(" ".join([type(event).__name__, *texts]) + "\n")
        shown(self, event)

    return on_event


if __name__ == "__main__":
    from winml.modelkit.cli.main import main

    _tell(Path(sys.argv.pop(1)))
    main()
