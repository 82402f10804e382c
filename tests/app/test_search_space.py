from __future__ import annotations

import pytest

from winml.modelkit.app import search_space
from winml.modelkit.app.search_tools import completed, pieces
from winml.modelkit.core.config import SCHEMA
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.target import Target
from winml.modelkit.knowledge.presets import presets
from winml.modelkit.search.space import Space

CPU, NPU = Target("cpu", "cpu"), Target("qnn", "npu", simulated=True)
BASE = {"schema": SCHEMA, "target": "cpu", "optimize": {"passes": [], "opset": 17}, "quantize": None, "session": {}}


def test_a_second_target_is_a_level_and_its_options_act_only_there() -> None:
    space = Space(search_space.knobs((CPU, NPU)), BASE)
    assert space.knob("target").names == ("default", "qnn/npu")
    option = ("ep.htp_performance_mode", "burst")
    assert space.with_level((), *option) == ()
    assert option in space.with_level((("target", "qnn/npu"),), *option)


def test_every_preset_is_a_space_of_its_hypotheses() -> None:
    for preset in presets().values():
        space = search_space.of_preset(BASE, preset, ())
        assert [level for _, level in space.options()] == [h.id for h in preset.hypotheses[1:]]
        for option in space.options():
            completed(space.config((option,)), None)


def test_a_preset_can_be_cut_down() -> None:
    space = search_space.of_preset(BASE, presets()["cpu"], ("h0", "h3"))
    assert list(space.options()) == [("hypothesis", "h3")]
    with pytest.raises(RequestError, match="has no hypothesis `h99`"):
        search_space.of_preset(BASE, presets()["cpu"], ("h99",))


def test_a_config_is_completed_with_data_and_passes_in_the_order_they_run() -> None:
    passes = ["conv_activation_fusion", "identity_elimination"]
    config = {**BASE, "optimize": {"passes": passes}, "quantize": {"mode": "static"}}
    made = completed(config, {"source": "random"})
    assert made.optimize is not None
    assert made.optimize.passes == ("identity_elimination", "conv_activation_fusion")
    assert made.quantize is not None
    assert made.quantize.calibration is not None
    dynamic = completed({**config, "quantize": {"mode": "dynamic"}}, {"source": "random"})
    assert dynamic.quantize is not None
    assert dynamic.quantize.calibration is None


@pytest.mark.parametrize(
    ("nodes", "partitions", "cpu_ops", "count"),
    [
        ({"Q": 7}, {"Q": 1}, {}, 1),
        ({"Q": 7, "CPU": 2}, {"Q": 1}, {"QuantizeLinear": 1, "DequantizeLinear": 1}, 1),
        ({"Q": 5, "CPU": 3}, {"Q": 2}, {"FusedConv": 3}, 5),
        ({"CPU": 4}, {}, {"FusedConv": 4}, 5),
    ],
)
def test_pieces_are_partitions_and_what_is_left_between_them(
    nodes: dict[str, int], partitions: dict[str, int], cpu_ops: dict[str, int], count: int
) -> None:
    placement = {"requested": "Q", "nodes": nodes, "partitions": partitions, "cpu_ops": cpu_ops}
    assert pieces(placement) == count
