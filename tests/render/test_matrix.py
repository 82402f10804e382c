from __future__ import annotations

from typing import Any

from winml.modelkit.render.matrix import duration, matrix_text, summary

PROGRESS = {"total": 24, "done": 17, "failed": 1, "pending": 6, "seconds_left": 42.4}


def test_the_summary_tells_progress_time_left_and_disk() -> None:
    disk = {"in_use_bytes": 3 << 30, "limit_bytes": 50 << 30}
    assert summary(PROGRESS, disk) == (
        "17 of 24 cells done · 1 failed · 6 pending, 42 s left · 3.0 GiB of 50.0 GiB in use"
    )
    unknown = PROGRESS | {"failed": 0, "seconds_left": None}
    assert summary(unknown, disk | {"limit_bytes": None}) == (
        "17 of 24 cells done · 6 pending, time left unknown · 3.0 GiB in use"
    )


def test_durations_are_as_long_as_people_need_them() -> None:
    assert [duration(s) for s in (1.4, 89, 91, 5399, 5400)] == ["1 s", "89 s", "2 min", "90 min", "1.5 h"]


def test_a_cell_is_one_line_whatever_its_error_says() -> None:
    row: dict[str, Any] = {
        "hf_id": "m", "combo": "qnn_npu", "precision": "w8a16", "build_status": "failed", "build_stage": "quantize",
        "seconds": 3.0, "bytes": 0, "upload_status": "skipped", "error": "no data\nmore",
    }  # fmt: skip
    pending = row | {"build_status": None, "seconds": None, "upload_status": "n/a", "error": None}
    result = {
        "action": "status", "run_stamp": "s", "feed": None, "cells": [row, pending], "progress": PROGRESS,
        "disk": {"in_use_bytes": 0, "limit_bytes": None},
    }  # fmt: skip
    lines = matrix_text(result).splitlines()
    assert len(lines) == 4
    assert lines[2].endswith("failed at quantize   3 s        skipped  no data")
    assert "pending" in lines[3]
