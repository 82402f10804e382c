"""Half a folder: what is missing or cut short is named, without loading anything."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from winml.modelkit.building.export.folder import ModelFolder
from winml.modelkit.core.errors import ModelFileError

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
HEADER = json.dumps({"a": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}}).encode()
WEIGHTS = struct.pack("<Q", len(HEADER)) + HEADER + bytes(48)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    return tmp_path


def test_whole_files_are_taken(folder: Path) -> None:
    (folder / "model-00001-of-00002.safetensors").write_bytes(WEIGHTS)
    (folder / "model-00002-of-00002.safetensors").write_bytes(WEIGHTS)
    assert ModelFolder(folder).weights().parameters == 24


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (POINTER, "is a Git LFS pointer"),
        (WEIGHTS[:-1], f"is cut short: it has {len(WEIGHTS) - 1} of {len(WEIGHTS)} bytes"),
        (WEIGHTS[:20], "is not a safetensors file: it has 20 bytes, fewer than its header"),
        (b"", "is not a safetensors file"),
    ],
)
def test_a_file_that_is_not_all_there_is_named(folder: Path, content: bytes, said: str) -> None:
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelFileError, match=said) as caught:
        ModelFolder(folder).require_weights()
    assert "fetch" in (caught.value.hint or "")


def test_shards_that_the_index_or_their_numbers_name_must_be_there(folder: Path) -> None:
    (folder / "model-00001-of-00003.safetensors").write_bytes(WEIGHTS)
    with pytest.raises(ModelFileError, match=r"1 of 3 files of weights; missing: `model-00002-of-00003.safetensors`"):
        ModelFolder(folder).require_weights()
    (folder / "model-00001-of-00003.safetensors").rename(folder / "one.safetensors")
    index = {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(ModelFileError, match=r"missing: `two.safetensors`"):
        ModelFolder(folder).require_weights()


def test_a_pointer_in_place_of_the_config_is_named(folder: Path) -> None:
    (folder / "config.json").write_bytes(POINTER)
    with pytest.raises(ModelFileError, match=r"config.json` is a Git LFS pointer"):
        ModelFolder(folder).require_family()
