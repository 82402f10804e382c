from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from winml.modelkit import __version__
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.knob import Knob, Level
from winml.modelkit.search.reuse import SAME, reused
from winml.modelkit.search.space import Space
from winml.modelkit.search.trial import Trial
from winml.modelkit.store.journal import Journal

IDENTITY: dict[str, Any] = dict.fromkeys(SAME, "same")
SPACE = Space((Knob("hypothesis", (Level("h3"), Level("h7"))),), {})


def earlier(folder: Path, *choices: list[list[str]], version: str = __version__, **identity: Any) -> str:
    with Journal(folder / "journal.jsonl") as journal:
        journal.append({"kind": "study", "winml": version, "identity": {**IDENTITY, **identity}})
        for number, choice in enumerate(choices):
            chosen = tuple((knob, level) for knob, level in choice)
            trial = Trial(f"t{number}", chosen, "measured" if number else "baseline", "", facts={"config": {}})
            journal.append({"kind": "trial", "trial": trial.to_json(), "seconds": 3.0})
    return str(folder)


def test_hypotheses_of_an_earlier_search_keep_their_ids(tmp_path: Path) -> None:
    folder = earlier(tmp_path, [], [["hypothesis", "h9"]], [["hypothesis", "h7"]])
    assert [record["trial"]["id"] for record in reused(folder, IDENTITY, SPACE)] == ["h0", "h7"]


def test_trials_of_another_version_are_not_reused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"is of winml 0\.0\.0, this is"):
        reused(earlier(tmp_path / "winml", version="0.0.0"), IDENTITY, SPACE)
    with pytest.raises(RequestError, match="cannot be reused: versions differ"):
        reused(earlier(tmp_path / "runtime", versions={"onnxruntime": "1.0"}), IDENTITY, SPACE)
