from __future__ import annotations

from pathlib import Path

import winml.modelkit
from hints import wrong_words, wrong_words_in_source


def test_every_command_and_option_that_a_text_names_exists() -> None:
    assert wrong_words_in_source(Path(winml.modelkit.__file__).parent) == []


def test_a_hint_that_does_not_work_is_noticed() -> None:
    hints = "error: x\nhint: `--reduce-range` avoids it\nnext: winml perf -m a.onnx --itterations 3\n"
    wrong = wrong_words(hints, ("build", "-m", "a.onnx"))
    assert len(wrong) == 2
    assert "has no option `--itterations`" in wrong[1]
    assert "has the option `--reduce-range`" in wrong[0]
    assert wrong_words("hint: `winml quantize --reduce-range` avoids it\n", ("build",)) == []
    assert "Missing option" in wrong_words("next: winml kb report\n", ("kb", "list"))[0]
    assert wrong_words("hint: name it with `--target EP`; see `winml sys`\n", ("perf",)) == []
