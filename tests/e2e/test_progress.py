"""Progress as a person sees it: real commands at a pseudo-terminal, held to the order of their frames."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ctrl_c import press_ctrl_c
from screen import frames, screen

pytestmark = pytest.mark.posix("Windows has no pseudo-terminal that a test could read")


def at_terminal(*argv: str, columns: int = 80, on_output: Any = None) -> tuple[int, str]:
    """Run a program whose stderr is a terminal; its exit code and what it wrote there."""
    import fcntl
    import pty
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
    process = subprocess.Popen(argv, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, env=env)
    os.close(theirs)
    written = bytearray()

    def read() -> None:
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # Linux says so when nobody has the other end open any more
                return
            if not more:
                return
            written.extend(more)
            if on_output is not None:
                on_output(process, bytes(written))

    reader = threading.Thread(target=read)
    reader.start()
    code = process.wait(timeout=540)
    reader.join(timeout=60)
    os.close(ours)
    return code, written.decode("utf-8")


def test_a_build_moves_from_stage_to_stage_and_leaves_its_lines(tmp_path: Path) -> None:
    argv = ("build", "--sample", "--target", "cpu", "-p", "int8", "--no-optimize", "--no-analyze", "--samples", "16")
    code, written = at_terminal(sys.executable, "-m", "winml.modelkit", *argv, "--rebuild", "-o", str(tmp_path / "out"))
    assert code == 0, written
    assert max(map(len, frames(written))) < 80
    stages = list(dict.fromkeys(found[0] for frame in frames(written) if (found := re.match(r"\w+ \(.*?\)", frame))))
    assert stages == ["quantize (1 of 2)", "prove (2 of 2)"]
    counts = [int(done) for done in re.findall(r"calibrating (\d+) of 16", written)]
    assert counts == sorted(counts)
    assert counts[0] == 1, "the first sample is reported at once"
    lines = [re.sub(r"\d+\.\d s", "N s", line) for line in screen(written)]
    assert lines[:3] == ["note: target cpu", "quantize: N s", "prove: N s"]
    assert lines[-1] == ""


def test_the_line_of_a_stage_without_news_goes_on(tmp_path: Path) -> None:
    """The command waits in a stage until two seconds were shown: nothing but the ticker moves the line."""
    go = tmp_path / "go"
    waiting = f"""
import sys, time
from pathlib import Path
from winml.modelkit.building.events import StageStarted
from winml.modelkit.cli.stage_progress import StageProgress
with StageProgress() as shown:
    shown.on_event(StageStarted("export"))
    while not Path({str(go)!r}).exists():
        time.sleep(0.01)
"""

    def let_go(process: Any, written: bytes) -> None:
        if b"export  0:02" in written:
            go.touch()

    code, written = at_terminal(sys.executable, "-c", waiting, on_output=let_go)
    assert code == 0
    assert [frame for frame in frames(written) if frame] == [f"export  0:0{second}" for second in range(3)]
    assert screen(written) == [""]


def test_ctrl_c_leaves_the_line_clean() -> None:
    pressed = threading.Event()

    def press(process: subprocess.Popen[Any], written: bytes) -> None:
        if b"sample 0 of" in written and not pressed.is_set():
            pressed.set()
            press_ctrl_c(process)

    argv = (sys.executable, "-m", "winml.modelkit", "eval", "--sample", "--target", "cpu")
    code, written = at_terminal(*argv, on_output=press)
    assert code == 130, written
    assert pressed.is_set()
    lines = screen(written)
    assert lines[0] == "note: target cpu"
    assert [line for line in lines if line.startswith("error: ")] == [lines[1]]
    assert not any("sample" in line for line in lines)
