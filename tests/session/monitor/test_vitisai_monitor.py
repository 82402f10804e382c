"""VitisAIMonitor against reports made by hand in the documented format; the EP itself is not here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from program import valid_value

from winml.modelkit.core.target import Target
from winml.modelkit.session.monitor.ep_monitor import Observation
from winml.modelkit.session.monitor.vitisai_monitor import ReportError, VitisAIMonitor, read_report

REPORT: dict[str, Any] = {
    "deviceStat": [
        {"name": "all", "nodeNum": 3, "supportedOpType": ["::Conv", "::Relu", "::QuantizeLinear"]},
        {"name": "CPU", "nodeNum": 1, "supportedOpType": ["::QuantizeLinear"]},
        {"name": "NPU", "nodeNum": 2, "supportedOpType": ["::Conv", "::Relu"]},
    ],
    "nodeStat": [
        {"name": "conv1", "opType": "::Conv", "device": "NPU"},
        {"output": "r0", "opType": "com.amd::Relu", "device": "NPU"},
        {"name": "q", "opType": "::QuantizeLinear", "device": "CPU"},
    ],
}


def _saved(folder: Path, value: Any) -> Path:
    path = folder / "vitisai_ep_report.json"
    path.write_text(json.dumps(value))
    return path


def test_reads_counts_and_nodes(tmp_path: Path) -> None:
    report = read_report(_saved(tmp_path, REPORT))
    assert report.devices == {"CPU": 1, "NPU": 2}
    assert [(n.name, n.op_type, n.device) for n in report.nodes] == [
        ("conv1", "Conv", "NPU"), ("r0", "com.amd:Relu", "NPU"), ("q", "QuantizeLinear", "CPU"),
    ]  # fmt: skip


def test_a_report_without_nodes_still_has_counts(tmp_path: Path) -> None:
    assert read_report(_saved(tmp_path, {"deviceStat": REPORT["deviceStat"]})).nodes == ()


@pytest.mark.parametrize(
    "value",
    [
        [], {}, {"deviceStat": [{"name": "all"}]}, {"deviceStat": "x"},
        {**REPORT, "deviceStat": [{"name": "all", "nodeNum": 9}, {"name": "CPU", "nodeNum": 1}]},
        {**REPORT, "nodeStat": REPORT["nodeStat"][:1]},
        {**REPORT, "nodeStat": [{"device": "NPU"}]},
    ],
)  # fmt: skip
def test_a_report_of_another_form_or_that_does_not_add_up_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ReportError, match="vitisai_ep_report.json"):
        read_report(_saved(tmp_path, value))


def _result(tmp_path: Path, options: dict[str, str]) -> dict[str, Any]:
    monitor = VitisAIMonitor("basic", tmp_path / "trace")
    with monitor:
        monitor.observe(
            Observation("m.onnx", Target("vitisai", "npu"), warmup_runs=0, wall_ns=(5000,), provider_options=options)
        )
    return valid_value(monitor.to_dict())


def test_nodes_on_the_npu_are_listed_without_a_time(tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "key"
    cache.mkdir(parents=True)
    _saved(cache, REPORT)
    value = _result(tmp_path, {"cache_dir": str(tmp_path / "cache"), "cache_key": "key"})
    assert value["summary"]["assigned_nodes"] == {"CPU": 1, "NPU": 2}
    assert [(o["op_path"], o["ep"], o["avg_us"]) for o in value["operators"]] == [
        ("conv1", "VitisAIExecutionProvider", None), ("r0", "VitisAIExecutionProvider", None),
    ]  # fmt: skip
    # Nothing ran here, and a list of nodes is no trace.
    assert value["status"] == "no_data"


@pytest.mark.parametrize("options", [{}, {"cache_dir": "/nowhere"}])
def test_a_report_that_is_not_there_is_a_note(tmp_path: Path, options: dict[str, str]) -> None:
    assert any("vitisai_ep_report.json" in note for note in _result(tmp_path, options)["summary"]["notes"])
