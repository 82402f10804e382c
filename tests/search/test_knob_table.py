from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from graph_values import make_facts
from winml.modelkit.building.optimize import table as passes
from winml.modelkit.core.config import SCHEMA, DataSection
from winml.modelkit.core.environment import Machine
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.target import Target
from winml.modelkit.knowledge import rules
from winml.modelkit.knowledge.findings import Knowledge
from winml.modelkit.knowledge.presets import load_presets
from winml.modelkit.search.evidence import ask_target
from winml.modelkit.search.insight import make_insight
from winml.modelkit.search.knob_table import (
    _opset_notes,
    _pass_notes,
    collect_insight,
    kernel_notes,
    knobs,
    make_preset_space,
)
from winml.modelkit.search.records import EvidenceRecord
from winml.modelkit.search.space import ConfigJSON, Space
from winml.modelkit.search.tools import check_machine, complete_config, count_pieces
from winml.modelkit.search.trial import Note

CPU, NPU = Target("cpu", "cpu"), Target("qnn", "npu", simulated=True)
BASE = {"schema": SCHEMA, "target": "cpu", "optimize": {"passes": [], "opset": 17}, "quantize": None, "session": {}}


def test_a_second_target_is_a_level_and_its_options_act_only_there() -> None:
    space = Space(knobs((CPU, NPU)), BASE)
    assert space.knob("target").names == ("default", "qnn/npu")
    option = ("ep.htp_performance_mode", "burst")
    assert space.with_level((), *option) == ()
    assert option in space.with_level((("target", "qnn/npu"),), *option)


def test_every_preset_is_a_space_of_its_hypotheses() -> None:
    for preset in load_presets().values():
        space = make_preset_space(BASE, preset, ())
        assert [level for _, level in space.options()] == [h.id for h in preset.hypotheses[1:]]
        for option in space.options():
            complete_config(space.config((option,)), None)


GPU, DML = Target("qnn", "gpu"), Target("dml", "gpu")
EVERYTHING = make_facts(
    dict.fromkeys(("Conv", "Gemm", "MatMul", "Add", "Softmax", "Transpose", "Erf", "ReduceMean"), 20)
)


def preset_notes(name: str, target: Target, families: tuple[str, ...] = ()) -> list[Note]:
    preset = load_presets()[name]
    found = collect_insight(
        make_preset_space(BASE, preset, ()),
        target=target,
        facts=EVERYTHING,
        effects={},
        advice=rules.find_advice(Knowledge().findings, EVERYTHING, target, families=families),
        missing={},
        preset=preset,
        objective="latency",
    )
    return list(found.notes)


@pytest.mark.parametrize(("name", "target"), [("gpu", GPU), ("dml", DML), ("npu", NPU), ("cpu", CPU)])
def test_what_nobody_asked_a_target_is_tried_and_said(name: str, target: Target) -> None:
    notes = preset_notes(name, target)
    asked = [note for note in notes if note.source == "target"]
    assert {note.kind for note in asked} <= {"order"}
    assert all("is not known" in note.reason for note in asked)
    assert bool(asked) == (target in (GPU, DML))


def test_what_a_target_is_known_to_refuse_is_skipped() -> None:
    space = Space(knobs((NPU,)), BASE)
    refused = {note.option: note.reason for note in _pass_notes(space, NPU) if note.kind == "skip"}
    assert "which qnn/npu does not support" in refused["optimize.conv_activation_fusion", "on"]


def test_the_headline_of_the_first_search_is_a_hypothesis_for_its_family_alone() -> None:
    """Opset 21 comes first for a DINOv2 on the NPU, and nothing says so of a plain ViT or of what may be either."""
    opset_21 = {h.id for h in load_presets()["npu"].hypotheses if h.opset == 21}

    def favoured(*families: str) -> set[str]:
        return {n.level for n in preset_notes("npu", NPU, families) if n.source == "npu-001" and n.kind == "boost"}

    assert "h3" in favoured("dinov2")
    assert favoured("dinov2") <= opset_21
    assert favoured("vit") == favoured("deit", "vit") == favoured() == favoured("beit", "dinov2") == set()


def test_numbers_that_a_cpu_has_no_kernels_for_come_last() -> None:
    space = Space(knobs((CPU,)), BASE)
    last = {note.level for note in kernel_notes(space, CPU, "x86_64")}
    assert last == {"w8a16", "w4a16", "int16", "fp16"}
    assert {note.level for note in kernel_notes(space, CPU, "aarch64")} == last - {"fp16"}
    assert kernel_notes(Space(knobs((NPU,)), BASE), NPU, "x86_64") == []


def test_the_opset_that_a_model_has_is_no_trial() -> None:
    base = {**BASE, "optimize": {"passes": [], "opset": None, "fixed_dims": {}}}
    notes = _opset_notes(Space(knobs((CPU,)), base), 17)
    assert [(note.knob, note.level) for note in notes] == [("optimize.opset", "17")]
    assert [name for knob, name in Space(knobs((CPU,)), base).options() if knob == "optimize.opset"] == [
        str(opset) for opset in range(17, 24)
    ]


SEED_FLAGS = [
    "gelu_fusion",
    "gelu_singlegelu",
    "fast_gelu_fusion",
    "quick_gelu_fusion",
    "bias_gelu_fusion",
    "layer_norm_fusion",
    "simplified_layer_norm_fusion",
    "fuse_rmsnorm",
    "skip_layer_norm_fusion",
    "attention_fusion",
    "bias_softmax_fusion",
    "matmul_add_fusion",
    "matmuladd_reshapegemm",
    "matmul_activation_fusion",
    "matmul_transpose_fusion",
    "matmul_scale_fusion",
    "conv_bn_fusion",
    "conv_add_fusion",
    "conv_mul_fusion",
    "conv_activation_fusion",
    "conv_add_activation_fusion",
    "pad_fusion",
    "gemm_activation_fusion",
    "gemm_sum_fusion",
    "gemm_transpose_fusion",
    "slice_elimination",
    "expand_elimination",
    "unsqueeze_elimination",
    "concat_slice_elimination",
    "transpose_optimizer",
    "highdimRTR_lowdimRTR",
]


def test_every_fusion_of_the_first_search_can_be_tried_alone() -> None:
    """But for two, which the runtime does on other devices only, and says so."""
    space = Space(knobs((CPU,)), BASE)
    alone = {knob.removeprefix("optimize.") for knob, _ in space.options()}
    missing = set(SEED_FLAGS) - alone
    assert len(SEED_FLAGS) == 31
    assert missing == {"bias_softmax_fusion", "matmul_activation_fusion"}
    assert all(passes.BY_NAME[name].unavailable for name in missing)


def test_a_preset_can_be_cut_down() -> None:
    space = make_preset_space(BASE, load_presets()["cpu"], ("h0", "h3"))
    assert list(space.options()) == [("hypothesis", "h3")]
    with pytest.raises(RequestError, match="has no hypothesis `h99`"):
        make_preset_space(BASE, load_presets()["cpu"], ("h99",))


@pytest.mark.parametrize(("others", "kind", "searched"), [(False, "skip", False), (True, "order", True)])
def test_what_is_known_of_one_target_leaves_nothing_out_on_another(others: bool, kind: str, searched: bool) -> None:
    facts = make_facts({"Conv": 4, "Add": 2})
    space = Space(knobs((CPU,)), BASE)
    found = collect_insight(
        space,
        target=CPU,
        facts=facts,
        effects={},
        advice=rules.find_advice(Knowledge(Path("none")).findings, facts, CPU),
        missing={},
        preset=None,
        objective="latency",
        others=others,
    )
    option = ("quantize.scheme", "s8s8")
    assert [note.kind for note in found.notes if note.option == option and note.source == "cpu-101"] == [kind]
    assert (option in found.space.options()) == searched


class _Placements:
    """A target that takes every node but a convolution that is fused with its activation."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, config: ConfigJSON) -> Placement:
        self.asked.append(config["optimize"]["passes"])
        left = {"com.microsoft:FusedConv": 3} if "conv_activation_fusion" in self.asked[-1] else {}
        return Placement("QNN", {"QNN": 5}, {"QNN": 1}, left)


def test_a_finding_is_asked_about_once() -> None:
    space = Space(knobs((NPU,)), {**BASE, "target": "qnn/npu"})
    left_out = Note(kind="skip", knob="optimize.conv_activation_fusion", level="on", source="npu-006", reason="fused")
    insight = make_insight(space, [left_out], (), lambda advice, config: False)
    findings = Knowledge(Path("none")).findings
    place = _Placements()
    known = EvidenceRecord(finding="npu-006", holds=True, words="seen")
    assert ask_target(space, insight, findings, place, [known]) == []
    assert place.asked == []
    other = EvidenceRecord(finding="npu-101", holds=True, words="another one")
    (found,) = ask_target(space, insight, findings, place, [other])
    assert (found.finding, found.holds) == ("npu-006", True)
    assert found.words == "seen here: com.microsoft:FusedConv x3 on the CPU, 4 pieces instead of 1"
    assert place.asked == [[], ["conv_activation_fusion"]]


def test_times_of_two_machines_are_not_put_together() -> None:
    here = Machine(system="Linux", release="6.1", architecture="x86_64", cpu="one", cores=2)
    check_machine(None, here)
    check_machine(replace(here, release="6.2"), here)
    with pytest.raises(UnavailableError, match=r"timed on another machine \(other, 2 cores\); this is one, 2 cores"):
        check_machine(replace(here, cpu="other"), here)


def test_a_config_is_completed_with_data_and_passes_in_the_order_they_run() -> None:
    passes = ["conv_activation_fusion", "identity_elimination"]
    config = {**BASE, "optimize": {"passes": passes}, "quantize": {"mode": "static"}}
    made = complete_config(config, DataSection("random"))
    assert made.optimize is not None
    assert made.optimize.passes == ("identity_elimination", "conv_activation_fusion")
    assert made.quantize is not None
    assert made.quantize.calibration is not None
    dynamic = complete_config({**config, "quantize": {"mode": "dynamic"}}, DataSection("random"))
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
    assert count_pieces(Placement("Q", nodes, partitions, cpu_ops)) == count
