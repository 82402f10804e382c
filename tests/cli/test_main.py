"""The program before and around its commands."""

from __future__ import annotations

import json
import sys

import pytest

from winml.modelkit.cli import main


@pytest.mark.parametrize("words", [["build"], ["build", "--json"]], ids=" ".join)
def test_ctrl_c_while_a_command_is_being_imported_is_an_interruption(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def importing(name: str, args: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "_command", importing)
    monkeypatch.setattr(sys, "argv", ["winml", *words])
    with pytest.raises(SystemExit) as left:
        main.main()
    said = capsys.readouterr()
    assert left.value.code == 130
    if "--json" in words:
        assert json.loads(said.out)["error"]["exit"] == 130
    else:
        assert said.err == "error: interrupted\n"
