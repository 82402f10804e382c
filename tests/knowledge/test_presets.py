from __future__ import annotations

import pytest

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.values import to_json
from winml.modelkit.ep.targets import parse_target
from winml.modelkit.knowledge.findings import Knowledge
from winml.modelkit.knowledge.presets import load_preset, load_presets, preset_from_json


def test_four_presets_start_at_a_base_that_changes_nothing() -> None:
    found = load_presets()
    assert {name: len(p.hypotheses) for name, p in found.items()} == {"npu": 11, "gpu": 14, "cpu": 15, "dml": 9}
    for p in found.values():
        assert p.hypothesis("h0").passes == ()
        assert p.hypothesis("h0").opset is None
        assert parse_target(p.target).ep is not None


def test_hypotheses_name_findings_that_exist() -> None:
    known = {f.id for f in Knowledge().findings}
    assert {name for p in load_presets().values() for h in p.hypotheses for name in h.because} <= known


def test_a_hypothesis_is_data_about_config_sections() -> None:
    fused = load_preset("npu").hypothesis("h4")
    assert fused.passes == ("conv_bn_fusion", "conv_add_fusion", "conv_activation_fusion")
    assert fused.opset == 17
    assert load_preset("cpu").hypothesis("h14").changes.analyze is False


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(RequestError, match="unknown preset `nqu`"):
        load_preset("nqu")
    with pytest.raises(RequestError, match="no hypothesis `h44`"):
        load_preset("npu").hypothesis("h44")


def test_an_id_that_comes_twice_is_refused() -> None:
    value = to_json(load_preset("npu"))
    with pytest.raises(RequestError, match="every id once"):
        preset_from_json({**value, "hypotheses": value["hypotheses"] * 2})
