"""What reads texts and images is installed into private environments, and a hint says how where it is missing."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path

import pytest

from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.data.extras import extra
from winml.modelkit.ep import ep_command


def test_readers_of_this_environment_are_installed_in_their_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted: list[str] = []
    monkeypatch.setattr(ep_command, "_pip", lambda folder, what, on_step: wanted.append(what))
    monkeypatch.setattr(ep_command, "READERS", ("tokenizers", "a-reader-that-is-not-installed"))
    ep_command._add_readers(tmp_path, lambda step: None)
    assert wanted == [f"tokenizers=={metadata.version('tokenizers')}"]


def test_a_reader_that_is_missing_in_a_private_environment_is_installed_by_building_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnavailableError) as raised:
        extra("no_such_module", name="text", what="reading texts")
    assert raised.value.hint == "install it with `pip install winml-modelkit[text]`"
    value = {"schema": "winml/environment/1", "ep": "openvino", "distribution": "onnxruntime-openvino", "version": "1"}
    (tmp_path / "environment.json").write_text(json.dumps(value), "utf-8")
    python = tmp_path / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    python.parent.mkdir()
    python.touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(UnavailableError) as raised:
        extra("no_such_module", name="text", what="reading texts")
    assert "`winml ep install openvino --rebuild`" in str(raised.value.hint)
