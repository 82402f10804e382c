"""A decoder in float16 has its cache and its logits in float16, and both programs run it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.decoder_zoo import VOCABULARY, decoder_folder

from winml.modelkit.building.build import BuildRequest
from winml.modelkit.building.build_parts import build_model
from winml.modelkit.building.config import ConfigRequest
from winml.modelkit.core.target import Target
from winml.modelkit.session.generation.generator import generate
from winml.modelkit.session.generation.ort_loop import OrtGenerator

CPU = Target("cpu", "cpu")


def _build(folder: Path, output: Path) -> Path:
    asked = ConfigRequest(str(folder / "model.onnx"), target="cpu", precision="fp16")
    # Tokens are compared here. Random masks hide whole texts, and what is left of them differs by the least number.
    build_model(BuildRequest(asked, output=str(output), analyze=False, prove=False), lambda event: None)
    return output


def _cache_bytes(folder: Path) -> int:
    with OrtGenerator(folder, target=CPU) as generator:
        return sum(array.nbytes for array in generator.empty_cache(1, 64).values())


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "growing"])
def test_cache_and_logits_of_a_decoder_in_float16_are_float16(in_place: bool, tmp_path: Path) -> None:
    source = decoder_folder(tmp_path / "source", in_place=in_place, seed=4)
    built = _build(source, tmp_path / "built")
    graph = onnx.load(built / "model.onnx").graph
    kinds = {
        value.name: value.type.tensor_type.elem_type
        for value in (*graph.input, *graph.output)
        if value.type.tensor_type.elem_type != onnx.TensorProto.INT64
    }
    assert set(kinds.values()) == {onnx.TensorProto.FLOAT16}
    assert {"logits", "present.0.key", "past_key_values.1.value"} <= set(kinds)
    assert 2 * _cache_bytes(built) == _cache_bytes(source)
    prompts = np.random.default_rng(0).integers(0, VOCABULARY, (2, 6), np.int64)
    mask = np.array([[0, 0, 1, 1, 1, 1], [1] * 6])
    text = np.random.default_rng(1).integers(0, VOCABULARY, (1, 20), np.int64)
    with OrtGenerator(source, target=CPU) as before, OrtGenerator(built, target=CPU) as after:
        logits = before.score(text)
        assert np.abs(after.score(text) - logits).max() <= 0.01 * np.abs(logits).max()
        # Later ones differ where two tokens are rated alike.
        wanted = generate(before, prompts, mask, new_tokens=8, ends=())
        assert generate(after, prompts, mask, new_tokens=8, ends=()).tolist() == wanted.tolist()


def test_onnxruntime_genai_runs_a_cache_in_float16(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime_genai")
    from winml.modelkit.session.generation.genai_loop import GenaiGenerator

    built = _build(decoder_folder(tmp_path / "source", seed=4), tmp_path / "built")
    prompt = np.random.default_rng(1).integers(3, VOCABULARY, (1, 6), np.int64)
    with OrtGenerator(built, target=CPU) as ours:
        wanted = generate(ours, prompt, new_tokens=12, ends=())
    with GenaiGenerator(built, target=CPU) as theirs:
        assert generate(theirs, prompt, new_tokens=12, ends=()).tolist() == wanted.tolist()
