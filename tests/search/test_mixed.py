"""Levels of mixed precision come from a sensitivity that was measured before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from winml.modelkit.accuracy.noise import Noise
from winml.modelkit.accuracy.result import LayerNode, OutputNoise
from winml.modelkit.accuracy.sensitivity_result import Effect, GroupEffect, SensitivityResult
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.search.knob_table import make_space
from winml.modelkit.search.mixed import SCHEME, read_sensitivity

CPU, NPU = Target("cpu", "cpu"), Target("qnn", "npu", True)


def effect(ratio: float | None) -> Effect:
    if ratio is None:
        return Effect(state="refused", reason="no such kernel")
    noise = Noise(sqnr_db=ratio, cosine=0.9, equal=False, not_finite=0)
    return Effect(state="measured", outputs=(OutputNoise(output="y", noise=noise),))


def found(target: Target, *ratios: float | None) -> SensitivityResult:
    groups = tuple(
        GroupEffect(label=f"n{n}", nodes=(LayerNode(name=f"n{n}", op="Conv"),), effect=effect(ratio))
        for n, ratio in enumerate(ratios)
    )
    return SensitivityResult(
        model="m.onnx", target=target, precision="int8", section=QuantizeSection(mode="static"), grouping="layer",
        data="d.npz", synthetic=False, samples=4, sizes={}, task=None, metric=None, before=None, groups=groups,
        whole=effect(10), unquantized=effect(90), left=0, cached=0, summary=(), notes=(), warnings=(), seconds=1.0,
    )  # fmt: skip


def levels(target: Target, *ratios: float | None) -> dict[str, dict[str, list[str]]]:
    knob = make_space({}, (target,), None, found(target, *ratios)).knob(SCHEME)
    keys = ("exclude_nodes", "wide_nodes")
    mixed = {one.name: {key: one.sets["quantize"].get(key) or [] for key in keys} for one in knob.levels}
    return {name: nodes for name, nodes in mixed.items() if any(nodes.values())}


def test_the_layers_that_do_most_stay_in_float() -> None:
    made = levels(CPU, *range(10, 30))
    assert [nodes["exclude_nodes"] for nodes in made.values()] == [
        ["n0"],
        ["n0", "n1"],
        ["n0", "n1", "n2", "n3", "n4"],
    ]
    assert all(name.startswith("int8-float-") for name in made)
    assert not any(nodes["wide_nodes"] for nodes in made.values())


def test_an_npu_raises_layers_to_16_bits_first() -> None:
    made = list(levels(NPU, *range(10, 20)).values())
    assert made[0] == {"exclude_nodes": [], "wide_nodes": ["n0"]}
    assert [bool(nodes["wide_nodes"]) for nodes in made] == [True, True, False, False]


def test_what_was_not_measured_is_no_reason_to_widen() -> None:
    assert list(levels(CPU, None, 10.0).values()) == [{"exclude_nodes": ["n1"], "wide_nodes": []}]
    assert levels(CPU, None) == {}


def test_another_sensitivity_has_other_names() -> None:
    assert not set(levels(CPU, 1.0)) & set(levels(CPU, None, 1.0))


def test_a_config_of_a_level_is_the_scheme_with_its_nodes() -> None:
    space = make_space({"quantize": None, "precision": "fp32"}, (CPU,), None, found(CPU, 1.0))
    name = next(name for name in space.knob(SCHEME).names if "-float-1-" in name)
    config = space.config(((SCHEME, name),))
    assert config["precision"] == "int8"
    assert config["quantize"]["exclude_nodes"] == ["n0"]
    assert config["quantize"]["mode"] == "static"


def test_a_file_of_another_kind_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "layers.json"
    path.write_text(json.dumps(to_json(found(CPU, 1.0))))
    assert read_sensitivity(str(path)).groups[0].label == "n0"
    path.write_text(json.dumps({"schema": "winml/debug/1"}))
    with pytest.raises(RequestError, match="no result of `winml quantize --sensitivity`"):
        read_sensitivity(str(path))
    with pytest.raises(RequestError, match="not found"):
        read_sensitivity(str(tmp_path / "none.json"))


def test_a_space_file_leaves_mixed_levels_in(tmp_path: Path) -> None:
    """They were asked for, and nobody can know their names before."""
    for knobs in ({SCHEME: ["int8"]}, {"optimize.passes": ["extended"]}):
        file = tmp_path / "space.json"
        file.write_text(json.dumps({"schema": "winml/space/1", "knobs": knobs}), encoding="utf-8")
        names = make_space({}, (CPU,), str(file), found(CPU, *range(10, 30))).knob(SCHEME).names
        assert [name for name in names if "-float-" not in name and name != "default"] == knobs.get(SCHEME, [])
        assert sum("-float-" in name for name in names) == 3
