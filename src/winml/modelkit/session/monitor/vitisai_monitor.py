"""VitisAIMonitor: the runtime's profiler, and the report in which the VitisAI EP lists where it put every node.

The report's format is that of AMD's documentation; neither the EP nor its report was available to test this with.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.op_trace import OperatorMetrics, OpTraceResult, TracingLevel
from winml.modelkit.session.monitor.ort_monitor import ORTMonitor

REPORT = "vitisai_ep_report.json"
EP = "VitisAIExecutionProvider"
_ELSEWHERE = ("CPU", "VITIS_EP_CPU")


class ReportError(ValueError):
    """The file is not a report of the VitisAI EP."""


@dataclass(frozen=True)
class ReportedNode:
    """A node and the device the EP put it on."""

    name: str
    op_type: str
    device: str


@dataclass(frozen=True)
class AssignmentReport:
    """How many nodes went to which device, and which where the report lists them."""

    devices: Mapping[str, int]
    nodes: tuple[ReportedNode, ...]


def _node(row: Mapping[str, Any], number: int) -> ReportedNode:
    # `::Conv` and `com.microsoft::Gelu` as this project writes them
    domain, _, op_type = str(row["opType"]).rpartition("::")
    kind = f"{domain}:{op_type}" if domain else op_type
    name = row.get("name") or row.get("nodeName") or row.get("output") or f"{kind}_{number}"
    return ReportedNode(str(name), kind, str(row["device"]))


def read_report(path: Path) -> AssignmentReport:
    """The assignment in a report."""
    try:
        value = read_json(path, lenient=True)
        counts = {str(row["name"]): int(row["nodeNum"]) for row in value["deviceStat"]}
        nodes = tuple(_node(row, number) for number, row in enumerate(value.get("nodeStat", ())))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReportError(f"{path.name} cannot be used: {type(error).__name__}: {error}") from error
    total = counts.pop("all", sum(counts.values()))
    if sum(counts.values()) != total:
        raise ReportError(f"{path.name} reports {total} nodes in total, but its devices have {sum(counts.values())}")
    if nodes and Counter(node.device for node in nodes) != Counter(counts):
        raise ReportError(f"{path.name} lists {len(nodes)} nodes that do not add up to its counts")
    return AssignmentReport(counts, nodes)


class VitisAIMonitor(ORTMonitor):
    """Times of partitions and CPU nodes from the runtime, and the EP's own report of what is on the NPU."""

    ep_name: ClassVar[str | None] = "vitisai"
    backend: ClassVar[str] = "onnxruntime profiler, vitisai report"

    def __init__(
        self,
        level: TracingLevel = "basic",
        output_dir: str | os.PathLike[str] | None = None,
        report: str | os.PathLike[str] | None = None,
    ) -> None:
        """`report` names the EP's report; without one it is looked for in the cache folder the session was given."""
        super().__init__(level, output_dir)
        self._report = None if report is None else Path(report)

    @classmethod
    def _available(cls) -> bool:
        from winml.modelkit.session import ep_registry

        return ep_registry.has_devices("vitisai")

    def _report_path(self) -> Path | None:
        if self._report is not None:
            return self._report
        given = self._observation.provider_options if self._observation else {}
        if "cache_dir" not in given:
            return None
        return Path(given["cache_dir"]) / given.get("cache_key", "") / REPORT

    def _collect(self) -> OpTraceResult:
        result = super()._collect()
        path = self._report_path()
        if path is None:
            note = f"the location of {REPORT} is unknown; open the session with `cache_dir` and `cache_key`"
            return _with_note(result, note)
        try:
            report = read_report(path)
        except ReportError as error:
            return _with_note(result, str(error))
        summary = {**result.summary, "assigned_nodes": dict(report.devices)}
        # Which node is on the NPU is known, how long it takes is not: partitions are timed as a whole.
        untimed = tuple(
            OperatorMetrics(
                node.name, EP, "us", (), op_type=node.op_type, onnx_op_type=node.op_type, onnx_nodes=(node.name,),
                origin="node", stream="report",
            )
            for node in report.nodes
            if node.device not in _ELSEWHERE
        )  # fmt: skip
        return replace(
            result,
            summary=summary,
            operators=(*result.operators, *untimed),
            artifacts={**result.artifacts, "report": str(path)},
        )


def _with_note(result: OpTraceResult, note: str) -> OpTraceResult:
    return replace(result, summary={**result.summary, "notes": [*result.summary.get("notes", ()), note]})
