"""The manifest of a build folder is written and read by one class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build_values import DIGEST, manifest, stage
from winml.modelkit.building.manifest import load_manifest
from winml.modelkit.building.pipeline.folder import write_json
from winml.modelkit.building.result import Fallback
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.values import to_json

WHOLE = manifest(
    stages=(stage("optimize", "optimized.onnx", {"optimized.onnx": DIGEST}),),
    fallbacks=(Fallback(precision="int8", then="fp32", reason="no good", identity=DIGEST),),
)


def test_a_manifest_comes_back_from_its_file(tmp_path: Path) -> None:
    write_json(tmp_path / "m.json", WHOLE)
    assert load_manifest(tmp_path / "m.json") == WHOLE
    written = json.loads((tmp_path / "m.json").read_text())
    assert (written["source"]["file"], written["stages"][0]["key"], written["target"]) == ("model.onnx", DIGEST, "cpu")


def test_a_manifest_of_a_version_without_proofs_and_with_other_keys_is_read(tmp_path: Path) -> None:
    value = {k: v for k, v in to_json(WHOLE).items() if k not in ("proof", "fallbacks")} | {"newer": 1}
    (tmp_path / "m.json").write_text(json.dumps(value))
    found = load_manifest(tmp_path / "m.json")
    assert found is not None
    assert (found.proof, found.fallbacks) == (None, ())


@pytest.mark.parametrize("content", [None, "{", "[]", '{"schema": "other/1"}'])
def test_what_is_not_ours_is_none(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "m.json").write_text(content)
    assert load_manifest(tmp_path / "m.json") is None


@pytest.mark.parametrize("change", [{"objects": None}, {"stages": [{}]}, {"identity": "x"}])
def test_a_damaged_manifest_is_an_error(tmp_path: Path, change: dict[str, Any]) -> None:
    (tmp_path / "m.json").write_text(json.dumps({**to_json(WHOLE), **change}))
    with pytest.raises(DataError, match=next(iter(change))):
        load_manifest(tmp_path / "m.json")
