"""What a model argument may be, and what its build config may say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from winml.modelkit.app.models import model_argument
from winml.modelkit.core.errors import ModelFileError, RequestError


def build(tmp_path: Path, session: Any) -> str:
    (tmp_path / "model.onnx").write_bytes(b"\x08")
    (tmp_path / "build_config.json").write_text(json.dumps({"session": session}))
    return str(tmp_path)


def test_a_build_folder_brings_its_session_section(tmp_path: Path) -> None:
    found = model_argument(build(tmp_path, {"threads": 2, "config_entries": {"a": "b"}}))
    assert found.path == tmp_path / "model.onnx"
    assert found.section.threads == 2
    assert found.section.config_entries == {"a": "b"}


def test_a_folder_without_a_config_has_the_default_section(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"\x08")
    assert model_argument(str(tmp_path)).section.threads is None


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="is a directory"):
        model_argument(str(tmp_path))


@pytest.mark.parametrize(
    ("session", "message"),
    [
        ({"thraeds": 2}, "session.thraeds"),
        ({"threads": "two"}, "session.threads"),
        ({"threads": 0}, "at least 1"),
        ({"threads": -3}, "at least 1"),
        ({"threads": True}, "session.threads"),
        ({"config_entries": {"a": 1}}, "session.config_entries"),
        ({"ep_options": ["a"]}, "session.ep_options"),
        ({"fixed_dims": {"batch": 0}}, "session.fixed_dims"),
        ({"optimization_level": 3}, "session.optimization_level"),
        ([1], "`session` must be an object"),
    ],
)
def test_a_section_that_does_not_fit_names_its_key(tmp_path: Path, session: Any, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        model_argument(build(tmp_path, session))


def test_a_config_that_is_no_json_is_refused(tmp_path: Path) -> None:
    build(tmp_path, {})
    (tmp_path / "build_config.json").write_text("{")
    with pytest.raises(RequestError, match="not a build config"):
        model_argument(str(tmp_path))
