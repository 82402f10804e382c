"""A graph that is not the one of its `genai_config.json`: an error before a token is generated, by either program."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from decoder_zoo import HEADS, SIZE, VOCABULARY, decoder_folder
from winml.modelkit.core.errors import ModelFileError
from winml.modelkit.core.generation import GENAI_CONFIG, read_decoder_folder
from winml.modelkit.core.target import Target
from winml.modelkit.session.generation.graph_fit import check_graph
from winml.modelkit.session.generation.ort_loop import OrtGenerator

Edit = Callable[[dict[str, Any]], object]


def _edit(folder: Path, edit: Edit) -> Path:
    path = folder / GENAI_CONFIG
    config = json.loads(path.read_text(encoding="utf-8"))
    edit(config["model"])
    path.write_text(json.dumps(config), encoding="utf-8")
    return folder


@pytest.mark.parametrize("in_place", [True, False])
def test_a_folder_whose_graph_fits_is_accepted(tmp_path: Path, in_place: bool) -> None:
    check_graph(read_decoder_folder(decoder_folder(tmp_path, in_place=in_place)))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda m: m["decoder"].update(num_hidden_layers=4), "cache of 2 layers, but its genai_config.json says 4"),
        (lambda m: m["decoder"].update(num_hidden_layers=1), "cache of 2 layers, but its genai_config.json says 1"),
        (lambda m: m["decoder"]["inputs"].update(past_key_names="k.%d"), "no input `k.0`, which its genai_config.json"),
        (lambda m: m["decoder"]["outputs"].update(present_value_names="v.%d"), "no output `v.0`"),
        (lambda m: m["decoder"].update(num_key_value_heads=HEADS + 1), f"has {HEADS} heads, but"),
        (lambda m: m["decoder"].update(head_size=SIZE * 2), f"a head of size {SIZE}, but"),
        (lambda m: m.update(vocab_size=VOCABULARY + 1), f"logits for {VOCABULARY} tokens, but"),
    ],
)
def test_a_config_of_another_graph_is_refused_by_both_programs(tmp_path: Path, edit: Edit, message: str) -> None:
    folder = _edit(decoder_folder(tmp_path), edit)
    with pytest.raises(ModelFileError, match=message):
        check_graph(read_decoder_folder(folder))
    with pytest.raises(ModelFileError, match=message):
        OrtGenerator(folder, target=Target("cpu", "cpu"))


def test_a_graph_without_a_past_is_refused(tmp_path: Path) -> None:
    decoder_folder(tmp_path)
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "sequence"])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "sequence", 4])
    table = numpy_helper.from_array(np.zeros((VOCABULARY, 4), "float32"), "table")
    graph = helper.make_graph([helper.make_node("Gather", ["table", "input_ids"], ["logits"])], "g", [ids], [logits])
    graph.initializer.append(table)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), tmp_path / "model.onnx")
    with pytest.raises(ModelFileError, match="has no past: it takes input_ids alone"):
        check_graph(read_decoder_folder(tmp_path))


def test_a_past_of_a_fixed_length_is_refused(tmp_path: Path) -> None:
    decoder_folder(tmp_path, in_place=False)
    model = onnx.load(tmp_path / "model.onnx")
    for value in model.graph.input:
        if value.name.startswith("past_"):
            value.type.tensor_type.shape.dim[2].dim_value = 127
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(ModelFileError, match="fixed length of 127"):
        check_graph(read_decoder_folder(tmp_path))
