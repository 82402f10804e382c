from __future__ import annotations

import json
from typing import Any

import pytest

from winml.modelkit.core.config import (
    SCHEMA,
    BuildConfig,
    CompileSection,
    DataSection,
    EvalSection,
    OptimizeSection,
    QuantizeSection,
    config_from_json,
)
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.trust import OWN_REQUEST
from winml.modelkit.core.values import to_json

FULL = BuildConfig(
    schema=SCHEMA,
    model="model.onnx",
    target="qnn/npu",
    precision="w8a16",
    optimize=OptimizeSection(("constant_folding",), 21, {"batch": 1}),
    quantize=QuantizeSection(
        mode="static",
        activation_type="uint16",
        weight_type="uint8",
        op_types=("Conv",),
        calibration=DataSection("data.npz", limit=8, columns={"text": "sentence"}, digest="sha256:0"),
    ),
    compile=CompileSection(provider_options={"soc_model": "60"}),
    session=SessionSection(threads=2),
    eval=EvalSection("image-classification", DataSection("test.npz"), min_metric=0.9),
)


def test_a_config_comes_back_from_its_file() -> None:
    assert config_from_json(json.loads(json.dumps(to_json(FULL))), OWN_REQUEST) == FULL


def test_a_section_that_is_null_is_a_stage_that_is_skipped() -> None:
    config = config_from_json({"schema": SCHEMA, "optimize": None, "quantize": None, "compile": None}, OWN_REQUEST)
    assert (config.optimize, config.quantize, config.compile) == (None, None, None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "winml/build-config/2"}, "the config has schema `winml/build-config/2`"),
        ({"schema": "winml/perf/1"}, "`schema` must be `winml/build-config/1`"),
        ({"quantise": {}}, "unknown key `quantise`"),
        ({"quantize": {"mode": "static", "weights": "int8"}}, "unknown key `quantize.weights`"),
        ({"quantize": {"mode": "statik"}}, "`quantize.mode` cannot be 'statik'"),
        ({"quantize": {"mode": "static", "calibration": {}}}, "`quantize.calibration.source` is missing"),
        ({"optimize": {"passes": ["a", "a"]}}, "`optimize.passes` must have no duplicates"),
        ({"optimize": {"opset": 3}}, "`optimize.opset` must be at least 7"),
        ({"session": {"thread": 1}}, "unknown key `session.thread`"),
        ({"export": {"task": "fill-mask", "opset": 16}}, "`export.opset` must be at least 17"),
        ({"export": {"task": "fill-mask", "inputs": [{"name": "x", "shape": [0]}]}}, "`export.inputs[0].shape[0]`"),
        ({"eval": {"task": "x"}}, "`eval.data` is missing"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError) as caught:
        config_from_json({"schema": SCHEMA, **change}, OWN_REQUEST)
    assert message in caught.value.message


def test_a_config_of_another_version_says_so_before_its_keys_are_looked_at() -> None:
    with pytest.raises(RequestError) as caught:
        config_from_json({"schema": "winml/build-config/9", "unheard_of": 1}, OWN_REQUEST)
    assert "winml/build-config/9" in caught.value.message
    assert "winml config" in (caught.value.hint or "")
