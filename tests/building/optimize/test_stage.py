"""The stage: what it reports, what it refuses, and that it never keeps the work of a pass that went wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import model_zoo
import pass_zoo
from winml.modelkit.building.optimize.apply import Runner
from winml.modelkit.building.optimize.resolve import resolve
from winml.modelkit.building.optimize.result import OptimizeReport, PassResult
from winml.modelkit.building.optimize.rewrites import unfuse_bias_gelu, unfuse_conv
from winml.modelkit.building.optimize.stage import run
from winml.modelkit.building.optimize.table import find
from winml.modelkit.building.optimize.workspace import Workspace, op_counts
from winml.modelkit.core import values
from winml.modelkit.core.errors import DiskFull, ModelFileError, ModelkitError, RequestError, UnavailableError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.graph import files
from winml.modelkit.graph.fingerprint import fingerprint
from winml.modelkit.graph.inputs import InputRequest, synthetic
from winml.modelkit.session.session import WinMLSession


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker runs in a folder of its own."""
    monkeypatch.chdir(tmp_path)


def _optimized(
    model: onnx.ModelProto, folder: Path, context: Any, *, name: str = "out", dims: dict[str, int] | None = None,
    target: Target | None = None, stage: dict[str, Any] | None = None, **options: Any,
) -> OptimizeReport:  # fmt: skip
    section = {**values.to_json(resolve(target=target, **options)), "fixed_dims": dims or {}}
    args = {
        "model": str(model_zoo.saved(model, folder / "in.onnx")),
        "output": str(folder / f"{name}.onnx"),
        "section": section,
        "target": None if target is None else str(target),
        **(stage or {}),
    }
    return run(args, context)


def _pass(report: OptimizeReport, name: str) -> PassResult:
    return next(row for row in report.passes if row.name == name)


def test_reports_operators_before_and_after(tmp_path: Path, events: Any) -> None:
    report = _optimized(pass_zoo.FIRES["conv_bn_fusion"], tmp_path, events)
    assert report.changed
    assert report.ops_before == {"BatchNormalization": 1, "Conv": 1}
    assert report.ops_after == {"Conv": 1}
    assert (report.nodes_before, report.nodes_after) == (2, 1)
    assert [row.name for row in report.passes if row.changed] == ["conv_bn_fusion"]
    assert report.verification.status == "passed"
    assert list(report.warnings) == []
    assert "conv_bn_fusion" in events.passes


def test_the_report_tells_the_fingerprints_of_the_files(tmp_path: Path, events: Any) -> None:
    report = _optimized(pass_zoo.FIRES["conv_bn_fusion"], tmp_path, events)
    assert report.fingerprint_before == fingerprint(files.load(tmp_path / "in.onnx"))
    assert report.fingerprint_after == fingerprint(files.load(tmp_path / "out.onnx"))


def test_says_no_change_and_writes_the_model_as_it_was(tmp_path: Path, events: Any) -> None:
    report = _optimized(model_zoo.relu(), tmp_path, events)
    assert not report.changed
    assert report.fingerprint_before == report.fingerprint_after
    assert {row.status for row in report.passes} == {"no change"}
    assert fingerprint(files.load(tmp_path / "out.onnx")) == report.fingerprint_before


def test_no_pass_reports_success_on_a_model_without_its_pattern(tmp_path: Path, events: Any) -> None:
    report = _optimized(model_zoo.relu(), tmp_path, events, level="none", enable=("conv_bn_fusion", "gelu_singlegelu"))
    assert _pass(report, "conv_bn_fusion").status == "no change"
    assert _pass(report, "gelu_singlegelu").status == "no change"


def test_a_pass_that_needs_a_newer_opset_says_so(tmp_path: Path, events: Any) -> None:
    model = pass_zoo.FIRES["gelu_contrib_fusion"]
    report = _optimized(model, tmp_path, events)
    assert _pass(report, "gelu_fusion").note == "needs opset 20; the model has 17"
    newer = _optimized(model, tmp_path, events, name="newer", opset=20)
    assert newer.ops_after == {"Gelu": 1}
    assert (newer.opset_before, newer.opset_after) == (17, 20)


def test_an_opset_that_the_runtime_does_not_read_is_refused(tmp_path: Path, events: Any) -> None:
    newest = onnx.defs.onnx_opset_version()
    with pytest.raises(ModelFileError, match=r"the model has IR version \d+; this onnxruntime reads up to"):
        _optimized(model_zoo.relu(), tmp_path, events, opset=newest)
    assert not (tmp_path / "out.onnx").exists()


def test_the_basic_level_makes_only_operators_of_onnx(tmp_path: Path, events: Any) -> None:
    for number, model in enumerate((model_zoo.conv_net(), pass_zoo.transformer(layers=2))):
        report = _optimized(model, tmp_path, events, name=f"out{number}")
        assert not [op for op in report.ops_after if ":" in op]


def test_the_extended_level_reaches_what_the_runtime_reaches_by_itself(tmp_path: Path, events: Any) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "runtime.onnx")
    model = pass_zoo.transformer(layers=2)
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    report = _optimized(model, tmp_path, events, level="extended")
    assert report.ops_after == op_counts(files.load(tmp_path / "runtime.onnx"))


def test_attention_is_fused_where_nothing_else_took_its_parts(tmp_path: Path, events: Any) -> None:
    model = pass_zoo.transformer(layers=2)
    report = _optimized(model, tmp_path, events, level="extended", disable=("matmul_add_fusion",))
    assert report.ops_after["com.microsoft:Attention"] == 2


def test_same_input_same_bytes(tmp_path: Path, events: Any) -> None:
    for name in ("one", "two"):
        _optimized(pass_zoo.transformer(), tmp_path, events, name=name, level="extended")
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes()


def test_dimensions_are_written_into_the_model(tmp_path: Path, events: Any) -> None:
    model = pass_zoo.FIRES["reshape_fusion"]
    report = _optimized(model, tmp_path, events, dims={"n": 2, "m": 3})
    assert report.fixed_dims == {"n": 2, "m": 3}
    graph = files.load(tmp_path / "out.onnx").graph
    for value, sizes in ((graph.input[0], [2, 3, 8]), (graph.output[0], [2, 3, 2, 4])):
        assert [dim.dim_value for dim in value.type.tensor_type.shape.dim] == sizes


def test_a_dimension_without_a_name_is_fixed_by_its_place(tmp_path: Path, events: Any) -> None:
    model = model_zoo.text_model("open (float[?,4] x, float[?,4] y) => (float[?,4] z) { z = Add(x, y) }")
    report = _optimized(model, tmp_path, events, dims={"x[0]": 2, "y[0]": 2})
    assert report.verification.status == "passed"
    assert {tuple(run.dims.values()) for run in report.verification.runs} == {(2, 2)}
    fixed = files.load(tmp_path / "out.onnx")
    for value in (*fixed.graph.input, *fixed.graph.output):
        assert [dim.dim_value for dim in value.type.tensor_type.shape.dim] == [2, 4]


def test_an_unknown_dimension_is_an_error_that_suggests(tmp_path: Path, events: Any) -> None:
    with pytest.raises(RequestError, match="no symbolic dimension `bach`") as caught:
        _optimized(model_zoo.relu(), tmp_path, events, dims={"bach": 2})
    assert "did you mean `batch`?" in str(caught.value.hint)
    assert not (tmp_path / "out.onnx").exists()


def test_an_npu_gets_no_operator_it_does_not_take(tmp_path: Path, events: Any) -> None:
    """Also when a section asks for it: only the stage knows what a pass makes of this model."""
    npu = Target("qnn", "npu")
    args = {"section": {"passes": ["conv_activation_fusion"]}}
    report = _optimized(model_zoo.conv_net(), tmp_path, events, target=npu, stage=args)
    left_out = _pass(report, "conv_activation_fusion")
    assert left_out.status == "left out"
    assert left_out.note == "would make com.microsoft:FusedConv, which qnn/npu is not known to support"
    assert not report.changed
    kept = _optimized(model_zoo.conv_net(), tmp_path, events, name="kept", stage=args)
    assert kept.ops_after["com.microsoft:FusedConv"] == 3


def test_a_pass_that_changes_outputs_is_left_out_and_named(
    tmp_path: Path, events: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(model: Any) -> bool:
        node = next(node for node in model.graph if node.op_type == "Relu")
        node.op_type = "Neg"
        return True

    monkeypatch.setattr(unfuse_conv, "rewrite", wrong)
    model = pass_zoo.graph(
        "(float[2,4] x) => (float[2,4] y) { a = Identity(x)  b = Relu(a)  y = com.microsoft.BiasGelu(b, c) }",
        c=(4,), microsoft=True,
    )  # fmt: skip
    report = _optimized(model, tmp_path, events, enable=("unfuse_conv", "unfuse_bias_gelu"))
    assert _pass(report, "unfuse_conv").note == "would change the outputs of the model"
    assert _pass(report, "unfuse_bias_gelu").changed
    assert _pass(report, "identity_elimination").changed
    assert report.verification.status == "passed"
    assert list(report.warnings) == ["skipped unfuse_conv: would change the outputs of the model"]


def test_a_pass_that_fails_leaves_the_model_as_it_was(
    tmp_path: Path, events: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(model: Any) -> bool:
        next(iter(model.graph)).op_type = "Broken"
        raise KeyError("no such thing")

    monkeypatch.setattr(unfuse_bias_gelu, "rewrite", broken)
    report = _optimized(pass_zoo.FIRES["unfuse_bias_gelu"], tmp_path, events, enable=("unfuse_bias_gelu",))
    assert not report.changed
    assert list(report.warnings) == ["skipped unfuse_bias_gelu: KeyError: 'no such thing'"]


def test_a_pass_that_fails_on_a_full_disk_is_not_left_out(
    tmp_path: Path, events: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(model: Any) -> bool:
        monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1, 1, 0))
        raise ValueError("truncated")

    monkeypatch.setattr(unfuse_bias_gelu, "rewrite", cut_off)
    with pytest.raises(DiskFull, match="disk full while writing"):
        _optimized(pass_zoo.FIRES["unfuse_bias_gelu"], tmp_path, events, enable=("unfuse_bias_gelu",))
    assert not (tmp_path / "out.onnx").exists()


def test_a_model_the_runtime_cannot_read_keeps_the_passes_of_others(tmp_path: Path, events: Any) -> None:
    model = pass_zoo.graph(
        "(float[2,4] x) => (float[2,4] y) { a = Unknown(x)  b = Exp(x)  y = Add(a, b)  dead = Exp(y) }"
    )
    report = _optimized(model, tmp_path, events)
    assert _pass(report, "unused_node_elimination").changed
    assert report.verification.status == "not run"
    assert any("operator `Unknown`" in warning for warning in report.warnings)


def test_float16_models_keep_their_types(tmp_path: Path, events: Any) -> None:
    model = pass_zoo.graph(
        """(float16[1,3,8,8] x) => (float16[1,4,8,8] y) {
          i = Identity(x)  c = Conv<pads = [1,1,1,1]>(i, w)  y = Relu(c) }""",
        w=np.ones((4, 3, 3, 3), np.float16),
    )  # fmt: skip
    report = _optimized(model, tmp_path, events, level="extended")
    assert report.ops_after == {"Conv": 1, "Relu": 1}
    assert list(report.warnings) == []


def test_a_fusion_beside_float16_nodes_leaves_no_casts(tmp_path: Path, events: Any) -> None:
    model = pass_zoo.graph(
        """(float[1,3,8,8] x, float16[4] h) => (float[1,4,8,8] y, float16[4] z) {
          c = Conv<pads = [1,1,1,1]>(x, w, b)  y = Relu(c)  z = Softplus(h) }""",
        **pass_zoo.CONV_WEIGHTS,
    )  # fmt: skip
    report = _optimized(model, tmp_path, events, level="extended")
    assert not report.changed
    assert list(report.warnings) == [
        "skipped conv_activation_fusion: ONNX Runtime would leave Casts around the float16 nodes that its CPU "
        "provider lacks"
    ]


def test_the_blocked_layout_comes_with_a_warning(tmp_path: Path, events: Any) -> None:
    report = _optimized(model_zoo.conv_net(), tmp_path, events, level="all")
    assert "the blocked layout (nchwc) runs only on processors like this one" in report.warnings


def test_approximations_come_with_a_warning_and_a_wider_limit(tmp_path: Path, events: Any) -> None:
    report = _optimized(pass_zoo.FIRES["gelu_approximation"], tmp_path, events, enable=("gelu_approximation",))
    assert list(report.warnings) == ["results are approximations: gelu_approximation"]
    assert report.verification.tolerance == 0.05


def test_not_asked_for_is_not_passed(tmp_path: Path, events: Any) -> None:
    report = _optimized(model_zoo.relu(), tmp_path, events, stage={"verify": False})
    assert report.verification.status == "not asked for"


def test_large_weights_that_a_pass_makes_are_kept(tmp_path: Path, events: Any) -> None:
    model = pass_zoo.graph(
        """(float[1,64,4,4] x) => (float[1,2048,4,4] y) {
          c = Conv<pads = [1,1,1,1]>(x, w)  n = BatchNormalization(c, g, o, m, v)  y = Identity(n) }""",
        w=(2048, 64, 3, 3), g=(2048,), o=(2048,), m=(2048,), v=np.ones(2048, np.float32),
    )  # fmt: skip
    report = _optimized(model, tmp_path, events)
    assert report.ops_after == {"Conv": 1}
    assert report.verification.status == "passed"
    assert [file.path for file in report.files] == ["out.onnx"]


def test_external_data_of_the_input_is_read(tmp_path: Path, events: Any) -> None:
    files.save(pass_zoo.transformer(hidden=64), tmp_path / "external.onnx", external_data="always")
    assert (tmp_path / "external.onnx.data").is_file()
    args = {"model": str(tmp_path / "external.onnx")}
    report = _optimized(model_zoo.relu(), tmp_path, events, stage=args)
    assert report.verification.status == "passed"
    assert report.changed


def test_an_existing_output_stays(tmp_path: Path, events: Any) -> None:
    (tmp_path / "out.onnx").write_text("mine")
    with pytest.raises(RequestError, match="exists"):
        _optimized(model_zoo.relu(), tmp_path, events)
    assert (tmp_path / "out.onnx").read_text() == "mine"


def test_a_compiled_model_is_refused(tmp_path: Path, events: Any) -> None:
    model = pass_zoo.graph("(float[4] x) => (float[4] y) { y = com.microsoft.EPContext(x) }", microsoft=True)
    with pytest.raises(RequestError, match="compiled for an execution provider"):
        _optimized(model, tmp_path, events)


def test_a_section_with_an_unknown_pass_is_refused(tmp_path: Path, events: Any) -> None:
    for name, error in (("nope", RequestError), ("bias_softmax_fusion", UnavailableError)):
        with pytest.raises(error, match=f"pass `{name}`"):
            _optimized(model_zoo.relu(), tmp_path, events, stage={"section": {"passes": [name]}})


def test_a_file_that_is_no_model_is_refused(tmp_path: Path, events: Any) -> None:
    (tmp_path / "no.onnx").write_bytes(b"\x00garbage")
    with pytest.raises(ModelFileError):
        _optimized(model_zoo.relu(), tmp_path, events, stage={"model": str(tmp_path / "no.onnx")})


def test_nothing_is_left_in_the_working_folder(tmp_path: Path, events: Any) -> None:
    _optimized(model_zoo.conv_net(), tmp_path, events)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.onnx", "out.onnx"]


@pytest.mark.parametrize("level", ["basic", "extended", "all"])
def test_the_runtime_opens_the_result_at_every_level(tmp_path: Path, events: Any, level: str) -> None:
    """Its fusions would make the names again that they gave to what is stored."""
    report = _optimized(pass_zoo.transformer(fused_norms=True), tmp_path, events, level=level)
    assert _pass(report, "matmul_add_fusion").changed
    expected = _run(tmp_path / "in.onnx", "disable")
    for opened in ("disable", "basic", "extended", "layout", "all"):
        np.testing.assert_allclose(_run(tmp_path / "out.onnx", opened), expected, rtol=1e-3, atol=1e-4)


def test_a_model_that_was_fused_elsewhere_can_be_opened_afterwards(
    tmp_path: Path, runner: Runner, workspace: Workspace, events: Any
) -> None:
    """It has the names of the runtime from the start."""
    fused = runner.apply(find("matmul_add_fusion"), workspace.open(pass_zoo.transformer(fused_norms=True)))
    assert fused is not None
    with pytest.raises(ModelkitError, match="replace the existing tensor"):
        _run(fused.path, "all")
    _optimized(files.load(fused.path), tmp_path, events, level="none")
    _run(tmp_path / "out.onnx", "all")


def _run(path: Path, level: str) -> np.ndarray:
    section = SessionSection(optimization_level=level)
    with WinMLSession(path, target=Target("cpu", "cpu"), section=section) as session:
        (output,) = session.run(synthetic(session.inputs, InputRequest(seed=1))).values()
    return output
