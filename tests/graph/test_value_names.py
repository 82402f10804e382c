"""Names that the runtime makes are not left in a stored model."""

from __future__ import annotations

import onnx
from onnx import parser

from winml.modelkit.graph.fingerprint import fingerprint
from winml.modelkit.graph.value_names import rename_generated, values_of

BODY = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x_token_1, bool c) => (float[2] y_token_2)
<int64[1] gemm_input_shape = {2}, int64[1] kept = {2}>
{
    a_token_3 = Reshape(x_token_1, gemm_input_shape)
    a = Reshape(a_token_3, kept)
    y_token_2 = If (c) <
        then_branch = t () => (float[2] t_out) { t_out = Add(a_token_3, a) },
        else_branch = e () => (float[2] e_out_token_9) { e_out_token_9 = Mul(a_token_3, a) }
    >
}"""


def _model() -> onnx.ModelProto:
    return parser.parse_model(BODY)


def test_values_that_look_like_the_runtimes_own_get_other_names_everywhere() -> None:
    model, before = _model(), fingerprint(_model())
    assert rename_generated(model) == 3
    onnx.checker.check_model(model, full_check=True)
    assert fingerprint(model) == before
    assert values_of(model) == {
        "x_token_1", "c", "y_token_2", "stored/gemm_input_shape", "kept", "stored/a", "a", "t_out", "stored/e_out",
    }  # fmt: skip
    body = model.graph.node[2].attribute[0].g
    assert list(body.node[0].input) == ["stored/a", "a"]


def test_values_that_are_not_in_the_source_get_other_names() -> None:
    model = _model()
    rename_generated(model, source={"a", "t_out"})
    assert "stored/kept" in values_of(model)
    assert {"a", "t_out"} <= values_of(model)


def test_a_name_that_is_taken_is_not_given_again() -> None:
    model = _model()
    model.graph.node[1].output[0] = "stored/a"
    for name in ("then_branch", "else_branch"):
        body = next(attribute.g for attribute in model.graph.node[2].attribute if attribute.name == name)
        body.node[0].input[1] = "stored/a"
    rename_generated(model)
    onnx.checker.check_model(model, full_check=True)
    assert {"stored/a", "stored/a_1"} <= values_of(model)


def test_a_second_time_there_is_nothing_to_rename() -> None:
    model = _model()
    rename_generated(model)
    assert rename_generated(model) == 0
