from __future__ import annotations

import json
from typing import Any

import pytest

from winml.modelkit.core.errors import DataError
from winml.modelkit.core.op_trace import (
    OperatorMetrics,
    OpTraceResult,
    TraceMetadata,
    op_trace_from_json,
    with_shares,
)

CPU, QNN = "CPUExecutionProvider", "QNNExecutionProvider"
META = TraceMetadata(ep="cpu", device="cpu", tracing_level="basic", tracing_backend="test")


def op(path: str, *samples: float, ep: str = CPU, **more: Any) -> OperatorMetrics:
    return OperatorMetrics(path, ep, more.pop("unit", "us"), samples, **more)


def test_shares_are_of_what_is_measured_in_the_same_unit() -> None:
    shared = with_shares([op("a", 30), op("b", 10), op("n", 500, ep=QNN, unit="cycles"), op("untimed")])
    assert [o.percent_of_total for o in shared] == [75.0, 25.0, 100.0, None]


def test_several_runs_are_summed_up_with_their_p90() -> None:
    value = op("/layer/Conv", *range(1, 11)).to_dict()
    assert value["name"] == "Conv"
    assert (value["sample_count"], value["avg_us"], value["total_us"]) == (10, 5.5, 55)
    assert value["p90_us"] == pytest.approx(9.1)


def test_cycles_have_no_microseconds_and_microseconds_no_cycles() -> None:
    cycles, us = op("a", 7, unit="cycles").to_dict(), op("a", 7).to_dict()
    assert [cycles[k] for k in ("duration_us", "avg_us", "total_us", "p90_us")] == [None] * 4
    assert (cycles["avg_cycles"], us["avg_cycles"], us["avg_us"]) == (7, None, 7)


@pytest.mark.parametrize(
    ("known", "kind"),
    [({"onnx_op_type": "Conv", "op_type": "Conv2d"}, "Conv"), ({"op_type": "Conv2d"}, "Conv2d"), ({}, "leaf")],
)
def test_the_type_is_the_models_then_the_eps_then_the_name(known: dict[str, str], kind: str) -> None:
    assert op("/path/leaf", 1, **known).type == kind


def test_statistics_keep_warm_up_apart_and_partitions_too() -> None:
    result = OpTraceResult(META, operators=(op("a", 2, 4, warmup=(90,)), op("a", 6, stream="1")))
    assert result.statistics["a"]["avg"] == 3
    assert result.statistics["a"]["warmup"]["avg"] == 90
    assert result.statistics["a [1]"]["avg"] == 6


def test_reads_back_what_it_wrote() -> None:
    result = OpTraceResult(
        META,
        operators=with_shares(
            [op("a", 1, 2, dims=(1, 3), detail={"num_htp_ops": 3.0}, onnx_nodes=("n",), origin="node")]
        ),
        summary={"unit": "us"},
        artifacts={"csv": "p.csv"},
    )
    assert op_trace_from_json(json.loads(json.dumps(result.to_dict())), source="f") == result


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "winml/perf/1"}, "is not an operator trace"),
        ({"status": "fine"}, "is damaged"),
        ({"operators": [{}]}, "`trace.operators\\[0\\].op_path` is missing"),
        ({"metadata": {"ep": "cpu"}}, "is damaged"),
        ({"operators": None}, "is damaged"),
    ],
)
def test_a_file_of_another_form_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        op_trace_from_json({**OpTraceResult(META).to_dict(), **change}, source="`f.json`")
    with pytest.raises(DataError, match="is not an operator trace"):
        op_trace_from_json([], source="`f.json`")
