from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from family_zoo import bert, dinov2, vit
from winml.modelkit.core.build_folder import EXPORT, MANIFEST
from winml.modelkit.graph.blocks import find_block
from winml.modelkit.graph.description import RepeatedBlock
from winml.modelkit.knowledge.model_family import find_family, load_blocks

DINO, VIT = find_block(dinov2()), find_block(vit())


def write(folder: Path, name: str, value: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))
    return folder


def test_a_graph_is_of_the_families_that_repeat_its_block() -> None:
    assert "dinov2" in find_family([], DINO).names
    assert {"vit", "deit"} <= set(find_family([], VIT).names)
    assert not {"vit", "swin", "bert"} & set(find_family([], DINO).names)
    assert {"bert", "roberta"} <= set(find_family([], find_block(bert())).names)


def test_a_block_of_no_family_and_one_that_is_little_of_its_network_say_nothing() -> None:
    assert DINO is not None
    for block in (None, RepeatedBlock("ABCD", 9, 0.9), RepeatedBlock(DINO.marks, 2, 0.1, DINO.kinds)):
        found = find_family([], block)
        assert (found.names, found.source) == ((), "unknown")


def test_the_config_beside_a_model_names_its_family(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", "config.json", {"model_type": "dinov2_with_registers"})
    found = find_family([folder], None)
    assert (found.names, found.source, found.known) == (("dinov2_with_registers",), "config", "dinov2_with_registers")


@pytest.mark.parametrize(
    ("architecture", "family"),
    [("Dinov2ForImageClassification", "dinov2"), ("BertForQuestionAnswering", "bert"), ("MyOwnNet", None)],
)
def test_the_record_of_an_export_names_its_class(tmp_path: Path, architecture: str, family: str | None) -> None:
    folder = write(tmp_path / "m", EXPORT, {"architecture": architecture})
    assert find_family([folder], None).known == family


def test_a_build_is_of_the_family_of_what_it_was_made_from(tmp_path: Path) -> None:
    source = write(tmp_path / "hf", "config.json", {"model_type": "swin"})
    first = write(tmp_path / "first", MANIFEST, {"source": {"path": str(source)}})
    second = write(tmp_path / "second", MANIFEST, {"source": {"path": str(first / "model.onnx")}})
    assert find_family([second], None).known == "swin"


def test_a_document_that_the_graph_contradicts_leaves_the_family_unknown(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", "config.json", {"model_type": "dinov2"})
    found = find_family([folder], VIT)
    assert found.names == ()
    assert "its config.json says `dinov2`, but its graph repeats the block of" in found.reason
    # A family that is not among those with blocks is not contradicted by a graph like another's.
    folder = write(tmp_path / "m", "config.json", {"model_type": "my_vit"})
    assert find_family([folder], VIT).names == ("my_vit",)


@pytest.mark.parametrize("text", ["{", "[]", '{"model_type": 7}', '{"model_type": "a\\u001b[2J"}', "[" * 100_000])
def test_a_broken_document_says_nothing(tmp_path: Path, text: str) -> None:
    folder = write(tmp_path / "m", "config.json", text)
    assert find_family([folder], None).names == ()


def test_a_build_that_was_made_from_itself_ends(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", MANIFEST, {"source": {"path": str(tmp_path / "m")}})
    assert find_family([folder], None).names == ()


def test_every_block_is_of_its_own_families() -> None:
    keys = [(one.marks, one.kinds) for one in load_blocks()]
    assert len(set(keys)) == len(keys)
