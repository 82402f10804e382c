"""Parts of one model at precisions of their own."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from winml.modelkit.building.build import BuildRequest
from winml.modelkit.building.build_parts import build_model
from winml.modelkit.building.config import ConfigRequest
from winml.modelkit.building.result import BuildPartsResult
from winml.modelkit.core.errors import RequestError


def _request(
    model: Path, precision: str, output: Path, target: str = "cpu", *, fall_back: bool = False
) -> BuildRequest:
    config = ConfigRequest(str(model), target=target, precision=precision)
    return BuildRequest(config, output=str(output), analyze=False, fallback_precision=fall_back)


@pytest.mark.parametrize(
    ("name", "target", "given", "message"),
    [
        ("t5", "cpu", "int4,decoder=fp16", "does not have: it has encoder, prefill, decode"),
        ("bert", "cpu", "int4,encoder=fp16", "this model is built as one graph"),
        ("gpt2", "cpu", "decode=fp16", "this model is built as one graph"),
        ("gpt2", "qnn/npu", "decode=fp16", "hand a cache to one another, which is float16 with `fp16` alone"),
    ],
)
def test_precisions_of_parts_that_cannot_be_are_refused(
    name: str, target: str, given: str, message: str, hf_folders: Path, tmp_path: Path
) -> None:
    with pytest.raises(RequestError, match=message):
        build_model(_request(hf_folders / name, given, tmp_path / "built", target), lambda event: None)
    assert not (tmp_path / "built").exists()


def test_one_fallback_is_not_for_parts_of_different_precisions(hf_folders: Path, tmp_path: Path) -> None:
    request = _request(hf_folders / "t5", "int4,encoder=fp16", tmp_path / "built", fall_back=True)
    with pytest.raises(RequestError, match="one precision for all parts"):
        build_model(request, lambda event: None)


@pytest.mark.slow
def test_parts_are_built_at_their_own_precisions_and_run_together(hf_folders: Path, tmp_path: Path) -> None:
    result = build_model(_request(hf_folders / "t5", "dynamic,encoder=fp32", tmp_path / "built"), lambda event: None)
    assert isinstance(result, BuildPartsResult)
    assert result.precision == "encoder=fp32,prefill=dynamic,decode=dynamic"
    assert [part.result.proof.status for part in result.parts] == ["proven on target"] * 3
    types = {
        part: {node.op_type for node in onnx.load(tmp_path / "built" / part / "model.onnx").graph.node}
        for part in json.loads((tmp_path / "built" / "parts.json").read_text(encoding="utf-8"))["parts"]
    }
    quantized = {part for part, found in types.items() if "MatMulInteger" in found or "DynamicQuantizeLinear" in found}
    assert quantized == {"prefill", "decode"}
