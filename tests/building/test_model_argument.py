"""What a model argument may be, and what its build config may say."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from build_values import DIGEST, SOURCE, manifest, stage
from winml.modelkit.building.model_argument import model_argument, model_path
from winml.modelkit.building.pipeline.identity import identity_of
from winml.modelkit.core.config import SCHEMA, BuildConfig
from winml.modelkit.core.errors import ModelFileError, RequestError
from winml.modelkit.core.values import to_json
from winml.modelkit.ep.trust import NOTHING
from winml.modelkit.store import digest


def build(tmp_path: Path, session: Any) -> str:
    (tmp_path / "model.onnx").write_bytes(b"\x08")
    (tmp_path / "build_config.json").write_text(json.dumps({"schema": SCHEMA, "session": session}))
    return str(tmp_path)


def test_a_build_folder_brings_its_session_section(tmp_path: Path) -> None:
    found = model_argument(build(tmp_path, {"threads": 2, "config_entries": {"session.disable_prepacking": "1"}}))
    assert found.path == tmp_path / "model.onnx"
    assert found.section.threads == 2
    assert found.section.config_entries == {"session.disable_prepacking": "1"}


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


def test_options_of_libraries_and_files_are_refused_in_a_build_folder(tmp_path: Path) -> None:
    word = build(tmp_path, {"ep_options": {"backend_path": "/tmp/evil.so"}})
    with pytest.raises(RequestError, match=r"build_config.json`: `session.ep_options.backend_path` may be set on the"):
        model_argument(word)
    assert model_path(word) == tmp_path / "model.onnx"


def test_a_typed_option_takes_the_place_of_the_one_in_the_folder(tmp_path: Path) -> None:
    word = build(tmp_path, {"ep_options": {"backend_path": "/tmp/evil.so", "soc_model": "60"}})
    found = model_argument(word, trust=NOTHING.with_typed(["backend_path"]))
    assert found.section.ep_options == {"soc_model": "60"}


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A build folder as a build leaves it, with the sections that count for what it is known by."""
    model = build(tmp_path, {})
    config = {
        "schema": "winml/build-config/1",
        "model": "/somewhere/model.onnx",
        "target": "cpu",
        "quantize": {"mode": "static", "calibration": {"source": "/data.npz", "digest": "sha256:1"}},
        "session": {"threads": 2},
    }
    earlier = {"optimized.onnx": DIGEST}
    last = {"compiled.onnx": DIGEST, "compiled_qnn.bin": digest.of_bytes(b"b")}
    written = manifest(
        identity=identity_of(config, SOURCE.digest),
        stages=(stage("optimize", "optimized.onnx", earlier), stage("compile", "compiled.onnx", last)),
        objects={
            **earlier,
            **last,
            "model.onnx": digest.of_bytes(b"\x08"),
            "tokenizer.json": digest.of_bytes(b"{}"),
        },
    )
    for name, content in {"optimized.onnx": b"o", "compiled_qnn.bin": b"b", "tokenizer.json": b"{}"}.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "build_config.json").write_text(json.dumps(config))
    (tmp_path / "build_manifest.json").write_text(json.dumps(to_json(written)))
    return Path(model)


def change(folder: Path, **sections: Any) -> None:
    path = folder / "build_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **sections}))


def test_a_build_folder_is_used_as_it_was_built(built: Path) -> None:
    assert model_argument(str(built)).section.threads == 2
    change(built, model="/elsewhere/model.onnx")
    assert model_argument(str(built)).section.threads == 2, "where the model lies is not what a build depends on"


@pytest.mark.parametrize(
    "sections",
    [
        {"session": {"threads": 3}},
        {"session": {"ep_options": {"soc_model": "60"}}},
        {"target": "qnn/npu"},
        {"quantize": 1},
    ],
)
def test_a_config_that_was_changed_after_the_build_is_noticed(built: Path, sections: dict[str, Any]) -> None:
    change(built, **sections)
    with pytest.raises(RequestError, match="was changed after the build"):
        model_argument(str(built))


@pytest.mark.parametrize("name", ["model.onnx", "compiled_qnn.bin", "tokenizer.json"])
@pytest.mark.parametrize("read", [model_argument, model_path])
def test_a_file_that_was_changed_after_the_build_is_noticed(built: Path, name: str, read: Callable[[str], Any]) -> None:
    read(str(built))
    (built / name).write_bytes(b"x")
    with pytest.raises(RequestError, match=f"{name}` was changed after the build") as caught:
        read(str(built))
    assert "winml build -c" in str(caught.value.hint)


def test_what_earlier_stages_left_is_not_what_runs(built: Path) -> None:
    (built / "optimized.onnx").write_bytes(b"x")
    (built / "tokenizer.json").unlink()
    assert model_path(str(built)) == built / "model.onnx", "and what is not there was not changed"


@pytest.mark.parametrize(
    "objects", [None, [], {"../model.onnx": DIGEST}, {"model.onnx": 1}], ids=["none", "list", "outside", "number"]
)
def test_a_manifest_that_does_not_say_what_was_built_vouches_for_nothing(built: Path, objects: Any) -> None:
    manifest = built / "build_manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "objects": objects}))
    with pytest.raises(RequestError, match="was changed after the build"):
        model_argument(str(built))


def test_every_section_of_a_config_is_in_the_identity_of_its_build() -> None:
    config = {field.name: None for field in dataclasses.fields(BuildConfig)}
    plain = identity_of(config, "sha256:0")
    for name in config:
        assert name == "model" or identity_of({**config, name: {"calibration": None}}, "sha256:0") != plain
