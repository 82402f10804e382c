"""`winml optimize` as a user runs it."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from program import QUICK, valid, winml

import model_zoo
import pass_zoo
from winml.modelkit.building.optimize.table import PASSES


def test_the_sample_is_optimized_and_compared(tmp_path: Path) -> None:
    result = winml("optimize", "--sample", "-o", tmp_path / "out.onnx")
    assert result.returncode == 0, result.stderr
    assert "outputs equal to the input model's" in result.stdout
    assert (tmp_path / "out.onnx").is_file()


def test_json_tells_what_was_done(tmp_path: Path) -> None:
    source = model_zoo.saved(pass_zoo.FIRES["conv_bn_fusion"], tmp_path / "in.onnx")
    value = valid(winml("optimize", "-m", source, "-o", tmp_path / "out.onnx", "--json").stdout)
    assert value["ops_before"] == {"BatchNormalization": 1, "Conv": 1}
    assert value["ops_after"] == {"Conv": 1}
    assert value["verification"]["status"] == "passed"
    assert [row["name"] for row in value["passes"] if row["changed"]] == ["conv_bn_fusion"]


def test_two_runs_write_the_same_bytes(tmp_path: Path) -> None:
    source = model_zoo.saved(pass_zoo.transformer(), tmp_path / "in.onnx")
    for name in ("one.onnx", "two.onnx"):
        words = ("--level", "extended", "--rebuild")
        assert winml("optimize", "-m", source, "-o", tmp_path / name, *words).returncode == 0
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes()


def test_the_list_needs_no_model() -> None:
    value = valid(winml("optimize", "--list", "--json").stdout)
    assert [row["name"] for row in value["table"]] == [row.name for row in PASSES]


def test_kebab_case_and_levels(tmp_path: Path) -> None:
    source = model_zoo.saved(model_zoo.conv_net(), tmp_path / "in.onnx")
    words = ("--level", "none", "--enable", "conv-activation-fusion", "--json")
    value = valid(winml("optimize", "-m", source, "-o", tmp_path / "out.onnx", *words).stdout)
    assert value["section"]["passes"] == ["conv_activation_fusion"]
    assert value["ops_after"]["com.microsoft:FusedConv"] == 3


@pytest.mark.qnn
def test_a_net_that_was_fused_for_the_cpu_goes_to_the_npu_again(tmp_path: Path) -> None:
    import onnxruntime

    source = model_zoo.saved(model_zoo.conv_net(), tmp_path / "in.onnx")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "level2.onnx")
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])

    fused = valid(winml("perf", "-m", tmp_path / "level2.onnx", "--target", "qnn/npu", *QUICK, "--json").stdout)
    assert fused["placement"]["cpu_ops"] == {"com.microsoft:FusedConv": 3}

    result = winml("optimize", "-m", tmp_path / "level2.onnx", "-o", tmp_path / "npu.onnx", "--target", "qnn/npu")
    assert result.returncode == 0, result.stderr
    placed = winml("perf", "-m", tmp_path / "npu.onnx", "--target", "qnn/npu", *QUICK, "--strict-ep", "--json")
    assert placed.returncode == 0, placed.stderr
    assert valid(placed.stdout)["placement"]["cpu_ops"] == {}


@pytest.mark.qnn
def test_an_attention_mask_goes_to_the_npu(tmp_path: Path) -> None:
    indices = pass_zoo.mask_indices(1, 4, 4)
    model = pass_zoo.graph(
        """(float[1,4] x) => (float[1,1,4,4] y) {
          b = Cast<to = 9>(x)  g = GatherND(b, indices)  f = Cast<to = 1>(g)  y = Mul(f, f) }""",
        indices=indices,
    )  # fmt: skip
    source = model_zoo.saved(model, tmp_path / "in.onnx")
    before = valid(winml("perf", "-m", source, "--target", "qnn/npu", *QUICK, "--json").stdout)
    assert before["placement"]["cpu_ops"] == {"GatherND": 1}
    assert winml("optimize", "-m", source, "-o", tmp_path / "out.onnx", "--target", "qnn/npu").returncode == 0
    after = winml("perf", "-m", tmp_path / "out.onnx", "--target", "qnn/npu", *QUICK, "--strict-ep")
    assert after.returncode == 0, after.stderr


def _constants_that_end_the_process() -> onnx.ModelProto:
    """INT_MIN / -1 between constants: folding it is a signal on x86."""
    return model_zoo.text_model(
        """g (int32[1] x) => (int32[1] y) <int32[1] lowest = {-2147483648}, int32[1] minus = {-1}>
        { q = Div(lowest, minus)  y = Add(q, x) }"""
    )


def test_a_pass_that_takes_the_process_down_is_left_out_and_named(tmp_path: Path) -> None:
    source = model_zoo.saved(_constants_that_end_the_process(), tmp_path / "in.onnx")
    result = winml("optimize", "-m", source, "-o", tmp_path / "out.onnx", "--json")
    assert result.returncode == 0, result.stderr
    passes = {p["name"]: p for p in valid(result.stdout)["passes"]}
    assert passes["constant_folding"]["status"] == "left out", passes["constant_folding"]
    left_out, not_compared = (line for line in result.stderr.splitlines() if line.startswith("warning: "))
    assert left_out.startswith("warning: skipped constant_folding: its process crashed")
    assert not_compared.startswith("warning: outputs were not compared: running the unmodified model: ")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--enable", "conv_bn"], 2, "unknown pass `conv_bn`"),
        (["--disable", "nope"], 2, "unknown pass `nope`"),
        (["--enable", "bias_softmax_fusion"], 3, "pass `bias_softmax_fusion` is unavailable"),
        (["--level", "most"], 2, "unknown level `most`"),
        (["--opset", "5"], 2, "opset must be at least 7 but got 5"),
        (["--opset", "99"], 2, "opset 99 is not known"),
        (["--dim", "nope=2"], 2, "no symbolic dimension `nope`"),
        (["--dim", "batch=0"], 2, "dimension `batch` must be at least 1"),
        (["--target", "nope"], 2, "nope"),
        (["--target", "qnn/npu", "--enable", "conv_activation_fusion"], 2, "not known to support"),
        (["-o", "missing/out.onnx"], 2, "output folder not found"),
        (["-o", "."], 2, "is a directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_requests_are_one_clear_error(words: list[str], code: int, message: str, tmp_path: Path) -> None:
    model_zoo.saved(model_zoo.relu(), tmp_path / "in.onnx")
    result = winml("optimize", "-m", "in.onnx", "-o", "out.onnx", *words, cwd=tmp_path)
    assert result.returncode == code, result.stderr
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.onnx"]


def test_an_existing_output_needs_permission(tmp_path: Path) -> None:
    source = model_zoo.saved(model_zoo.relu(), tmp_path / "in.onnx")
    target = tmp_path / "out.onnx"
    target.write_text("mine")
    refused = winml("optimize", "-m", source, "-o", target)
    assert (refused.returncode, target.read_text()) == (2, "mine")
    assert "add `--overwrite`" in refused.stderr
    assert winml("optimize", "-m", source, "-o", target, "--overwrite").returncode == 0
    assert onnx.load(target).graph.node[0].op_type == "Relu"


def test_a_model_is_not_written_over_itself(tmp_path: Path) -> None:
    source = model_zoo.saved(model_zoo.relu(), tmp_path / "in.onnx")
    result = winml("optimize", "-m", source, "-o", source, "--overwrite")
    assert result.returncode == 2
    assert "is the model itself" in result.stderr


def test_an_output_is_required(tmp_path: Path) -> None:
    result = winml("optimize", "--sample")
    assert result.returncode == 2
    assert "`-o FILE`" in result.stderr


# --- the cache of builds


def test_a_build_and_the_command_use_one_result(tmp_path: Path, no_logins: None) -> None:
    source = model_zoo.saved(pass_zoo.FIRES["conv_bn_fusion"], tmp_path / "in.onnx")
    target = ("-m", source, "--target", "cpu", "--json")
    alone = valid(winml("optimize", *target, "-o", tmp_path / "alone.onnx").stdout)
    assert (alone["cache"], alone["files"][0]["path"]) == ("miss", "alone.onnx")
    built = valid(winml("build", *target, "-p", "fp32", "--no-analyze", "-o", tmp_path / "built").stdout)
    assert [stage["cache"] for stage in built["stages"]] == ["hit"]
    again = winml("optimize", *target[:-1], "-o", tmp_path / "again.onnx")
    assert again.stdout.splitlines()[0].endswith(" · from the cache")
    assert (tmp_path / "again.onnx").read_bytes() == (tmp_path / "built" / "optimized.onnx").read_bytes()

    (tmp_path / "again.onnx").write_bytes(b"mine now")
    words = ("optimize", *target, "-o", tmp_path / "other.onnx", "--overwrite")
    other = valid(winml(*words).stdout)
    assert (other["cache"], other["passes"]) == ("hit", alone["passes"])
    assert (tmp_path / "other.onnx").read_bytes() == (tmp_path / "alone.onnx").read_bytes()
    assert valid(winml(*words, "--rebuild").stdout)["cache"] == "miss"
    assert valid(winml(*words, "--no-verify").stdout)["verification"]["status"] == "not asked for"
    assert valid(winml(*words, "--seed", "1").stdout)["cache"] == "miss"


def test_a_target_shares_what_has_none_of_its_operators_to_refuse(tmp_path: Path, no_logins: None) -> None:
    """Only where passes made what it does not take, the result is its own."""
    plain = model_zoo.saved(pass_zoo.FIRES["conv_bn_fusion"], tmp_path / "plain.onnx")
    words = ("optimize", "--level", "none", "--json", "--enable")
    for number, target in enumerate(("cpu", "qnn/npu")):
        done = winml(*words, "conv_bn_fusion", "-m", plain, "-o", tmp_path / f"{number}.onnx", "--target", target)
        assert valid(done.stdout)["cache"] == ("hit" if number else "miss")
