"""The worker operation behind `winml inspect`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto

from winml.modelkit.core.errors import ModelFileError, RequestError
from winml.modelkit.core.values import read, to_json
from winml.modelkit.graph import describe as module
from winml.modelkit.graph import files
from winml.modelkit.graph.describe import describe
from winml.modelkit.graph.description import ModelDescription, ModelFile
from winml.modelkit.graph.fingerprint import fingerprint


@pytest.mark.parametrize("external_data", ["never", "always"])
def test_a_model_is_described_with_its_files(
    perceptron: ModelProto, external_data: files.ExternalData, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    written = files.save(perceptron, tmp_path / "m.onnx", external_data=external_data)
    described = describe({"path": str(tmp_path / "m.onnx"), "dims": {"N": 2}}, None)
    assert read(ModelDescription, json.loads(json.dumps(to_json(described)))) == described
    assert described.files == tuple(ModelFile(path=str(file), bytes=file.stat().st_size) for file in written)
    assert described.facts.macs.macs == 2 * 2 * 36 * 36
    assert described.facts.external_data is (external_data == "always")
    assert described.fingerprint == fingerprint(perceptron)
    assert described.fingerprint_reason is None
    assert capfd.readouterr() == ("", "")


def test_much_external_data_is_hashed_only_when_that_is_asked_for(
    perceptron: ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "m.onnx")
    files.save(perceptron, path, external_data="always")
    monkeypatch.setattr(module, "FINGERPRINT_LIMIT_BYTES", 10_000)
    described = describe({"path": path}, None)
    assert described.fingerprint is None
    assert "more than 10,000" in str(described.fingerprint_reason)
    assert describe({"path": path, "fingerprint": True}, None).fingerprint == fingerprint(perceptron)


def test_the_fingerprint_can_be_left_out(perceptron: ModelProto, tmp_path: Path) -> None:
    files.save(perceptron, tmp_path / "m.onnx")
    described = describe({"path": str(tmp_path / "m.onnx"), "fingerprint": False}, None)
    assert (described.fingerprint, described.fingerprint_reason) == (None, "not requested")


def test_a_compiled_part_in_another_file_has_no_fingerprint(parse: Any, tmp_path: Path) -> None:
    model = parse("""g (float[1] x) => (float[1] y) {
        y = com.microsoft.EPContext<embed_mode = 0, ep_cache_context = "m_qnn.bin", source = "QNN">(x)
    }""")
    files.save(model, tmp_path / "m.onnx")
    (tmp_path / "m_qnn.bin").write_bytes(b"binary")
    described = describe({"path": str(tmp_path / "m.onnx"), "fingerprint": True}, None)
    assert described.fingerprint is None
    assert "file of its own" in str(described.fingerprint_reason)
    assert described.files[1] == ModelFile(path=str(tmp_path / "m_qnn.bin"), bytes=6)


def test_a_file_that_is_no_model_is_an_error_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="does not exist"):
        describe({"path": str(tmp_path / "m.onnx")}, None)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({}, "`path` must be"),
        ({"path": 3}, "`path` must be"),
        ({"path": "m.onnx", "dims": [1]}, "`dims` must map"),
        ({"path": "m.onnx", "dims": {"N": "2"}}, "`dims` must map"),
        ({"path": "m.onnx", "dims": {"N": True}}, "`dims` must map"),
    ],
)
def test_wrong_arguments_are_named(
    perceptron: ModelProto, args: dict[str, Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.save(perceptron, tmp_path / "m.onnx")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RequestError, match=says):
        describe(args, None)
