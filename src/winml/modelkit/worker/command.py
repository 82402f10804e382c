"""Runs another program to its end, with its output in a file and its whole process tree under control."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.worker.process_tree import ProcessTree

_POLL_S = 0.1


@dataclass(frozen=True)
class Finished:
    """How a program ended; `returncode` is None when it was ended for taking too long."""

    returncode: int | None
    output: str

    @property
    def ok(self) -> bool:
        return self.returncode == 0

    def tail(self, lines: int = 15) -> list[str]:
        return [line for line in self.output.splitlines() if line.strip()][-lines:]


def wait_for(
    process: subprocess.Popen[bytes], timeout_s: float, on_wait: Callable[[float], None] = lambda _: None
) -> int | None:
    """The exit code of a process; None when it takes too long.

    In steps: on Windows a longer wait does not notice Ctrl-C. `on_wait` gets how long it has run.
    """
    started = time.monotonic()
    while True:
        try:
            return process.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            elapsed = time.monotonic() - started
            if elapsed > timeout_s:
                return None
            on_wait(elapsed)


def run_command(
    argv: list[str] | str,
    *,
    cwd: Path,
    log: Path,
    timeout_s: float,
    out: Path | None = None,
    env: dict[str, str] | None = None,
    on_wait: Callable[[float], None] = lambda _: None,
    on_start: Callable[[int], None] = lambda _: None,
) -> Finished:
    """Run a program; Ctrl-C and a timeout end it and everything it started.

    `output` is what it wrote to stdout and stderr; with a file `out` stdout goes there instead. `on_start` gets the
    number of the process, `on_wait` how long it has run.
    """
    with contextlib.ExitStack() as files:
        stderr = files.enter_context(log.open("wb"))
        stdout = stderr if out is None else files.enter_context(out.open("wb"))
        tree = ProcessTree(argv, cwd=cwd, stderr=stderr, stdout=stdout, env=env)
    try:
        on_start(tree.pid)
        code = wait_for(tree.process, timeout_s, on_wait)
    finally:
        tree.end()
    return Finished(code, log.read_text("utf-8", "replace"))
