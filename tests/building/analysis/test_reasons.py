from __future__ import annotations

from winml.modelkit.building.analysis.reasons import Reason, read_reasons

# As onnxruntime-qnn 2.7.0 writes it.
LOG = """\
2026-11-16 00:46:40.410048427 [V:onnxruntime:, qnn_backend_manager.cc:2273 SetupBackend] QNN SetupBackend succeed
2026-11-16 00:46:40.410407647 [V:onnxruntime:, qnn_execution_provider.cc:1713 LogNodeSupport] \
Validation FAILED for 1 nodes in OrtNodeUnit (FusedConv) :
\tOperator type: FusedConv Node name: first conv Node index: 0
\tREASON : Operators of type `FusedConv` are not supported by QNN EP.FusedConv node `first conv` will not be \
assigned to QNN EP.

2026-11-16 00:46:40.410431932 [V:onnxruntime:, qnn_execution_provider.cc:1713 LogNodeSupport] \
Validation PASSED for 1 nodes in OrtNodeUnit (GlobalAveragePool) :
\tOperator type: GlobalAveragePool Node name:  Node index: 3

\x1b[0;93m2026-11-16 00:46:40.414277169 [W:onnxruntime:, ep_api_types.cc:389 GetProducerInfo] Unable\x1b[m
2026-11-16 01:50:13.554941504 [V:onnxruntime:, qnn_execution_provider.cc:1713 LogNodeSupport] \
Validation FAILED for 3 nodes in OrtNodeUnit (Conv) :
\tOperator type: DequantizeLinear Node name: w_dq Node index: 3
\tOperator type: Conv Node name: _token_2 Node index: 27
\tOperator type: QuantizeLinear Node name:  Node index: 9
\tREASON : conv_op_builder.cc:120 ProcessInputs Unsupported weight quantization encoding for bias quantization.
"""


def test_each_refused_node_comes_with_the_eps_words() -> None:
    first = read_reasons(LOG)[0]
    assert first == Reason(
        "first conv", "FusedConv", "FusedConv", "Operators of type `FusedConv` are not supported by QNN EP."
    )


def test_a_group_gives_its_reason_to_all_its_nodes_without_the_place_in_the_source() -> None:
    group = read_reasons(LOG)[1:]
    assert [(r.node, r.op, r.unit) for r in group] == [
        ("w_dq", "DequantizeLinear", "Conv"), ("_token_2", "Conv", "Conv"), ("", "QuantizeLinear", "Conv"),
    ]  # fmt: skip
    assert {r.text for r in group} == {"Unsupported weight quantization encoding for bias quantization."}


def test_nodes_that_passed_have_no_reason() -> None:
    assert "GlobalAveragePool" not in {reason.op for reason in read_reasons(LOG)}


def test_other_logs_hold_no_reasons() -> None:
    assert read_reasons("") == []
    assert read_reasons("REASON : of something else\nOperator type: Conv Node name: a Node index: 1") == []
