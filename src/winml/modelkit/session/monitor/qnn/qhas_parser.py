"""Reads the HTP analysis summary (QHAS) of Qualcomm's profile viewer.

Written against its published field names and fixtures made by hand; no SDK was available to run it with.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.json_text import read_json


class QhasError(ValueError):
    """The file is not a summary this reader knows; the message names the first field that is missing."""


_SUMMARY = {
    "time_us": "inference_us",
    "graph_execute_us": "execute_us",
    "percent_utilization": "utilization_pct",
    "total_dram_read": "dram_read_bytes",
    "total_dram_write": "dram_write_bytes",
    "peak_vtcm_alloc": "vtcm_peak_bytes",
    "timeline_cycles": "timeline_cycles",
}
_OPERATOR = {
    "num_dominant_path_cycles_htp_0": "dominant_path_cycles",
    "dram_read": "dram_read_bytes",
    "dram_write": "dram_write_bytes",
    "vtcm_read": "vtcm_read_bytes",
    "vtcm_write": "vtcm_write_bytes",
    "num_htp_ops": "num_htp_ops",
    "dominant_path_us": "dominant_path_us",
    "hardware_time_us": "hardware_time_us",
    "memory_time_us": "memory_time_us",
}


@dataclass(frozen=True)
class Qhas:
    """The graph's figures, and each operator's by its name."""

    summary: Mapping[str, float]
    operators: Mapping[str, Mapping[str, float | None]]


def _number(row: Mapping[str, Any], name: str, where: str) -> float:
    if name not in row:
        raise QhasError(f"`{name}` is missing in {where}")
    try:
        return float(row[name])
    except (TypeError, ValueError) as error:
        raise QhasError(f"`{name}` in {where} is {row[name]!r}, not a number") from error


def _rows(data: Any, name: str) -> list[dict[str, Any]]:
    try:
        rows = data[name]["data"]
    except (KeyError, TypeError) as error:
        raise QhasError(f"`data.{name}.data` is missing") from error
    if not isinstance(rows, list) or not all(isinstance(r, dict) for r in rows):
        raise QhasError(f"`data.{name}.data` is not a list of rows")
    return rows


def _operator(row: Mapping[str, Any]) -> dict[str, float | None]:
    found: dict[str, float | None] = {
        ours: _number(row, theirs, "an operator") for theirs, ours in _OPERATOR.items() if theirs in row
    }
    read = (found.get("vtcm_read_bytes") or 0.0) + (found.get("dram_read_bytes") or 0.0)
    found["vtcm_hit_ratio"] = (found.get("vtcm_read_bytes") or 0.0) / read if read else None
    return found


def read_qhas(path: Path) -> Qhas:
    """The figures in a summary."""
    try:
        value = read_json(path, lenient=True)
    except (OSError, ValueError) as error:
        raise QhasError(f"{path.name} is not JSON: {error}") from error
    data = value.get("data") if isinstance(value, dict) else None
    overall = _rows(data, "htp_overall_summary")
    if not overall:
        raise QhasError("`data.htp_overall_summary.data` is empty")
    summary = {ours: _number(overall[0], theirs, "the summary") for theirs, ours in _SUMMARY.items()}
    operators = {}
    for row in _rows(data, "qnn_op_instances_nodes"):
        if "qnn_op" not in row:
            raise QhasError("`qnn_op` is missing in an operator")
        operators[str(row["qnn_op"])] = _operator(row)
    return Qhas(summary, operators)
