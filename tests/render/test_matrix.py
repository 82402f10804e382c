from __future__ import annotations

from dataclasses import replace

from winml.modelkit.build_matrix.command import StatusResult
from winml.modelkit.build_matrix.disk import DiskUse
from winml.modelkit.build_matrix.progress import Progress
from winml.modelkit.build_matrix.state import CellRow
from winml.modelkit.render.matrix import cells_text, duration, summary

PROGRESS = Progress(total=24, done=17, failed=1, pending=6, seconds_left=42.4)


def test_the_summary_tells_progress_time_left_and_disk() -> None:
    disk = DiskUse(in_use_bytes=3 << 30, limit_bytes=50 << 30)
    assert summary(PROGRESS, disk) == (
        "17 of 24 cells done · 1 failed · 6 pending, 42 s left · 3.0 GiB of 50.0 GiB in use"
    )
    unknown = replace(PROGRESS, failed=0, seconds_left=None)
    assert summary(unknown, replace(disk, limit_bytes=None)) == (
        "17 of 24 cells done · 6 pending, time left unknown · 3.0 GiB in use"
    )


def test_durations_are_as_long_as_people_need_them() -> None:
    assert [duration(s) for s in (1.4, 89, 91, 5399, 5400)] == ["1 s", "89 s", "2 min", "90 min", "1.5 h"]


def test_a_cell_is_one_line_whatever_its_error_says() -> None:
    row = CellRow(
        version="v", package="p", run_stamp="s", hf_id="m", source="m", task=None, priority=None, ep="qnn",
        device="npu", combo="qnn_npu", target="qnn/npu", precision="w8a16", compile=False, folder="m",
        build_status="failed", build_stage="quantize", upload_status="skipped", recorded_at="t", error="no data\nmore",
        seconds=3.0, bytes=0, digest=None, reference=None, sent_bytes=None, files_by=None, computed=(), node=None,
    )  # fmt: skip
    pending = replace(row, build_status=None, seconds=None, upload_status="n/a", error=None)
    result = StatusResult(
        run_stamp="s", folder="out", feed=None, cells=(row, pending), progress=PROGRESS,
        disk=DiskUse(in_use_bytes=0, limit_bytes=None), cluster=None, nodes={}, notes=(),
    )  # fmt: skip
    lines = cells_text(result).splitlines()
    assert len(lines) == 4
    assert lines[2].endswith("failed at quantize   3 s        skipped  no data")
    assert "pending" in lines[3]
