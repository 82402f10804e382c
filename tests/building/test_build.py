from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from winml.modelkit.building.pipeline.artifact import read_source
from winml.modelkit.building.pipeline.steps import make_steps
from winml.modelkit.core.config import SCHEMA, BuildConfig, DataSection, QuantizeSection


@pytest.mark.parametrize(
    ("source", "counted"), [("x.npz", False), ("random", False), ("photos", True), ("x.jsonl", True)]
)
def test_what_makes_inputs_of_calibration_data_is_in_the_key(source: str, counted: bool, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"model")
    section = QuantizeSection("static", calibration=DataSection(source))
    model = read_source(tmp_path / "model.onnx", (tmp_path / "model.onnx",))
    found = make_steps(BuildConfig(SCHEMA, quantize=section), model)[0].libraries
    makers = {name: version(name) for name in ("pillow", "tokenizers")}
    assert (makers.items() <= found.items()) == counted
    assert counted or not makers.keys() & found.keys()
