"""`winml compare` for real: verdicts on models of known truth."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from program import DIVIDED, Done, failed, valid
from program import winml as run

import model_zoo
from ctrl_c import Telling, press_ctrl_c, start

SCHEMA = "winml/build-config/1"
pytestmark = [pytest.mark.xdist_group("measuring"), pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base, the same with an un-removable side chain that costs half or five times as much, and ones that fail."""
    made = tmp_path_factory.mktemp("compare")
    model_zoo.saved(model_zoo.conv_net(channels=32, size=32), made / "plain.onnx")
    model_zoo.saved(_with_chain(model_zoo.conv_net(channels=32, size=32), 40), made / "chained.onnx")
    model_zoo.saved(_with_chain(model_zoo.conv_net(channels=32, size=32), 2000), made / "slow.onnx")
    for name in ("fpe", "hang"):
        model_zoo.saved(_conv_shaped(name), made / f"{name}.onnx")
    return made


def _with_chain(model: onnx.ModelProto, steps: int) -> onnx.ModelProto:
    """Adds 0.0 times the result of many steps to the output."""
    graph = model.graph
    graph.initializer.append(numpy_helper.from_array(np.eye(48, dtype=np.float32) * 0.5, "side"))
    graph.initializer.append(numpy_helper.from_array(np.array([-1, 48], np.int64), "shape48"))
    graph.initializer.append(numpy_helper.from_array(np.float32(0), "zero"))
    graph.node[-1].output[0] = "plain_y"
    graph.node.append(helper.make_node("Reshape", ["x", "shape48"], ["s0"]))
    for i in range(steps):
        graph.node.append(helper.make_node("MatMul", [f"s{i}", "side"], [f"m{i}"]))
        graph.node.append(helper.make_node("Tanh", [f"m{i}"], [f"s{i + 1}"]))
    graph.node.append(helper.make_node("ReduceMax", [f"s{steps}"], ["top"], keepdims=0))
    graph.node.append(helper.make_node("Mul", ["top", "zero"], ["nothing"]))
    graph.node.append(helper.make_node("Add", ["plain_y", "nothing"], ["y"]))
    return model


def _conv_shaped(kind: str) -> onnx.ModelProto:
    """A model with the base's inputs and outputs that crashes or hangs."""
    body = {
        "fpe": """<int32[1] lowest = {-2147483648}, int32[1] minus = {-1}>
            { t = Cast<to = 6>(x)  f = ReduceMin<keepdims = 0>(t)  z = Sub(f, f)  a = Add(lowest, z)  b = Add(minus, z)
              d = Div(a, b)  e = Cast<to = 1>(d)  p = GlobalAveragePool(x)  y = Add(p, e) }""",
        "hang": """<int64 trips = {9223372036854775807}, bool cond = {1}>
            { p = GlobalAveragePool(x)
              y = Loop (trips, cond, p) <body = b (int64 i, bool keep_in, float[1,3,1,1] v)
                => (bool keep, float[1,3,1,1] w)
                { keep = Identity(keep_in)  w = Sin(v) }> }""",
    }[kind]
    return model_zoo.text_model(f"g (float[1,3,32,32] x) => (float[1,3,1,1] y) {body}")


def winml(cwd: Path, *args: str, cache: Path | None = None) -> Done:
    return run("compare", *args, cwd=cwd, env={**os.environ, "WINML_CACHE": str(cache or cwd / "cache")})


def first(result: Done) -> dict[str, Any]:
    found: dict[str, Any] = valid(result.stdout)["candidates"][0]
    return found


def test_a_faster_candidate_is_kept_and_every_sample_is_stored(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.json"
    result = winml(folder, "chained.onnx", "plain.onnx", "--threads", "1", "--json", "-o", str(out))
    candidate = first(result)
    assert candidate["verdict"]["verdict"] == "KEEP", candidate["verdict"]
    assert candidate["verdict"]["metric"] == ("wall" if sys.platform == "win32" else "cpu"), (
        "a clock that steps 15.6 ms"
    )
    assert candidate["parity"]["min_cosine"] == 1.0
    rounds = candidate["measurement"]["rounds"]
    assert len(rounds) == 2 * candidate["verdict"]["rounds"]
    assert {r["arm"] for r in rounds} == {0, 1}
    section = candidate["measurement"]["arms"][0]["session"]
    assert section["config_entries"]["session.intra_op.allow_spinning"] == "0"
    times = candidate["times"]
    assert times["metric"] == candidate["verdict"]["metric"]
    assert times["candidate_ms"]["interval"]["low"] <= times["candidate_ms"]["median"] < times["base_ms"]["median"]
    assert candidate["speedup"] == pytest.approx(1 / (1 - candidate["verdict"]["gain_pct"] / 100))
    low, high = candidate["speedup_interval"]
    assert 1 < low <= candidate["speedup"] <= high
    judged = winml(folder, "--from", str(out), "--json")
    assert first(judged)["times"] == times
    again = first(judged)["verdict"]
    assert {k: again[k] for k in ("verdict", "gain_pct", "rounds")} == {
        k: candidate["verdict"][k] for k in ("verdict", "gain_pct", "rounds")
    }


def test_a_slower_candidate_is_discarded_and_fails_the_gate(folder: Path) -> None:
    words = ("--threads", "1", "--no-calibration", "--fail-if-slower", "1", "--json")
    result = winml(folder, "plain.onnx", "chained.onnx", *words)
    assert "slower than the base by more than 1 %" in failed(result, 5)
    assert first(result)["verdict"]["verdict"] == "DISCARD"
    assert first(result)["gate"] == "fail"


def test_identical_graphs_are_not_measured_unless_forced(folder: Path) -> None:
    result = winml(folder, "plain.onnx", "plain.onnx", "--fail-if-slower", "3", "--json")
    assert first(result)["verdict"]["verdict"] == "IDENTICAL"
    assert first(result)["gate"] == "pass"
    assert first(result)["measurement"] is None
    words = ("--force", "--threads", "1", "--no-calibration", "--max-seconds", "6", "--json")
    forced = first(winml(folder, "plain.onnx", "plain.onnx", *words))
    assert forced["verdict"]["verdict"] in ("DISCARD", "INCONCLUSIVE")
    assert forced["measurement"] is not None


def test_an_equal_pair_with_two_threads_and_spinning_is_not_kept(folder: Path) -> None:
    """Two spinning sessions alive together differ by up to 48 %; ours sleep."""
    words = ("--force", "--threads", "2", "--no-calibration", "--max-seconds", "15", "--json")
    found = first(winml(folder, "plain.onnx", "plain.onnx", *words))
    assert found["verdict"]["verdict"] in ("DISCARD", "INCONCLUSIVE")


@pytest.mark.parametrize(
    ("name", "reason"), [("fpe.onnx", f"crashed with {DIVIDED}"), ("hang.onnx", "timed out after 10 s")]
)
def test_a_candidate_that_misbehaves_is_a_verdict(folder: Path, name: str, reason: str) -> None:
    model = model_zoo.text_model("g (float[1,3,32,32] x) => (float[1,3,1,1] y) { y = GlobalAveragePool(x) }")
    model_zoo.saved(model, folder / "pool.onnx")
    result = winml(folder, "pool.onnx", name, "--json")
    assert reason in failed(result, 1)
    assert first(result)["verdict"]["verdict"] == "FAILED"


def test_a_far_slower_candidate_is_discarded_by_the_probe(folder: Path) -> None:
    found = first(winml(folder, "plain.onnx", "slow.onnx", "--threads", "1", "--json"))
    assert found["verdict"]["verdict"] == "DISCARD"
    assert "times slower in a probe" in found["verdict"]["reason"]
    assert found["measurement"] is None
    assert found["times"]["candidate_ms"]["median"] > 3 * found["times"]["base_ms"]["median"]
    assert found["times"]["candidate_ms"]["interval_reason"] == "a probe of 3 runs"
    assert found["speedup"] < 1 / 3
    assert found["verdict"]["seconds"] < 15


def test_outputs_that_differ_are_said_first_and_measured_on_request(folder: Path) -> None:
    other = model_zoo.conv_net(channels=32, size=32)
    for tensor in other.graph.initializer:
        if tensor.name.startswith("w"):
            tensor.raw_data = (-numpy_helper.to_array(tensor)).astype(np.float32).tobytes()
    model_zoo.saved(other, folder / "other.onnx")
    refused = winml(folder, "plain.onnx", "other.onnx", "--threads", "1", "--json")
    assert "--allow-different" in failed(refused, 1)
    words = ("--threads", "1", "--no-calibration", "--allow-different", "--max-seconds", "3", "--json")
    allowed = first(winml(folder, "plain.onnx", "other.onnx", *words))
    assert allowed["measurement"]["rounds"]
    assert allowed["parity"]["within_tolerance"] is False


def test_other_inputs_are_refused_or_matched_by_position(folder: Path) -> None:
    renamed = model_zoo.conv_net(channels=32, size=32)
    renamed.graph.input[0].name = renamed.graph.node[0].input[0] = "picture"
    model_zoo.saved(renamed, folder / "renamed.onnx")
    assert "--by-position" in failed(winml(folder, "plain.onnx", "renamed.onnx"), 2)
    words = ("--by-position", "--threads", "1", "--no-calibration", "--max-seconds", "3", "--json")
    assert first(winml(folder, "plain.onnx", "renamed.onnx", *words))["verdict"]["verdict"] in (
        "DISCARD",
        "INCONCLUSIVE",
    )
    model_zoo.saved(model_zoo.relu(), folder / "relu.onnx")
    failed(winml(folder, "plain.onnx", "relu.onnx", "--by-position"), 2)


def test_arms_on_other_input_shapes_are_refused(folder: Path) -> None:
    """A size that only one of them has would make the candidate faster without a word."""
    for name, size in (("fixed", "64"), ("other", "32")):
        text = f"g (float[1,{size},8] x) => (float[1,{size},8] y) {{ y = Relu(x) }}"
        model_zoo.saved(model_zoo.text_model(text), folder / f"{name}.onnx")
    assert "would run on inputs" in failed(winml(folder, "fixed.onnx", "other.onnx"), 2)


def test_several_candidates_are_ranked_and_failures_are_partial(folder: Path) -> None:
    result = winml(folder, "chained.onnx", "plain.onnx", "slow.onnx", "--threads", "1", "--json")
    value = valid(result.stdout)
    assert value["ranking"] == ["plain.onnx", "slow.onnx"]
    best = value["candidates"][0]
    assert best["confirmation"]["verdict"]["verdict"] in ("KEEP", "MARGINAL_KEEP")


def test_build_folders_bring_their_session_section_and_take_turns(folder: Path, tmp_path: Path) -> None:
    """Arms that differ in threads are never alive together: the wall clock decides, or nothing does."""
    for name, threads in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.onnx").write_bytes((folder / "plain.onnx").read_bytes())
        (tmp_path / name / "build_config.json").write_text(
            json.dumps({"schema": SCHEMA, "session": {"threads": threads}})
        )
    value = valid(winml(tmp_path, "one", "two", "--max-seconds", "4", "--no-calibration", "--json").stdout)
    found = value["candidates"][0]
    assert found["measurement"]["protocol"]["mode"] == "turns"
    assert found["verdict"]["metric"] == "wall"
    assert [a["session"]["threads"] for a in found["measurement"]["arms"]] == [1, 2]
    (tmp_path / "two" / "build_config.json").write_text(json.dumps({"schema": SCHEMA, "session": {"thraeds": 2}}))
    assert "did you mean `threads`?" in failed(winml(tmp_path, "one", "two"), 2)


@pytest.mark.qnn
def test_a_simulated_target_gets_no_verdict(folder: Path) -> None:
    assert "simulated" in failed(winml(folder, "plain.onnx", "chained.onnx", "--target", "qnn/npu"), 3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plain.onnx"], "compare needs a base and a candidate"),
        ([], "name a base and a candidate"),
        (["plain.onnx", "gone.onnx"], "model file not found: `gone.onnx`"),
        (["plain.onnx", "--targets", "cpu"], "compare needs a base and a candidate"),
        (["plain.onnx", "--targets", "cpu,cpu"], "target `cpu` is given twice"),
        (["plain.onnx", "chained.onnx", "--targets", "cpu,openvino/cpu"], "several models over several targets"),
        (["plain.onnx", "chained.onnx", "--fail-if-slower", "-1"], "-1.0 is not in the range"),
        (["--from", "gone.json"], "comparison not found: `gone.json`"),
        (["--from", "plain.onnx"], "`plain.onnx` is not a stored comparison"),
        (["plain.onnx", "chained.onnx", "--from", "x.json"], "`--from` cannot be combined with models"),
    ],
)
def test_wrong_requests(folder: Path, words: list[str], message: str) -> None:
    result = winml(folder, *words, "--json")
    assert message in failed(result, 2)
    assert valid(result.stdout)["ok"] is False


def test_ctrl_c_keeps_what_was_measured(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.json"
    telling = Telling(tmp_path)
    words = ("compare", *["plain.onnx"] * 5, "--force", "-o", out, "--threads", "1", "--no-calibration", "--json")
    environment = {**os.environ, "WINML_CACHE": str(folder / "cache")}
    with start(telling.argv(*words), cwd=folder, env=environment) as process:
        telling.wait_for("RoundDone", process, count=2)
        press_ctrl_c(process)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    value = valid(stdout)
    assert value["error"]["code"] == "interrupted"
    assert value["unfinished_rounds"] or value["candidates"]
    assert json.loads(out.read_text(encoding="utf-8"))["error"]["code"] == "interrupted"


@pytest.mark.package_index
@pytest.mark.xdist_group("environments")
@pytest.mark.timeout(900)
def test_one_model_over_two_environments_takes_turns_by_token(folder: Path) -> None:
    from test_environments import CACHE, installed

    installed("openvino")
    # The slower one, which takes five times as long on some machines, is the base: a probe would discard it.
    words = ("--targets", "openvino/cpu,cpu", "--threads", "1", "--no-calibration", "--max-seconds", "8", "--json")
    result = winml(folder, "plain.onnx", *words, cache=CACHE)
    found = first(result)
    assert found["label"] == "cpu"
    assert found["measurement"]["protocol"]["mode"] == "token"
    assert found["verdict"]["metric"] == "wall"
    assert len({r["process"] for r in found["measurement"]["rounds"]}) == 2 * found["verdict"]["rounds"]


@pytest.mark.qnn
def test_builds_are_compared_each_on_its_own_target_when_that_is_asked_for(tmp_path: Path) -> None:
    for target in ("cpu", "qnn/npu"):
        arguments = ("--target", target, "-p", "fp32", "--no-analyze", "--no-prove")
        assert run("build", "--sample", *arguments, "-o", tmp_path / target[:3]).returncode == 0
    both = (tmp_path / "cpu", tmp_path / "qnn")
    assert "--as-built" in failed(run("compare", *both), 2)
    # Both are opened on their own targets: the one that is simulated has no verdict.
    assert "`qnn/npu` is simulated" in failed(run("compare", *both, "--as-built"), 3)
    assert "takes the target of each build" in failed(run("compare", *both, "--as-built", "--target", "cpu"), 2)
    file = tmp_path / "cpu/model.onnx"
    assert "is no build" in failed(run("compare", both[0], file, "--as-built"), 2)
