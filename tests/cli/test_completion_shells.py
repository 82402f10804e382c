"""Completion in real shells on a pseudo-terminal: what is typed, a tab, and the words that the command then gets."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.platform != "win32":
    import pty

pytestmark = pytest.mark.posix("these shells need a pseudo-terminal")

READY = "@ready@"
WAIT_S = 120.0
HOSTILE = "h i'\"$(touch pwned)`touch pwned`;&|\x01\x1b[2J\nx.onnx"
"""What a shell might run, and what a terminal might obey."""

_BASH = """
PS1='{ready}'
bind 'set bell-style none'
winml() {{
    if [ "$1" = --complete ]; then {python} -m winml.modelkit "$@"
    else n=$((n + 1)); printf '%s\\0' "$@" > got.tmp; mv got.tmp got.$n; fi
}}
source {script}
"""
_ZSH = """
PS1='{ready}'
unsetopt beep prompt_sp
autoload -Uz compinit && compinit -u -d {folder}/.zcompdump
winml() {{
    if [[ $1 = --complete ]]; then {python} -m winml.modelkit "$@"
    else n=$((n + 1)); printf '%s\\0' "$@" > got.tmp; mv got.tmp got.$n; fi
}}
source {script}
"""
_FISH = """
function fish_prompt; printf '{ready}'; end
set -g fish_greeting
set -g fish_autosuggestion_enabled 0
set -g n 0
function winml
    if test "$argv[1]" = --complete
        {python} -m winml.modelkit $argv
    else
        set -g n (math $n + 1)
        printf '%s\\0' $argv > got.tmp
        mv got.tmp got.$n
    end
end
source {script}
"""
_STARTS = {
    "bash": (_BASH, ["bash", "--noprofile", "--rcfile", "start", "-i"]),
    "zsh": (_ZSH, ["zsh", "-d", "-i"]),
    "fish": (_FISH, ["fish", "--no-config", "-i", "-C", "source start"]),
}


_CONTROL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Makes the terminal the one that controls the shell, without which fish does not start."""


class Terminal:
    """A shell on a pseudo-terminal, in a folder of its own, with the completion of winml."""

    def __init__(self, shell: str, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self._shown = b""
        script = folder / "script"
        words = [sys.executable, "-m", "winml.modelkit", "completion", shell]
        script.write_bytes(subprocess.run(words, capture_output=True, check=True).stdout)
        text, argv = _STARTS[shell]
        start = text.format(ready=READY, python=sys.executable, script=script, folder=folder)
        (folder / ("start" if shell != "zsh" else ".zshrc")).write_text(start)
        ours, theirs = pty.openpty()
        env = {**os.environ, "TERM": "xterm", "HOME": str(folder), "ZDOTDIR": str(folder), "INPUTRC": os.devnull}
        env |= {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_DATA_HOME": str(folder / "data"), "HISTFILE": ""}
        argv = [sys.executable, "-c", _CONTROL, *argv]
        self._process = subprocess.Popen(argv, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        self._terminal = ours
        self._wait(lambda: READY.encode() in self._shown)

    def _wait(self, is_done: object) -> None:
        assert callable(is_done)
        end = time.monotonic() + WAIT_S
        while not is_done():
            assert time.monotonic() < end, self._shown.decode(errors="replace")
            if select.select([self._terminal], [], [], 0.02)[0]:
                self._shown += os.read(self._terminal, 65536)

    def complete(self, typed: str) -> list[str]:
        """The words that a command gets when a tab follows what is typed after `winml `."""
        self._count += 1
        os.write(self._terminal, f"winml {typed}\t\n".encode())
        file = self._folder / f"got.{self._count}"
        self._wait(file.exists)
        return os.fsdecode(file.read_bytes()).split("\0")[:-1]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)


def _shell(name: str) -> object:
    marks = [pytest.mark.shell(name), *([] if name == "bash" else [pytest.mark.slow])]
    return pytest.param(name, marks=marks, id=name)


@pytest.fixture(params=[_shell(name) for name in _STARTS], scope="module")
def terminal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    folder = tmp_path_factory.mktemp(request.param)
    for name in (HOSTILE, "a b.onnx", "a model.txt", "run of a search/journal.jsonl", "rubbish/other"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    made = Terminal(request.param, folder)
    yield made
    made.close()
    assert not (folder / "pwned").exists()


def test_a_shell_completes_commands_and_values(terminal: Terminal) -> None:
    assert terminal.complete("matrix st") == ["matrix", "status"]
    assert terminal.complete("perf --target=openvino/c") == ["perf", "--target=openvino/cpu"]
    assert terminal.complete("perf --target qn") == ["perf", "--target", "qnn/"]


def test_a_name_of_a_file_arrives_whole_and_nothing_in_it_is_run(terminal: Terminal) -> None:
    assert terminal.complete("perf -m h") == ["perf", "-m", HOSTILE]
    assert terminal.complete("perf -m 'a ") == ["perf", "-m", "a b.onnx"]


def test_a_folder_of_a_search_is_found_among_others(terminal: Terminal) -> None:
    assert terminal.complete("autoconfig -o r") == ["autoconfig", "-o", "run of a search/"]
