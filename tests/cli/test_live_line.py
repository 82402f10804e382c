from __future__ import annotations

import pytest

from screen import Terminal
from winml.modelkit.cli import console
from winml.modelkit.cli.live_line import LiveLine, terminal_columns
from winml.modelkit.render.progress_line import Frame


@pytest.fixture(autouse=True)
def _escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of a test is no console of Windows that could be asked."""
    monkeypatch.setattr(console, "reads_escapes", lambda stream: True)


def test_a_terminal_without_a_size_has_eighty_columns() -> None:
    assert terminal_columns(Terminal()) == 80


def test_a_small_character_set_gets_a_bar_of_its_own() -> None:
    terminal = Terminal("ascii")
    line = LiveLine(terminal)
    line.show(Frame("calibrating", 1.0, share=0.5))
    line.close()
    assert terminal.frames == [f"calibrating  {'#' * 12}{'-' * 12}  0:01", ""]


def test_a_console_that_reads_no_escapes_is_written_over_with_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "reads_escapes", lambda stream: False)
    terminal = Terminal()
    line = LiveLine(terminal)
    line.show(Frame("a long text about something", 1.0))
    line.show(Frame("short", 2.0))
    assert terminal.screen == ["short  0:02"]
    line.close()
    assert terminal.screen == [""]
    assert "\x1b" not in terminal.getvalue()


def test_the_same_text_is_not_written_again() -> None:
    terminal = Terminal()
    line = LiveLine(terminal)
    for elapsed in (1.0, 1.4, 1.9):
        line.show(Frame("reading", elapsed))
    line.close()
    assert terminal.frames == ["reading  0:01", ""]


def test_a_line_that_was_removed_is_never_written_again() -> None:
    terminal = Terminal()
    line = LiveLine(terminal)
    line.show(Frame("reading", 1.0))
    line.close()
    before = terminal.getvalue()
    line.show(Frame("reading", 2.0))
    line.draw()
    line.close()
    assert terminal.getvalue() == before


def test_a_terminal_that_is_gone_ends_nothing() -> None:
    def hang_up(text: str) -> None:
        raise OSError(5, "Input/output error")

    line = LiveLine(Terminal(on_write=hang_up))
    line.show(Frame("reading", 1.0))
    line.show(Frame("reading", 2.0))
    line.close()
