"""Traces and their differences as people see them."""

from __future__ import annotations

from winml.modelkit.core.op_trace import OperatorMetrics, OpTraceResult, TraceMetadata, with_shares
from winml.modelkit.core.values import to_json
from winml.modelkit.measuring.trace_diff import diff
from winml.modelkit.render.op_trace import op_trace_text
from winml.modelkit.render.perfetto import perfetto
from winml.modelkit.render.trace import diff_text

CPU, QNN = "CPUExecutionProvider", "QNNExecutionProvider"
TRACE = OpTraceResult(
    TraceMetadata("qnn", "npu", "basic", "qnn profiling", "m.onnx", simulated=True, num_samples=2, warmup_samples=1),
    operators=with_shares(
        [
            OperatorMetrics("Transpose", QNN, "cycles", (100.0, 300.0), op_type="Transpose", origin="inserted",
                            neighbour="conv"),
            OperatorMetrics("conv_token_2", QNN, "cycles", (600.0, 600.0), op_type="Conv2d", onnx_op_type="Conv",
                            onnx_nodes=("conv", "relu"), origin="fused", absorbed=(("relu", "Relu"),)),
            OperatorMetrics("Output", QNN, "cycles", (0.0, 0.0), origin="boundary"),
            OperatorMetrics("q", CPU, "us", (12.0, 14.0), start_time_us=3.0, op_type="QuantizeLinear",
                            onnx_op_type="QuantizeLinear", onnx_nodes=("q",), origin="node"),
        ]
    ),
    summary={"end_to_end_us": 1000.0, "unexplained_us": 50.0, "unexplained_pct": 5.0, "operators_cycles": 800.0,
             "accelerator_cycles": 900.0, "absorbed_nodes": [{"node": "relu"}]},
)  # fmt: skip


def test_a_trace_is_a_table_by_share_with_shares_added_up() -> None:
    assert op_trace_text(TRACE, top_k=2) == (
        "operators (qnn profiling, simulated; 2 runs after 1 warm-up)\n"
        "  3 operators on QNN, share of their cycles, the first 2\n"
        "    node                       type       avg cycles  p90 cycles   share      sum\n"
        "    conv +1                    Conv+Relu         600         600  75.0 %   75.0 %\n"
        "    + Transpose (before conv)  Transpose         200         280  25.0 %  100.0 %\n"
        "  1 operator on CPU, share of their µs\n"
        "    node  type            avg µs  p90 µs    share      sum\n"
        "    q     QuantizeLinear    13.0    13.8  100.0 %  100.0 %\n"
        "  explained  950 of 1,000 µs per run; 50.0 µs (5.0 %) are outside operators\n"
        "  cycles     800 of 900 the accelerator counted\n"
        "  absorbed   1 node of the model, into other operators or when it was opened"
    )


def test_perfetto_has_a_track_per_ep_and_stream_and_no_clock_for_cycles() -> None:
    value = to_json(perfetto(TRACE))
    names = {e["tid"]: e["args"]["name"] for e in value["traceEvents"] if e["name"] == "thread_name"}
    assert names == {1: "QNN 0 (1 us = 1000 cycles, not time)", 2: "CPU 0"}
    spans = [(e["name"], e["tid"], e["ts"], e["dur"]) for e in value["traceEvents"] if e["ph"] == "X"]
    assert spans == [
        ("Transpose", 1, 0.0, 0.1),
        ("Conv", 1, 0.1, 0.6),
        ("Output", 1, 0.7, 0.0),
        ("QuantizeLinear", 2, 3.0, 12.0),
    ]


def test_a_difference_starts_with_its_reasons() -> None:
    other = OpTraceResult(
        TRACE.metadata,
        operators=(
            OperatorMetrics("conv", CPU, "us", (80.0,), onnx_op_type="FusedConv", onnx_nodes=("conv",), origin="node"),
        ),
    )
    text = diff_text(diff(TRACE, other), top_k=2)
    assert text.splitlines()[:3] == [
        "what changed",
        "  1 Conv became FusedConv and moved from QNN to CPU",
        "  1 Transpose on QNN vanished (200 cycles)",
    ]
    assert "and 1 more" in text
