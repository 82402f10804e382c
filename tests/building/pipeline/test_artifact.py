from __future__ import annotations

from pathlib import Path

import pytest

from winml.modelkit.building.pipeline.artifact import read_source
from winml.modelkit.core.errors import DataError


def source(folder: Path, name: str = "m.onnx") -> tuple[Path, Path]:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(b"model")
    (folder / "weights.data").write_bytes(b"weights")
    return folder / name, folder / "weights.data"


def test_the_name_of_a_model_file_is_not_part_of_its_digest(tmp_path: Path) -> None:
    path, data = source(tmp_path / "a")
    other, other_data = source(tmp_path / "b", "renamed.onnx")
    assert read_source(path, (data,)).artifact == read_source(other, (other_data,)).artifact


def test_external_data_is_part_of_the_digest(tmp_path: Path) -> None:
    path, data = source(tmp_path)
    before = read_source(path, (data,)).artifact.digest
    data.write_bytes(b"others")
    assert read_source(path, (data,)).artifact.digest != before


def test_a_file_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    path, data = source(tmp_path)
    found = read_source(path, (data,))
    found.check_unchanged()
    data.write_bytes(b"longer weights")
    with pytest.raises(DataError, match="weights.data` changed while"):
        found.check_unchanged()
