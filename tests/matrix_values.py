"""Cells of a matrix in every state."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from winml.modelkit.build_matrix.command import StatusResult
from winml.modelkit.build_matrix.disk import DiskUse
from winml.modelkit.build_matrix.progress import Progress
from winml.modelkit.build_matrix.state import CellPlan, CellRow

TARGETS = (
    ("qnn", "npu", "qnn/npu", "w8a16"),
    ("qnn", "gpu", "qnn/gpu", "fp32"),
    ("ov", "cpu", "openvino/cpu", "fp32"),
    ("ov", "npu", "openvino/npu", "fp16"),
    ("ov", "gpu", "openvino/gpu", "fp16"),
    ("mlas", "cpu", "cpu", "fp32"),
    ("dml", "gpu", "dml/gpu", "fp16"),
    ("vitisai", "npu", "vitisai/npu", "w8a8"),
)
"""The EP in names, the device, the target and its precision."""


def make_cell(model: str, number: int, **given: Any) -> CellRow:
    """A cell that is built and published, but for what is given."""
    ep, device, target, precision = TARGETS[number]
    made = {
        "version": f"20260609-{model}-{ep}-{device}", "package": model, "run_stamp": "20260609", "hf_id": model,
        "source": model, "task": None, "priority": None, "ep": ep, "device": device, "combo": f"{ep}_{device}",
        "target": target, "precision": precision, "compile": False, "folder": f"{model}/{ep}_{device}",
        "build_status": "ok", "build_stage": "complete", "upload_status": "uploaded", "recorded_at": "t", "error": None,
        "seconds": 3.0, "bytes": 800_000, "digest": None, "reference": None, "sent_bytes": 0, "files_by": "link",
        "computed": (), "node": None,
    }  # fmt: skip
    return CellRow(**{**made, **given})  # type: ignore[arg-type]


FAILED = {"build_status": "failed", "build_stage": "load", "upload_status": "skipped", "bytes": 0, "seconds": 1.0}
PENDING = {"build_status": None, "build_stage": None, "upload_status": "n/a", "bytes": None, "seconds": None}


def make_plan(cell: CellRow) -> CellPlan:
    return CellPlan(**{one.name: getattr(cell, one.name) for one in fields(CellPlan)})


def make_status(*cells: CellRow, feed: str | None = "folder:feed", **given: Any) -> StatusResult:
    """The state of a run with these cells."""
    failed = sum(c.build_status in ("failed", "timeout") or c.upload_status in ("failed", "timeout") for c in cells)
    pending = sum(c.build_status is None and c.upload_status == "n/a" for c in cells)
    done = len(cells) - failed - pending
    return StatusResult(
        run_stamp="20260609", folder="out", feed=feed, cells=cells,
        progress=Progress(len(cells), done, failed, pending, 42.0 if pending else 0.0),
        disk=DiskUse(in_use_bytes=3 << 30, limit_bytes=None), **{"cluster": None, "nodes": {}, "notes": (), **given},
    )  # fmt: skip
