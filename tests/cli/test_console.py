"""What is written to a terminal: colours of winml's own, nothing that a name brings in, lines that fit."""

from __future__ import annotations

import io
import re
import subprocess

import pytest

from winml.modelkit.cli import console
from winml.modelkit.render.marks import mark
from winml.modelkit.render.screen import END, STYLES


class Terminal(io.StringIO):
    """A terminal of a width that shows these characters."""

    def __init__(self, width: int = 80, encoding: str = "utf-8") -> None:
        super().__init__()
        self.width = width
        self._encoding = encoding

    def isatty(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


@pytest.fixture(autouse=True)
def _any_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(console, "reads_escapes", lambda stream: True)
    monkeypatch.setattr(console, "columns", lambda stream: getattr(stream, "width", None))


def _shown(monkeypatch: pytest.MonkeyPatch, terminal: io.StringIO, name: str = "model") -> str:
    monkeypatch.setattr(console.sys, "stdout", terminal)
    console.show(lambda name: f"{mark('KEEP')} {name}", name)
    return terminal.getvalue()


def test_a_verdict_is_green_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _shown(monkeypatch, Terminal()) == "\x1b[32m✓ KEEP\x1b[0m model\n"


def test_a_terminal_with_a_small_character_set_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _shown(monkeypatch, Terminal(encoding="cp1252")) == "\x1b[32m+ KEEP\x1b[0m model\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_escape_is_written_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert _shown(monkeypatch, Terminal()) == "KEEP model\n"


def test_a_pipe_gets_the_words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _shown(monkeypatch, io.StringIO()) == "KEEP model\n"


HOSTILE = ["\x1b[2J", "\x1b]0;title\x07", f"{STYLES['bad']}red", f"{END}", "\x9b31m", "a\nb", "\u202e"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_brings_no_escape_and_no_colour_in(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    written = _shown(monkeypatch, Terminal(), f"<{name}>")
    assert written.startswith("\x1b[32m✓ KEEP\x1b[0m <")
    ours = written.removeprefix("\x1b[32m✓ KEEP\x1b[0m ").removesuffix("\n")
    assert ours.isprintable()
    assert "\\" in ours  # written out


@pytest.mark.parametrize("name", HOSTILE)
def test_text_that_a_render_got_past_the_values_brings_colours_in_at_most(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(console.sys, "stdout", terminal)
    console.show(lambda _: name, None)
    assert not re.sub(r"\x1b\[(\d+)m|\n", "", terminal.getvalue()).count("\x1b")


def _said(monkeypatch: pytest.MonkeyPatch, kind: str, text: str, *, width: int) -> list[str]:
    terminal = Terminal(width)
    monkeypatch.setattr(console.sys, "stderr", terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    console.say(kind, text)
    return terminal.getvalue().splitlines()


def test_a_long_message_is_broken_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "machine load was 3.1 on 2 cores; compare configs with `winml compare`"
    assert _said(monkeypatch, "warning", text, width=40) == [
        "warning: machine load was 3.1 on 2",
        "  cores; compare configs with `winml",
        "  compare`",
    ]


NAMES = ["plain.onnx", "two words.onnx", "it's; rm -rf x", "a" * 70, "tab\there", "/very/" + "long/" * 12, "$(ls) b"]


@pytest.mark.posix("the shells of Windows continue a line in different ways, so a command is not broken there")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [20, 40, 60])
def test_a_broken_command_means_the_same_to_a_shell(monkeypatch: pytest.MonkeyPatch, name: str, width: int) -> None:
    command = f"printf '%s\\0' perf -m {console.quote(name)} --target cpu --op-tracing basic -o DIR"
    lines = _said(monkeypatch, "next", command, width=width)
    pasted = "\n".join(lines).removeprefix("next: ")
    ran = subprocess.run(["bash", "-c", pasted], capture_output=True, check=True)
    words = ["perf", "-m", name, "--target", "cpu", "--op-tracing", "basic", "-o", "DIR"]
    assert ran.stdout.decode().split("\0") == [*words, ""]


@pytest.mark.posix("the shells of Windows continue a line in different ways, so a command is not broken there")
def test_a_command_that_is_broken_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "winml perf -m /home/user/models/model.onnx --op-tracing basic"
    assert _said(monkeypatch, "next", text, width=40) == [
        "next: winml perf -m \\",
        "  /home/user/models/model.onnx \\",
        "  --op-tracing basic",
    ]
