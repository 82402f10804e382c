"""Asking real EPs, in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

import analysis_zoo
import model_zoo
from winml.modelkit.building.analysis.ask import ask
from winml.modelkit.building.analysis.result import EPAnswer
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.values import to_json


def _ask(path: Path, ep: str, device: str, *, simulated: bool = False) -> EPAnswer:
    session = to_json(SessionSection(optimization_level="disable"))
    args = {"model": str(path), "ep": ep, "device": device, "simulated": simulated, "session": session}
    return ask(args, None)


def test_every_node_is_listed_with_its_ep_and_the_versions_that_answered(zoo: Path) -> None:
    answer = _ask(zoo / "conv.onnx", "cpu", "cpu")
    assert len(answer.nodes) == 8
    assert {(n.ep, n.partition) for n in answer.nodes} == {("CPUExecutionProvider", None)}
    assert answer.environment.runtime.version


@pytest.mark.qnn
def test_partitions_are_numbered_and_nodes_on_the_cpu_have_none(zoo: Path) -> None:
    nodes = _ask(zoo / "fused.onnx", "qnn", "npu", simulated=True).nodes
    on_cpu = [n for n in nodes if n.ep == "CPUExecutionProvider"]
    assert [n.op for n in on_cpu] == ["com.microsoft:FusedConv"] * 3
    assert {n.partition for n in on_cpu} == {None}
    assert len({n.partition for n in nodes if n.ep == "QNNExecutionProvider"}) == 1


@pytest.mark.qnn
def test_an_ep_that_takes_nothing_is_an_answer(tmp_path: Path) -> None:
    path = model_zoo.saved(analysis_zoo.attention(mask=True), tmp_path / "attention.onnx")
    answer = _ask(path, "qnn", "npu", simulated=True)
    assert [(n.op, n.ep) for n in answer.nodes] == [("Attention", "CPUExecutionProvider")]
