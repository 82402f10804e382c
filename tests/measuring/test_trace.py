from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.measured import perf_result

from winml.modelkit.core.errors import DataError
from winml.modelkit.core.op_trace import OpTraceResult, TraceMetadata, TraceStatus
from winml.modelkit.measuring.trace import no_trace, read_trace, trace_notices

EMPTY = OpTraceResult(TraceMetadata("qnn", "npu", "basic", "qnn profiling"), "no_data", error="nothing was written")


def test_a_trace_that_has_no_operators_cannot_be_compared(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(EMPTY.to_dict()))
    with pytest.raises(DataError, match=r"holds no operators: its status is no_data \(nothing was written\)"):
        read_trace(path)
    with pytest.raises(DataError, match="trace not found"):
        read_trace(tmp_path / "gone.json")


@pytest.mark.parametrize("status", ["no_data", "parse_failed", "not_run"])
def test_every_failed_status_is_exit_4_with_what_to_do(status: TraceStatus) -> None:
    measured = perf_result()
    error = no_trace(replace(EMPTY, status=status), measured)
    assert error.exit_code == 4
    assert status in error.message
    assert error.hint
    assert error.result is measured


def test_a_fallback_is_the_first_notice() -> None:
    trace = replace(
        EMPTY, status="basic_fallback", fallback_reason="sdk_missing", error="QNN_SDK_ROOT is not set",
        summary={"notes": ["a note"]},
    )  # fmt: skip
    assert trace_notices(trace) == [
        "the trace is basic instead of detail (sdk_missing): QNN_SDK_ROOT is not set", "a note",
    ]  # fmt: skip
    assert trace_notices(None) == []
