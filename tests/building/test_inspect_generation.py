"""What `winml inspect` says of a folder that generates text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from decoder_zoo import HEADS, SIZE, VOCABULARY, decoder_folder
from winml.modelkit.building.inspect import Inspection, inspect
from winml.modelkit.core.generation import GENAI_CONFIG
from winml.modelkit.core.values import to_json
from winml.modelkit.render.inspect import inspect_text


def _inspect(folder: Path) -> Inspection:
    found = inspect(str(folder), dims={})
    assert isinstance(found, Inspection)
    return found


def test_a_decoder_folder_says_how_it_generates(tmp_path: Path) -> None:
    folder = decoder_folder(tmp_path / "decoder", layers=2, context=128)
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    (folder / "chat_template.jinja").write_text("{{ messages }}", encoding="utf-8")
    result = _inspect(folder)
    found = result.generation
    assert found is not None
    assert (found.context_length, found.layers, found.heads, found.head_size) == (128, 2, HEADS, SIZE)
    assert (found.cache, found.vocabulary, found.tokenizer, found.chat_template) == (
        "in place", VOCABULARY, "tokenizer.json", True,
    )  # fmt: skip
    assert found.precision is None
    text = inspect_text(result)
    assert f"2 layers, {HEADS} heads of size {SIZE}; every step writes into one buffer" in text
    assert f"by {found.runtime} on cpu: {found.reason}" in text
    assert to_json(result)["generation"]["target"] == "cpu"


def test_a_model_of_another_name_is_found_and_what_is_never_used_is_named(tmp_path: Path) -> None:
    folder = decoder_folder(tmp_path / "decoder")
    (folder / "model.onnx").rename(folder / "text.onnx")
    config = json.loads((folder / GENAI_CONFIG).read_text(encoding="utf-8"))
    config["model"]["decoder"] |= {"filename": "text.onnx", "session_options": {"custom_ops_library": "/tmp/evil.so"}}
    (folder / GENAI_CONFIG).write_text(json.dumps(config), encoding="utf-8")
    result = _inspect(folder)
    assert result.generation is not None
    assert result.generation.ignored == ("custom_ops_library",)
    text = inspect_text(result)
    assert "custom_ops_library of genai_config.json" in text
    assert "none: texts need `--processor DIR`" in text
    assert "evil" not in text


@pytest.mark.parametrize("layers", [1, 4])
def test_a_folder_that_does_not_generate_says_why_and_shows_its_graph(tmp_path: Path, layers: int) -> None:
    folder = decoder_folder(tmp_path / "decoder", layers=2)
    config = json.loads((folder / GENAI_CONFIG).read_text(encoding="utf-8"))
    config["model"]["decoder"]["num_hidden_layers"] = layers
    (folder / GENAI_CONFIG).write_text(json.dumps(config), encoding="utf-8")
    result = _inspect(folder)
    assert result.generation is None
    assert f"says {layers}" in (result.generation_problem or "")
    assert "generates text  no: " in inspect_text(result)


def test_a_file_of_the_folder_is_a_graph_alone(tmp_path: Path) -> None:
    result = _inspect(decoder_folder(tmp_path / "decoder") / "model.onnx")
    assert result.generation is None
    assert "generation" not in to_json(result)
