"""`winml compile`, as a user starts it, on the QNN simulator."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from program import DIVIDED, Done, failed, valid, winml
from test_environments import CACHE, installed

import model_zoo
from winml.modelkit.core.target import Target
from winml.modelkit.graph import files
from winml.modelkit.graph.context import context_facts
from winml.modelkit.session.session import WinMLSession
from winml.modelkit.store import digest

pytestmark = [pytest.mark.qnn, pytest.mark.xdist_group("compile")]
NPU = Target("qnn", "npu", simulated=True)
Compile = Callable[..., Done]


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One cache for all tests here: what one has compiled the others need not."""
    return {**os.environ, "WINML_CACHE": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture
def run(env: dict[str, str]) -> Compile:
    def compile_(*words: str | Path) -> Done:
        return winml("compile", "--target", "qnn/npu", *words, env=env)

    return compile_


@pytest.fixture(scope="module")
def nets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One net at two input sizes, and what cannot be compiled."""
    folder = tmp_path_factory.mktemp("nets")
    for name, size in (("small", 16), ("large", 24)):
        model_zoo.saved(model_zoo.conv_net(channels=192, size=size), folder / f"{name}.onnx")
    model_zoo.saved(model_zoo.endless_loop(), folder / "nothing.onnx")
    model_zoo.saved(model_zoo.crashes_when_folded(), folder / "crash.onnx")
    model_zoo.saved(model_zoo.relu(), folder / "symbolic.onnx")
    return folder


def _consistent(folder: Path, names: set[str]) -> set[str]:
    """The binaries of compiled models, after checking that nothing is missing and nothing is left over."""
    facts = {name: context_facts(folder / name) for name in names}
    assert all(f.nodes and not f.missing for f in facts.values())
    binaries = {b for f in facts.values() for b in f.binaries}
    assert {p.name for p in folder.iterdir()} == names | binaries
    return binaries


@pytest.mark.parametrize("compiler", ["ort", "ort_jit"])
def test_two_models_share_one_binary_and_about_half_the_bytes(
    run: Compile, nets: Path, tmp_path: Path, compiler: str
) -> None:
    out = tmp_path / "out"
    result = run(
        "-m", nets / "small.onnx", "-m", nets / "large.onnx", "--compiler", compiler, "--output-dir", out, "--json"
    )
    value = valid(result.stdout)
    assert _consistent(out, {"small_ctx.onnx", "large_ctx.onnx"}) == {"small_ctx_qnn.bin"}
    sharing = value["sharing"]
    assert sharing["shared"] is True
    assert sharing["binaries"] == [
        {"file": "small_ctx_qnn.bin", "bytes": (out / "small_ctx_qnn.bin").stat().st_size,
         "models": ["small_ctx.onnx", "large_ctx.onnx"]}
    ]  # fmt: skip
    assert sharing["bytes_alone"] == sum(row["alone"]["binaries"][0]["bytes"] for row in value["models"])
    assert 40 < sharing["saved_pct"] < 50
    for row in value["models"]:
        (binary,) = row["binaries"]
        assert binary["digest"] == digest.of_file(out / binary["file"])
        assert row["validation"]["status"] == "not-validated"
        assert row["alone"]["validation"]["status"] == "passed"
        assert row["proof"]["status"] == "proven on target", "as it is when compiled alone"
        assert row["proof"]["compiled"].startswith("the simulator cannot load a context that several models share: ")
        assert row["compatibility"]["QNNExecutionProvider"].startswith("v2:")
        assert row["peak_bytes"] > 0
    assert "compiled form not proven: the simulator cannot load a context" in result.stderr


@pytest.mark.parametrize("position", [0, 1, 2], ids=["first", "middle", "last"])
@pytest.mark.parametrize(
    ("bad", "compiler", "message"),
    [("nothing", "ort", "compiled none of the nodes"), ("crash", "ort_jit", f"crashed with {DIVIDED}"),
     ("symbolic", "ort", "without fixed sizes")],
)  # fmt: skip
def test_the_others_are_delivered_when_one_of_three_cannot_be_compiled(
    run: Compile, nets: Path, tmp_path: Path, position: int, bad: str, compiler: str, message: str
) -> None:
    names = ["small", "large"]
    names.insert(position, bad)
    words = [word for name in names for word in ("-m", nets / f"{name}.onnx")]
    out = tmp_path / "out"
    result = run(*words, "--compiler", compiler, "--output-dir", out, "--json")
    assert "1 of 3 models were not compiled" in failed(result, 6)
    value = valid(result.stdout)
    assert value["error"]["code"] == "partly-done"
    assert [row["status"] for row in value["models"]].index("failed") == position
    assert message in value["models"][position]["error"]["message"]
    assert _consistent(out, {"small_ctx.onnx", "large_ctx.onnx"}) == {"small_ctx_qnn.bin"}
    assert value["sharing"]["shared"] is True


def test_a_single_model_opens_runs_and_matches_embedded_or_not(run: Compile, conv_w8a8: Path, tmp_path: Path) -> None:
    feed = {"x": np.random.default_rng(3).random((1, 3, 16, 16), dtype=np.float32)}
    with WinMLSession(conv_w8a8, target=NPU) as source:
        expected = source.run(feed)["y"]
    for words, names in (([], {"m.onnx", "m_qnn.bin"}), (["--embed"], {"m.onnx"})):
        out = tmp_path / f"out{len(words)}"
        out.mkdir()
        value = valid(run("-m", conv_w8a8, "-o", out / "m.onnx", *words, "--json").stdout)
        (row,) = value["models"]
        assert row["validation"]["status"] == "passed"
        assert row["cpu_ops"] == {"QuantizeLinear": 1, "DequantizeLinear": 1}
        assert value["sharing"] is None
        assert {p.name for p in out.iterdir()} == names
        with WinMLSession(out / "m.onnx", target=NPU) as compiled:
            np.testing.assert_array_equal(compiled.run(feed)["y"], expected)


def test_the_second_time_comes_from_the_cache(run: Compile, conv_w8a8: Path, tmp_path: Path) -> None:
    first = valid(run("-m", conv_w8a8, "--output-dir", tmp_path / "1", "--json").stdout)
    second = valid(run("-m", conv_w8a8, "--output-dir", tmp_path / "2", "--json").stdout)
    assert second["models"][0]["cached"]
    assert second["models"][0]["validation"] == first["models"][0]["validation"]
    for path in (tmp_path / "1").iterdir():
        assert (tmp_path / "2" / path.name).read_bytes() == path.read_bytes()
    again = valid(run("-m", conv_w8a8, "--output-dir", tmp_path / "3", "--rebuild", "--json").stdout)
    assert not again["models"][0]["cached"]


def test_no_validate_still_reports_inputs_and_outputs(run: Compile, zoo: Path, tmp_path: Path) -> None:
    result = run("-m", zoo / "conv.onnx", "--output-dir", tmp_path, "--no-verify", "--json")
    (row,) = valid(result.stdout)["models"]
    assert (row["validation"]["status"], row["validation"]["reason"]) == ("not-validated", "`--no-verify`")
    assert row["inputs"] == [{"name": "x", "dtype": "float32", "shape": [1, 3, 16, 16]}]
    assert row["outputs"] == [{"name": "y", "dtype": "float32", "shape": [1, 16]}]


def test_equal_names_are_kept_apart_with_a_warning(run: Compile, nets: Path, tmp_path: Path) -> None:
    twins = []
    for name, source in (("1", "small"), ("2", "large")):
        (tmp_path / name).mkdir()
        twins += ["-m", shutil.copy(nets / f"{source}.onnx", tmp_path / name / "model.onnx")]
    result = run(*twins, "--output-dir", tmp_path / "out", "--no-verify")
    assert result.returncode == 0
    assert "another model has the same name" in result.stderr
    assert _consistent(tmp_path / "out", {"model_ctx.onnx", "model_1_ctx.onnx"}) == {"model_ctx_qnn.bin"}
    assert "% saved" in result.stdout


def test_options_come_from_the_config_and_the_command_line_wins(run: Compile, zoo: Path, tmp_path: Path) -> None:
    config = tmp_path / "c.json"
    config.write_text(json.dumps({"compile": {"provider_options": {"soc_model": "43", "vtcm_mb": "4"}}}))
    words = ("-m", zoo / "conv.onnx", "--config", config, "--no-verify", "--json")
    value = valid(run(*words, "--output-dir", tmp_path / "1").stdout)
    assert value["provider_options"] == {"backend_type": "htp", "soc_model": "43", "vtcm_mb": "4"}
    assert value["models"][0]["compatibility"]["QNNExecutionProvider"].split(":")[5] == "43"
    other = valid(run(*words, "--output-dir", tmp_path / "2", "--ep-options", "soc_model=60").stdout)
    assert other["provider_options"]["soc_model"] == "60"


def test_a_file_the_ep_was_asked_for_besides_lies_beside_the_model(run: Compile, zoo: Path, tmp_path: Path) -> None:
    run("-m", zoo / "conv.onnx", "--output-dir", tmp_path / "1", "--no-verify",
        "--ep-options", "enable_framework_op_trace=1")  # fmt: skip
    assert json.loads((tmp_path / "1" / "qnn_op_trace.json").read_text())
    shared = run("-m", zoo / "conv.onnx", "-m", zoo / "fused.onnx", "--output-dir", tmp_path / "2", "--no-verify",
                 "--ep-options", "enable_framework_op_trace=1", "--json")  # fmt: skip
    assert all("was requested but not written" in row["warnings"][0] for row in valid(shared.stdout)["models"])


def test_nodes_left_on_the_cpu_are_named(run: Compile, zoo: Path, tmp_path: Path) -> None:
    result = run("-m", zoo / "fused.onnx", "--output-dir", tmp_path, "--json")
    assert valid(result.stdout)["models"][0]["cpu_ops"] == {"com.microsoft:FusedConv": 3}
    assert "3 nodes stay on the CPU: com.microsoft:FusedConv x3" in result.stderr


@pytest.mark.parametrize(
    ("words", "exit_code", "message"),
    [
        (["-m", "symbolic"], 2, "without fixed sizes: batch (x[0])"),
        (["-m", "nothing"], 1, "compiled none of the nodes"),
        (["-m", "crash", "--compiler", "ort_jit"], 1, f"crashed with {DIVIDED}"),
        (["-m", "gone"], 2, "model file not found"),
        (["-m", "small", "--ep-options", "soc_model=9999"], 1, "compiled none of the nodes"),
        (["-m", "small", "--ep-options", "soc_mode=60"], 2, "has no option `soc_mode`"),
        (["-m", "small", "--compiler", "ort_git"], 2, "unknown compiler `ort_git`"),
        (["-m", "small", "--compiler", "qairt"], 3, "compiler `qairt` is not available"),
        (["-m", "small", "--config", "gone.json"], 2, "config not found"),
        (["-m", "small", "-m", "large", "--embed"], 2, "cannot be embedded"),
        (["-m", "small", "-m", "large", "--compiler", "qairt"], 2, "several models into one context"),
        (["-m", "small", "-m", "large", "--ep-options", "soc_model=60,87"], 2, "several SoCs"),
        (["-m", "symbolic", "-m", "symbolic"], 2, "none of 2 models was compiled"),
        (["-m", "small", "--timeout", "0.001"], 1, "timed out"),
        ([], 2, "name a model"),
    ],
)
def test_what_cannot_be_done_is_said_and_leaves_nothing(
    run: Compile, nets: Path, tmp_path: Path, words: list[str], exit_code: int, message: str
) -> None:
    named = [str(nets / f"{w}.onnx") if words[i - 1 : i] == ["-m"] else w for i, w in enumerate(words)]
    result = run(*named, "--output-dir", tmp_path / "out", "--rebuild", "--json")
    assert message in failed(result, exit_code)
    assert valid(result.stdout)["ok"] is False
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("target", "exit_code"), [("cpu", 2), ("dml", 2), ("vitisai/npu", 3), ("openvino/cpu", 3)])
def test_eps_that_do_not_compile_or_are_not_here(
    nets: Path, tmp_path: Path, env: dict[str, str], target: str, exit_code: int
) -> None:
    words = ("-m", nets / "small.onnx", "--target", target, "--output-dir", tmp_path / "out")
    text = failed(winml("compile", *words, env=env), exit_code)
    assert ("does not compile models" if exit_code == 2 else "not available") in text


def test_a_compiled_model_is_not_compiled_again(run: Compile, zoo: Path, tmp_path: Path) -> None:
    run("-m", zoo / "conv.onnx", "--output-dir", tmp_path, "--no-verify")
    again = run("-m", tmp_path / "conv_ctx.onnx", "--output-dir", tmp_path / "again")
    assert "already compiled, for QNNExecutionProvider" in failed(again, 2)


def test_existing_files_are_replaced_only_when_that_was_said(run: Compile, zoo: Path, tmp_path: Path) -> None:
    words = ("-m", zoo / "conv.onnx", "--output-dir", tmp_path, "--no-verify")
    (tmp_path / "conv_ctx_qnn.bin").write_bytes(b"mine")
    assert "output file exists" in failed(run(*words), 2)
    assert [p.name for p in tmp_path.iterdir()] == ["conv_ctx_qnn.bin"]
    assert run(*words, "--overwrite").returncode == 0
    assert _consistent(tmp_path, {"conv_ctx.onnx"}) == {"conv_ctx_qnn.bin"}


def test_a_result_that_computes_something_else_is_not_delivered(run: Compile, tmp_path: Path) -> None:
    """A million is more than 16-bit floats hold, and the NPU computes in them."""
    model = model_zoo.text_model(
        "g (float[1,16] x) => (float[1,16] y) <float k = {1000000.0}> { a = Mul(x, k)  y = Sub(a, x) }"
    )
    words = ("-m", model_zoo.saved(model, tmp_path / "m.onnx"), "--output-dir", tmp_path / "out", "--json")
    result = run(*words)
    assert "times as large as the source's; precision fp32 must reach" in failed(result, 5)
    (row,) = valid(result.stdout)["models"]
    assert row["proof"]["status"] == "not proven"
    assert "--no-verify" in row["error"]["hint"]
    assert not (tmp_path / "out").exists()
    assert run(*words, "--no-verify").returncode == 0


def test_a_build_folder_is_a_model(run: Compile, zoo: Path, tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    shutil.copy(zoo / "conv.onnx", tmp_path / "net" / "model.onnx")
    assert run("-m", tmp_path / "net", "--output-dir", tmp_path / "out", "--no-verify").returncode == 0
    assert _consistent(tmp_path / "out", {"net_ctx.onnx"}) == {"net_ctx_qnn.bin"}


def test_external_data_belongs_to_the_model(run: Compile, nets: Path, tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    files.save(onnx.load(nets / "small.onnx"), source, external_data="always")
    first = valid(run("-m", source, "--output-dir", tmp_path / "1", "--json").stdout)
    assert first["models"][0]["validation"]["status"] == "passed"
    data = tmp_path / "m.onnx.data"
    data.write_bytes(data.read_bytes()[:-4] + b"\0\0\0\0")
    second = valid(run("-m", source, "--output-dir", tmp_path / "2", "--no-verify", "--json").stdout)
    assert not second["models"][0]["cached"]


def test_a_binary_that_another_model_uses_is_not_replaced(run: Compile, nets: Path, tmp_path: Path) -> None:
    both = ("-m", nets / "small.onnx", "-m", nets / "large.onnx", "--output-dir", tmp_path, "--no-verify")
    assert run(*both).returncode == 0
    before = digest.of_file(tmp_path / "small_ctx_qnn.bin")
    alone = run("-m", nets / "small.onnx", "--output-dir", tmp_path, "--no-verify", "--overwrite")
    assert "large_ctx.onnx` uses `small_ctx_qnn.bin`" in failed(alone, 2)
    assert digest.of_file(tmp_path / "small_ctx_qnn.bin") == before
    assert run(*both, "--overwrite").returncode == 0
    assert _consistent(tmp_path, {"small_ctx.onnx", "large_ctx.onnx"}) == {"small_ctx_qnn.bin"}


def test_list_shows_why_a_compiler_is_not_here(env: dict[str, str]) -> None:
    value = valid(winml("compile", "--list", "--ep", "qnn", "--json", env=env).stdout)
    assert [row["available"] for row in value["compilers"]] == [True, True, False]
    assert "QNN_SDK_ROOT" in winml("compile", "--list", "--ep", "qnn", env=env).stdout


def _children(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    return [child for child, parent in pairs if parent == pid]


def _gone(pid: int, within_s: float = 20.0) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.skipif(sys.platform == "win32", reason="signals as a terminal sends them")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT"])
def test_a_kill_or_ctrl_c_in_the_middle_leaves_no_output(
    nets: Path, tmp_path: Path, env: dict[str, str], name: str
) -> None:
    sent = signal.Signals[name]
    out = tmp_path / "out"
    words = [
        "-m",
        nets / "small.onnx",
        "-m",
        nets / "large.onnx",
        "--target",
        "qnn/npu",
        "--output-dir",
        out,
        "--rebuild",
    ]
    command = [sys.executable, "-m", "winml.modelkit", "compile", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        assert process.stderr is not None
        assert "target" in process.stderr.readline()
        workers: list[int] = []
        while len(workers) < 2:  # the one that reads files, and the one that compiles
            workers = _children(process.pid)
        process.send_signal(sent)
        process.communicate(timeout=30)
    assert process.returncode == (130 if sent == signal.SIGINT else -sent)
    assert not out.exists()
    assert all(_gone(worker) for worker in workers)


def test_text_names_the_files_and_how_near_the_outputs_are(run: Compile, conv_w8a8: Path, tmp_path: Path) -> None:
    result = run("-m", conv_w8a8, "--output-dir", tmp_path)
    assert result.returncode == 0
    assert "binary   conv_w8a8_ctx_qnn.bin" in result.stdout
    assert "parity   same target: equal" in result.stdout
    assert "proof    proven on target: `y` has a cosine of " in result.stdout
    assert "soc_model=60 was chosen for the simulator" in result.stderr


@pytest.mark.parametrize("target", [("--target", "cpu"), ()], ids=["named", "chosen"])
def test_a_compiled_model_on_another_target_is_a_wrong_request_that_names_its_own(
    run: Compile, conv_w8a8: Path, tmp_path: Path, env: dict[str, str], target: tuple[str, ...]
) -> None:
    run("-m", conv_w8a8, "-o", tmp_path / "npu.onnx", "--no-verify")
    text = failed(winml("perf", "-m", tmp_path / "npu.onnx", *target, env=env), 2)
    assert "npu.onnx` is compiled for QNN and runs on no other execution provider" in text
    assert "pass the target it was compiled for with `--target`" in text


@pytest.mark.package_index
@pytest.mark.xdist_group("environments")
@pytest.mark.timeout(900)
def test_a_result_that_its_own_device_refuses_is_a_failure(nets: Path, tmp_path: Path) -> None:
    """OpenVINO 1.24.1 writes contexts that it does not open on a CPU."""
    installed("openvino")
    words = ("compile", "-m", nets / "small.onnx", "--target", "openvino/cpu", "--output-dir", tmp_path / "out")
    in_environment = {**os.environ, "WINML_CACHE": str(CACHE)}
    assert "does not open on `openvino/cpu`" in failed(winml(*words, env=in_environment), 1)
    assert not (tmp_path / "out").exists()
    assert winml(*words, "--no-verify", env=in_environment).returncode == 0
    assert _consistent(tmp_path / "out", {"small_ctx.onnx"}) == {"small_ctx_OpenVINOExecutionProvider.bin"}


def test_a_folder_of_parts_becomes_a_folder_of_compiled_parts(run: Compile, nets: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "parts", tmp_path / "out"
    parts = {}
    for part, net in (("prefill", "large"), ("decode", "small")):
        (source / part).mkdir(parents=True)
        shutil.copy(nets / f"{net}.onnx", source / part / "model.onnx")
        parts[part] = {"folder": part, "file": "model.onnx", "digest": f"sha256:{'0' * 64}", "sizes": {"batch": 1}}
    listed = {"schema": "winml/parts/1", "model": "nets", "target": "qnn/npu", "parts": parts}
    (source / "parts.json").write_text(json.dumps(listed), encoding="utf-8")
    (source / "decode" / "config.json").write_text('{"eos_token_id": 2}', encoding="utf-8")
    (source / "decode" / "tokenizer.json").symlink_to(nets / "small.onnx")
    value = valid(run("-m", source, "--output-dir", out, "--json").stdout)
    assert value["sharing"]["shared"] is True
    assert {path.name for path in out.iterdir()} == {
        "prefill_ctx.onnx", "decode_ctx.onnx", "prefill_ctx_qnn.bin", "parts.json", "config.json",
    }  # fmt: skip
    made = valid((out / "parts.json").read_text(encoding="utf-8"))
    assert made["model"] == "nets"
    for part, entry in made["parts"].items():
        assert (entry["folder"], entry["file"], entry["sizes"]) == (".", f"{part}_ctx.onnx", {"batch": 1})
        assert entry["digest"] == digest.of_file(out / entry["file"])
    assert "output file exists: " in failed(run("-m", source, "--output-dir", out), 2)
    shutil.copy(nets / "nothing.onnx", source / "prefill" / "model.onnx")
    failed(run("-m", source, "--output-dir", out, "--overwrite"), 6)
    assert not (out / "parts.json").exists(), "it would name a part that is not there"
