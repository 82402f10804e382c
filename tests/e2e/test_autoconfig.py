"""`winml autoconfig` as a user runs it, on the sample and small models."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import psutil
import pytest
from program import DIVIDED, Done, failed, valid
from program import winml as run

import model_zoo
from ctrl_c import OWN_CONSOLE, press_ctrl_c
from winml.modelkit import sample

# One process measures at a time, and the search of the sample is made once.
pytestmark = pytest.mark.xdist_group("measuring")

SAMPLE_DATA = ("--data", sample.TEST, "--task", "image-classification", "--calibration", sample.CALIBRATION)


def space_file(folder: Path, **knobs: list[str]) -> Path:
    path = folder / "space.json"
    named = {name.replace("__", "."): levels for name, levels in knobs.items()}
    path.write_text(json.dumps({"schema": "winml/space/1", "knobs": named}))
    return path


class Searches:
    """The program with knowledge of its own, and the cache of all tests: what one has built no other builds again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {**os.environ, "WINML_KNOWLEDGE": str(folder / "knowledge")}

    def forget_builds(self) -> None:
        """Use an empty cache, for searches that are stopped while they build."""
        self.env["WINML_CACHE"] = str(self.folder / "cache")

    def winml(self, *args: str | Path) -> Done:
        return run(*args, cwd=self.folder, env=self.env)

    def search(self, *args: str | Path) -> dict[str, Any]:
        result = self.winml("autoconfig", *args, "--json")
        assert result.returncode == 0, result.stderr
        return valid(result.stdout)

    def start(self, *args: str | Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "winml.modelkit", "autoconfig", *map(str, args)],
            cwd=self.folder, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, **OWN_CONSOLE,
        )  # fmt: skip

    def records(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / name / "journal.jsonl"
        if not path.is_file():
            return []
        lines = path.read_text(encoding="utf-8").splitlines()
        found = []
        for line in lines:
            with contextlib.suppress(ValueError):  # the last line may be cut off by a kill
                found.append(json.loads(line)["record"])
        return found


BUDGET = "1h"
"""These searches end by themselves, within a minute on a quiet machine; a busy one only takes longer."""


@pytest.fixture
def searches(tmp_path: Path) -> Searches:
    return Searches(tmp_path)


@pytest.fixture(scope="module")
def sample_search(tmp_path_factory: pytest.TempPathFactory) -> tuple[Searches, dict[str, Any]]:
    """A small search of the sample by time, once."""
    made = Searches(tmp_path_factory.mktemp("search"))
    space = space_file(made.folder, quantize__scheme=["int8", "int4"])
    return made, made.search("--sample", "--target", "cpu", "--space", space, "--budget", BUDGET, "-o", "out")


def test_the_sample_ends_with_a_confirmed_champion(sample_search: tuple[Searches, dict[str, Any]]) -> None:
    _, value = sample_search
    champion = value["champion"]
    assert champion["status"] == "KEEP_CONFIRMED"
    assert champion["choice"]["quantize.scheme"] == "int8"
    assert 1 < champion["speedup_interval"][0] <= champion["speedup"] <= champion["speedup_interval"][1]
    times = champion["times"]
    assert times["candidate_ms"]["interval"]["low"] <= times["candidate_ms"]["median"] < times["base_ms"]["median"]
    assert times == champion["confirmation"]["times"]
    assert all(t["times"] is not None for t in value["trials"] if t["outcome"] in ("baseline", "measured"))
    assert champion["accuracy"]["kind"] == "task"
    assert champion["accuracy"]["drop"] < 0.01
    assert value["finished"]
    assert champion["id"] in value["pareto"]


def test_a_config_that_changes_nothing_is_not_measured(sample_search: tuple[Searches, dict[str, Any]]) -> None:
    _, value = sample_search
    unchanged = [trial for trial in value["trials"] if trial["choice"] == {"quantize.scheme": "int4"}]
    assert [(trial["outcome"], trial["same_as"], trial["rounds"]) for trial in unchanged] == [("same", "h0", 0)]


def test_the_champion_is_a_build_folder_that_is_rebuilt_with_the_same_digest(
    sample_search: tuple[Searches, dict[str, Any]],
) -> None:
    made, value = sample_search
    champion = made.folder / "out" / "champion"
    result = made.winml("build", "-c", champion / "build_config.json", "--rebuild", "-o", "again", "--json")
    assert valid(result.stdout)["artifact"]["digest"] == value["champion"]["digest"]


def test_the_folder_has_what_was_promised(sample_search: tuple[Searches, dict[str, Any]]) -> None:
    made, value = sample_search
    out = made.folder / "out"
    rows = (out / "results.tsv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 1 + len(value["trials"])
    assert rows[0].startswith("id\tconfig\ttarget\toutcome\tverdict")
    session = json.loads((out / "session.json").read_text())
    assert session["completed"] == [trial["id"] for trial in value["trials"]]
    assert 0 < session["best_p50"] < session["baseline_p50"]
    assert session["best_label"].startswith("quantize.scheme=int8")
    measurement = value["champion"]["confirmation"]["measurement"]
    samples = json.loads((out / "measurements" / f"{measurement}.json").read_text())
    assert samples["kind"] == "samples"
    assert valid((out / "autoconfig.json").read_text())["champion"]["id"] == value["champion"]["id"]
    assert value["drafts"], "a gain of this size is worth a draft"
    assert all((out / "findings" / f"{name}.json").is_file() for name in value["drafts"])


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)
        if tag not in ("meta", "polyline", "path", "circle"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "circle":
            assert self.open.pop() == tag


def test_the_reports_tell_everything(sample_search: tuple[Searches, dict[str, Any]]) -> None:
    made, value = sample_search
    text = (made.folder / "out" / "report.html").read_text(encoding="utf-8")
    page = _Page()
    page.feed(text)
    assert page.open == []
    assert "svg" in page.seen
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text
    markdown = (made.folder / "out" / "report.md").read_text(encoding="utf-8")
    for trial in value["trials"]:
        label = re.escape(trial["label"])
        assert re.search(rf"\| (\*\*)?{trial['id']}\1? \| (\*\*)?. [a-z ]+\2? \| (\*\*)?{label}\3? \|", markdown)
    for title in ("## Trials", "## Environment"):
        assert title in markdown


def test_a_finished_search_is_not_searched_again(sample_search: tuple[Searches, dict[str, Any]]) -> None:
    made, value = sample_search
    before = [record for record in made.records("out") if record["kind"] != "preparation"]
    space = made.folder / "space.json"
    again = made.search("--sample", "--target", "cpu", "--space", space, "--budget", BUDGET, "-o", "out", "--resume")
    assert [record for record in made.records("out") if record["kind"] != "preparation"] == before
    assert again["champion"]["digest"] == value["champion"]["digest"]
    assert again["environment"] == value["environment"] != {}


def test_trials_of_an_earlier_search_are_reused(sample_search: tuple[Searches, dict[str, Any]]) -> None:
    made, _ = sample_search
    space = space_file(made.folder / "out", quantize__scheme=["int8"])
    value = made.search(
        "--sample", "--target", "cpu", "--space", space, "--budget", BUDGET, "-o", "more", "--reuse", "out"
    )
    assert [trial["reused_from"] for trial in value["trials"]] == ["out", "out"]
    assert value["champion"]["choice"] == {"quantize.scheme": "int8"}


# --- other objectives, which need no timing


@pytest.fixture
def conv(tmp_path: Path) -> tuple[Path, Path]:
    """A small model and calibration data for it."""
    model = model_zoo.saved(model_zoo.conv_net(), tmp_path / "conv.onnx")
    data = tmp_path / "data.npz"
    np.savez(data, x=np.random.default_rng(0).random((8, 3, 16, 16), dtype=np.float32))
    return model, data


BY_SIZE = ("--objective", "size", "--target", "cpu", "--budget", BUDGET)


def test_the_smallest_config_that_agrees_with_the_baseline(searches: Searches, conv: tuple[Path, Path]) -> None:
    model, data = conv
    space = space_file(searches.folder, quantize__scheme=["int8", "fp16", "w4a16"])
    value = searches.search("-m", model, "--calibration", data, "--space", space, *BY_SIZE, "-o", "out")
    assert value["gate"]["kind"] == "agreement"
    assert any("no labelled data" in note for note in value["notes"])
    assert value["champion"]["choice"] == {"quantize.scheme": "int8"}
    assert value["champion"]["speedup"] is None, "nothing was timed"
    session = json.loads((searches.folder / "out" / "session.json").read_text())
    assert (session["baseline_p50"], session["best_p50"]) == (None, None)
    assert session["best_gain_pct"] > 0
    refused = next(t for t in value["trials"] if t["choice"] == {"quantize.scheme": "w4a16"})
    assert refused["outcome"] == "inaccurate"
    assert "agreement with the given model is" in refused["reason"]


def test_static_quantization_is_left_out_without_data(searches: Searches, conv: tuple[Path, Path]) -> None:
    space = space_file(searches.folder, quantize__scheme=["int8", "fp16"])
    value = searches.search("-m", conv[0], "--space", space, *BY_SIZE, "-o", "out")
    skipped = [(note["level"], note["source"]) for note in value["insight"] if note["kind"] == "skip"]
    assert skipped == [("int8", "data")]
    assert value["champion"]["choice"] == {"quantize.scheme": "fp16"}
    assert value["next"].startswith("winml perf -m ")
    assert value["next"].endswith("champion --target cpu")


def test_a_model_that_gives_no_numbers_has_nothing_to_agree_with(searches: Searches) -> None:
    graph = model_zoo.text_model(
        "log (float[1,4] x) => (float[1,4] y) { a = Abs(x) b = Neg(a) c = Sub(b, a) y = Log(c) }"
    )
    model = model_zoo.saved(graph, searches.folder / "log.onnx")
    space = space_file(searches.folder, quantize__scheme=["fp16"])
    result = searches.winml("autoconfig", "-m", model, *BY_SIZE, "--space", space, "-o", "out")
    assert "an output of the given model has no finite number" in failed(result, 2)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a search and then what it started; one that has ended is let be."""
    started: list[psutil.Process] = []
    with contextlib.suppress(psutil.NoSuchProcess):
        started = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    for child in started:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    process.wait()


def test_killed_at_any_moment_it_goes_on_without_losing_or_doubling_a_trial(
    searches: Searches, conv: tuple[Path, Path]
) -> None:
    model, data = conv
    searches.forget_builds()
    space = space_file(searches.folder, quantize__scheme=["int8", "fp16"], optimize__opset=["23"])
    args = ("-m", model, "--calibration", data, "--space", space, *BY_SIZE, "-o", "out")
    seen: list[list[dict[str, Any]]] = []
    for kill_after, delay_s in ((2, 0.0), (4, 0.0), (6, 0.6)):
        process = searches.start(*args, *(("--resume",) if seen else ()))
        deadline = time.monotonic() + 100
        while len(searches.records("out")) < kill_after and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(delay_s)
        _kill(process)
        seen.append(searches.records("out"))
    value = searches.search(*args, "--resume")
    records = searches.records("out")
    for earlier in seen:
        assert records[: len(earlier)] == earlier, "nothing that was written is lost"
    choices = [json.dumps(r["trial"]["choice"]) for r in records if r["kind"] == "trial"]
    assert len(choices) == len(set(choices)) == 6
    whole = searches.search(*args[:-1], "whole")
    assert whole["champion"]["digest"] == value["champion"]["digest"]


def test_a_sweep_searches_every_model_of_a_list(searches: Searches, conv: tuple[Path, Path]) -> None:
    model_zoo.saved(model_zoo.conv_net(channels=8), searches.folder / "small.onnx")
    model_zoo.saved(model_zoo.divides_int_min(), searches.folder / "bad.onnx")
    (searches.folder / "list.txt").write_text("conv.onnx\n# a comment\nsmall.onnx\nbad.onnx\n")
    space = space_file(searches.folder, quantize__scheme=["fp16"])
    args = ("autoconfig", "--models", "list.txt", "--space", space, *BY_SIZE, "-o", "sweep")
    result = searches.winml(*args, "--json")
    assert result.returncode == 6, result.stderr
    value = valid(result.stdout)
    assert [row["champion"] and row["champion"]["label"] for row in value["models"]] == [
        "quantize.scheme=fp16", "quantize.scheme=fp16", None,
    ]  # fmt: skip
    assert DIVIDED in value["models"][2]["error"]["message"]
    summary = (searches.folder / "sweep" / "SUMMARY.md").read_text(encoding="utf-8")
    assert "| conv.onnx | conv | quantize.scheme=fp16 |" in summary
    again = searches.winml(*args, "--resume", "--json")
    assert again.returncode == 6
    assert valid(again.stdout)["models"][0] == value["models"][0]
    (searches.folder / "list.txt").write_text("sub/conv.onnx\n")
    (searches.folder / "sub").mkdir()
    model_zoo.saved(model_zoo.conv_net(channels=8), searches.folder / "sub" / "conv.onnx")
    other = searches.winml(*args, "--resume")
    assert "1 of 1 models failed" in failed(other, 1), "a folder of one model says nothing about another"


@pytest.mark.qnn
def test_convolution_fusions_are_left_out_on_the_npu_by_evidence_of_its_own(
    searches: Searches, conv: tuple[Path, Path]
) -> None:
    model, data = conv
    knobs = {"optimize__conv_activation_fusion": ["on"], "quantize__scheme": ["int8"]}
    space = space_file(searches.folder, **knobs)
    target = ("--target", "qnn/npu", "--calibration", data, "--space", space, "--budget", BUDGET)
    value = searches.search("-m", model, *target, "-o", "out")
    assert value["objective"] == "placement"
    assert any("is simulated on this machine" in note for note in value["notes"])
    note = next(n for n in value["insight"] if n["knob"] == "optimize.conv_activation_fusion" and n["kind"] == "skip")
    assert note["source"] == "npu-006"
    assert "seen here: com.microsoft:FusedConv x3 on the CPU, 4 pieces instead of 1" in note["reason"]
    assert all("optimize.conv_activation_fusion" not in trial["choice"] for trial in value["trials"])
    assert value["champion"]["choice"] == {"quantize.scheme": "int8"}
    refused = searches.winml("autoconfig", "-m", model, *target, "--objective", "latency", "-o", "other")
    assert "its times say nothing about a device" in failed(refused, 3)


@pytest.mark.qnn
def test_hypotheses_of_a_preset_keep_their_ids(searches: Searches, conv: tuple[Path, Path]) -> None:
    model, data = conv
    value = searches.search(
        "-m", model, "--target", "qnn/npu", "--calibration", data, "--preset", "npu", "--only", "h3,h4,h7",
        "--budget", BUDGET, "-o", "out",
    )  # fmt: skip
    assert [(trial["id"], trial["choice"]) for trial in value["trials"]] == [("h0", {}), ("h3", {"hypothesis": "h3"})]
    assert value["trials"][0]["accuracy"]["agreement"] < 1, "a quantized baseline is held against the given model"
    skipped = {note["level"]: note for note in value["insight"] if note["kind"] == "skip"}
    assert skipped["h4"]["source"] == "npu-006"
    assert set(skipped) == {"h4", "h7"}


# --- what is refused


def test_bad_requests_are_one_clear_error_and_leave_nothing(searches: Searches, conv: tuple[Path, Path]) -> None:
    search = ("autoconfig", "-m", conv[0], "--target", "cpu", "-o", "out")
    assert "a limit for the metric needs labelled data" in failed(searches.winml(*search, "--max-drop", "0.01"), 2)
    assert "`--only` selects hypotheses of a preset" in failed(searches.winml(*search, "--only", "h1"), 2)
    assert "unknown preset `cpuu`" in failed(searches.winml(*search, "--preset", "cpuu"), 2)
    assert "a budget cannot be `soon`" in failed(searches.winml(*search, "--budget", "soon"), 2)
    assert "a gain cannot be `0.5x`" in failed(searches.winml(*search, "--stop-at", "0.5x"), 2)
    assert "holds no search to resume" in failed(searches.winml(*search, "--resume"), 2)
    assert "every node is placed on the CPU" in failed(searches.winml(*search, "--objective", "placement"), 2)
    space = searches.folder / "bad.json"
    space.write_text('{"schema": "winml/space/1", "knobs": {"quantize.shceme": ["int8"]}}')
    assert "unknown knob `quantize.shceme`" in failed(searches.winml(*search, "--space", space), 2)
    assert not (searches.folder / "out").exists()


def test_labels_that_do_not_fit_are_told_before_anything_is_searched(searches: Searches) -> None:
    labels = searches.folder / "labels.npz"
    with np.load(sample.TEST) as stored:
        np.savez(labels, image=stored["image"][:20], label=stored["label"][:20] + 90)
    result = searches.winml(
        "autoconfig", "--sample", "--target", "cpu", "--data", labels, "--objective", "size", "-o", "out"
    )
    assert "is out of range: the model has 10 classes" in failed(result, 2)


def test_a_request_that_was_wrong_leaves_nothing_in_the_way(searches: Searches, conv: tuple[Path, Path]) -> None:
    """What the model is for is asked before anything else, and a search that has no trial can be begun again."""
    model = conv[0]
    images = np.random.default_rng(1).random((500, 3, 16, 16), dtype=np.float32)
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    labels = [int(session.run(None, {"x": image[None]})[0].argmax()) for image in images]
    np.savez(searches.folder / "labelled.npz", x=images, label=labels)
    data = ("--data", searches.folder / "labelled.npz", "--objective", "size", "--target", "cpu")
    result = searches.winml("autoconfig", "-m", model, *data, "-o", "wrong")
    assert "the task of the model is unknown" in failed(result, 2)
    assert not (searches.folder / "wrong").exists()
    few = ("--task", "image-classification", "--samples", "20")
    assert "20 samples cannot show" in failed(searches.winml("autoconfig", "-m", model, *data, *few, "-o", "wrong"), 1)
    space = space_file(searches.folder, quantize__scheme=["fp16"])
    right = ("-m", model, *data, "--task", "image-classification", "--space", space, "-o", "wrong")
    first = searches.search(*right)
    assert len(first["trials"]) > 1
    assert "holds a search" in failed(searches.winml("autoconfig", *right), 2)
    (searches.folder / "wrong" / "notes.txt").write_text("mine")
    assert searches.search(*right, "--overwrite")["trials"][0]["seconds"] != first["trials"][0]["seconds"]
    assert (searches.folder / "wrong" / "notes.txt").read_text() == "mine"


def test_a_damaged_finding_is_named_with_its_field(searches: Searches, conv: tuple[Path, Path]) -> None:
    folder = searches.folder / "own" / "findings"
    folder.mkdir(parents=True)
    (folder / "cpu-900.json").write_text('{"schema": "winml/finding/1", "id": "cpu-900"}')
    result = searches.winml("autoconfig", "-m", conv[0], "--target", "cpu", "--knowledge", "own", "-o", "out")
    error = failed(result, 2)
    assert "cpu-900.json" in error
    assert "`title` is missing" in error


@pytest.mark.usefixtures("sample_search")  # the cache has the calibration of this model
def test_a_budget_too_small_for_one_verdict_says_how_much_is_needed(searches: Searches) -> None:
    space = space_file(searches.folder, quantize__scheme=["fp16"])
    result = searches.winml(
        "autoconfig", "--sample", "--target", "cpu", "--space", space, "--budget", "2s", "-o", "out"
    )
    words = failed(result, 1)
    assert "a budget of 2 s is too small for one verdict: about " in words
    again = re.search(r"resume with `winml (.+)`", words)
    assert again is not None
    assert again[1].startswith("autoconfig ")
    assert "--resume --budget" in again[1]
    assert [r["kind"] for r in searches.records("out")] == ["study", "preparation", "calibration", "trial"]


def test_a_search_where_every_config_fails_ends_with_a_summary(searches: Searches) -> None:
    graph = model_zoo.text_model("gelu (float[1,4] x) => (float[1,4] y) { y = Gelu(x) }")
    model = model_zoo.saved(graph, searches.folder / "gelu.onnx")
    space = space_file(searches.folder, optimize__opset=["17", "19"])
    result = searches.winml("autoconfig", "-m", model, *BY_SIZE, "--space", space, "-o", "out")
    error = failed(result, 1)
    assert "every config failed: h1 (optimize.opset=17): " in error
    assert "h2 (optimize.opset=19): " in error
    report = (searches.folder / "out" / "report.md").read_text(encoding="utf-8")
    assert "## Reasons" in report
    assert "| h1 | ✗ failed" in report


def test_an_interrupted_search_names_no_champion(searches: Searches, conv: tuple[Path, Path]) -> None:
    model, data = conv
    searches.forget_builds()
    space = space_file(searches.folder, quantize__scheme=["int8", "fp16", "w8a16"])
    args = ("-m", model, "--calibration", data, "--space", space, *BY_SIZE, "-o", "out")
    process = searches.start(*args)
    deadline = time.monotonic() + 400
    while sum(r["kind"] == "trial" for r in searches.records("out")) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    press_ctrl_c(process)
    assert process.wait(timeout=60) == 130
    value = valid((searches.folder / "out" / "autoconfig.json").read_text())
    assert (value["finished"], value["champion"]) == (False, None)
    assert "No champion: the search is not finished" in (searches.folder / "out" / "report.md").read_text(
        encoding="utf-8"
    )
    assert searches.search(*args, "--resume")["champion"]["status"] == "KEEP_CONFIRMED"


def test_a_build_folder_brings_its_session_section(searches: Searches, conv: tuple[Path, Path]) -> None:
    space = space_file(searches.folder, quantize__scheme=["fp16"])
    built = searches.winml("build", "-m", conv[0], "--target", "cpu", "--threads", "1", "-o", "built")
    assert built.returncode == 0, built.stderr
    searches.search("-m", "built", "--space", space, *BY_SIZE, "-o", "out")
    config = json.loads((searches.folder / "out" / "champion" / "build_config.json").read_text())
    assert config["session"]["threads"] == 1


def test_two_searches_in_one_folder_are_refused(searches: Searches, conv: tuple[Path, Path]) -> None:
    model, data = conv
    searches.forget_builds()
    space = space_file(searches.folder, quantize__scheme=["int8", "fp16"])
    args = ("-m", model, "--calibration", data, "--space", space, *BY_SIZE, "-o", "out")
    process = searches.start(*args)
    try:
        deadline = time.monotonic() + 300
        while not any(r["kind"] == "trial" for r in searches.records("out")) and time.monotonic() < deadline:
            time.sleep(0.02)
        psutil.Process(process.pid).suspend()  # it cannot end before the other one has asked
        assert "is in use by another process" in failed(searches.winml("autoconfig", *args, "--resume"), 3)
    finally:
        _kill(process)
    assert "holds a search" in failed(searches.winml("autoconfig", *args), 2)
    other = model_zoo.saved(model_zoo.conv_net(channels=8), searches.folder / "conv.onnx")
    refused = searches.winml("autoconfig", "-m", other, *args[2:], "--resume")
    assert "belongs to another search: model differ" in failed(refused, 2)
