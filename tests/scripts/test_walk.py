"""The walk over all architectures: tiny configs, the journal, what is called right, and the file of the catalog."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from winml.modelkit.store import journal

ROOT = Path(__file__).parents[2]
WALK = ROOT / "benchmarks" / "walk"
MODULES = ("shrink", "overrides", "tiny_models", "outcomes", "warm", "run", "summary", "record")


@pytest.fixture(scope="module")
def walk() -> Iterator[SimpleNamespace]:
    """The modules of the walk, which are no package: their names are free again afterwards."""
    before = {name: sys.modules.pop(name, None) for name in MODULES}
    path = list(sys.path)
    sys.path[:0] = [str(WALK), str(WALK.parent)]
    yield SimpleNamespace(**{name: __import__(name) for name in MODULES})
    sys.path[:] = path
    for name, module in before.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


@pytest.mark.parametrize(
    ("name", "value", "small"),
    [
        ("hidden_size", 768, 32),
        ("num_hidden_layers", 12, 2),
        ("num_attention_heads", [3, 6, 12], [2, 2, 2]),
        ("vocab_size", 30522, 256),
        ("type_vocab_size", 2, 2),
        ("image_size", 224, 32),
        ("depths", [2, 2, 18, 2], [1, 1, 1, 1]),
        ("stem_channels", [3, 32, 48], [3, 32, 32]),
        ("num_channels", 64, 64),
        ("layer_norm_eps", 1e-5, 1e-5),
        ("use_bias", True, True),
    ],
)
def test_the_name_of_an_attribute_says_how_small_it_becomes(
    walk: SimpleNamespace, name: str, value: Any, small: Any
) -> None:
    assert walk.shrink.shrink_value(name, value) == small


def test_a_token_beyond_the_small_vocabulary_has_one_new_id_in_all_parts(walk: SimpleNamespace) -> None:
    tokens = walk.shrink.Tokens()
    assert tokens.renumber([1, 151655], 256) == [1, 255]
    assert tokens.renumber(151656, 256) == 254
    assert tokens.renumber(151655, 256) == 255


@pytest.mark.hf
@pytest.mark.xdist_group("hf")
def test_folders_are_made_as_users_have_them(tmp_path: Path, walk: SimpleNamespace) -> None:
    names = ("dpt", "clap", "qwen3", "timm_backbone")
    done = subprocess.run(
        [sys.executable, WALK / "tiny_models.py", "-o", tmp_path, *names],
        capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    index = walk.tiny_models.read_index(tmp_path / walk.tiny_models.INDEX)
    assert {name: (row.model, row.state) for name, row in index.items()} == {
        "dpt": ("DPTForDepthEstimation", "ok"),
        "clap": ("ClapModel", "ok"),
        "qwen3": ("Qwen3ForCausalLM", "ok"),
        "timm_backbone": ("TimmBackbone", "failed"),
    }
    assert "timm" in index["timm_backbone"].reason
    assert all(0 < row.parameters < 1_000_000 for row in index.values() if row.state == "ok")
    assert json.loads((tmp_path / "dpt" / "config.json").read_bytes())["architectures"] == ["DPTForDepthEstimation"]
    size = json.loads((tmp_path / "dpt" / "preprocessor_config.json").read_bytes())["size"]
    assert size == {"height": 32, "width": 32}
    words = json.loads((tmp_path / "qwen3" / "tokenizer.json").read_bytes())["model"]["vocab"]
    assert max(words.values()) < json.loads((tmp_path / "qwen3" / "config.json").read_bytes())["vocab_size"]
    assert not (tmp_path / "timm_backbone").exists()


def folders(tmp_path: Path, walk: SimpleNamespace, names: tuple[str, ...]) -> Path:
    """Folders that `winml inspect` reads, and their index."""
    for name in names:
        (tmp_path / name).mkdir(parents=True)
        config = {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 32, "vocab_size": 99}
        (tmp_path / name / "config.json").write_text(json.dumps(config), encoding="utf-8")
    rows = {name: walk.tiny_models.Row(name, "BertModel", 1, "ok") for name in names}
    walk.tiny_models.write_index(tmp_path / walk.tiny_models.INDEX, rows)
    return tmp_path


def test_a_killed_walk_goes_on_and_runs_nothing_twice(tmp_path: Path, walk: SimpleNamespace) -> None:
    names = ("a", "b", "c", "d")
    models, work = folders(tmp_path / "models", walk, names), tmp_path / "work"
    words = [sys.executable, WALK / "run.py", models, "-o", work, "--steps", "inspect"]
    file = work / walk.run.JOURNAL
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as first:
        until = time.monotonic() + 120
        while not (steps := _steps(file)) and time.monotonic() < until and first.poll() is None:
            time.sleep(0.05)
        first.kill()
    assert steps
    before = [row["model"] for row in _steps(file)]
    # As a machine leaves it that lost its power in the middle of a line.
    with file.open("ab") as stream:
        stream.write(b'{"schema":"winml/journal/1","seq":9')
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert [row["model"] for row in _steps(file)] == list(names)
    assert len(done.stdout.splitlines()) == len(names) - len(before) + 1
    assert list(work.glob("*-*/stderr")) == []


def _steps(file: Path) -> list[dict[str, Any]]:
    return [row for row in journal.read(file).records if row["kind"] == "step"]


@pytest.mark.parametrize(
    ("words", "limit_s", "times"),
    [
        pytest.param("import time; time.sleep(600)", 0.5, 2.0, id="waits"),
        # The work is done by a process that the program started.
        pytest.param(
            "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])", 0.5, 1e6, id="works"
        ),
    ],
)
def test_a_program_that_is_not_done_in_time_is_ended(
    tmp_path: Path, walk: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, words: str, limit_s: float, times: float
) -> None:
    monkeypatch.setattr(walk.run, "WALL_TIMES", times)
    monkeypatch.setattr(walk.run, "LOOK_S", 0.1)
    ran = walk.run.run_program(
        [sys.executable, "-c", words], work=tmp_path, limit_s=limit_s, cache=tmp_path, stop=threading.Event()
    )
    assert ran.exit_code is None
    assert walk.outcomes.judge("cpu", ran).outcome == "timeout"


def test_a_program_that_waits_is_not_ended_by_its_limit_of_cpu_time(tmp_path: Path, walk: SimpleNamespace) -> None:
    ran = walk.run.run_program(
        [sys.executable, "-c", "import time; time.sleep(1.2)"],
        work=tmp_path, limit_s=1.0, cache=tmp_path, stop=threading.Event(),
    )  # fmt: skip
    assert ran.exit_code == 0


@pytest.mark.skipif(sys.platform != "linux", reason="programs that stay fork, which is for Linux")
def test_a_program_that_stays_answers_as_one_of_its_own_and_survives_what_it_runs(
    tmp_path: Path, walk: SimpleNamespace
) -> None:
    models = folders(tmp_path / "models", walk, ("a",))
    programs, stop = walk.run.WarmPrograms(tmp_path / "cache"), threading.Event()
    words = walk.run.command("inspect", models / "a", tmp_path)
    alone = walk.run.run_program(words, work=tmp_path, limit_s=120.0, cache=tmp_path / "cache", stop=stop)
    try:
        ran = [programs.run(words, work=tmp_path, limit_s=120.0, stop=stop) for _ in range(2)]
        missing = programs.run([*words[:4], "-m", "nowhere", "--json"], work=tmp_path, limit_s=120.0, stop=stop)
        late = programs.run(words, work=tmp_path, limit_s=0.0, stop=stop)
        after = programs.run(words, work=tmp_path, limit_s=120.0, stop=stop)
    finally:
        programs.end()
    assert [one.exit_code for one in (*ran, after)] == [alone.exit_code] * 3
    assert {one.stdout for one in (*ran, after)} == {alone.stdout}
    assert late.exit_code is None
    assert json.loads(missing.stdout)["ok"] is False


@pytest.mark.skipif(sys.platform != "linux", reason="programs that stay fork, which is for Linux")
def test_workers_of_a_program_that_stays_are_forked_and_answer_as_others(tmp_path: Path, walk: SimpleNamespace) -> None:
    model = ROOT / "src" / "winml" / "modelkit" / "sample" / "digits.onnx"
    programs, stop = walk.run.WarmPrograms(tmp_path / "cache"), threading.Event()
    words = walk.run.command("inspect", model, tmp_path)
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    alone = walk.run.run_program(words, work=tmp_path, limit_s=120.0, cache=tmp_path / "cache", stop=stop)
    try:
        refused = programs.run(walk.run.command("inspect", broken, tmp_path), work=tmp_path, limit_s=120.0, stop=stop)
        ran = programs.run(words, work=tmp_path, limit_s=120.0, stop=stop)
    finally:
        programs.end()
    assert refused.exit_code == 2
    assert "Traceback" not in refused.stderr
    assert (ran.exit_code, ran.stdout) == (0, alone.stdout)


def test_text_is_generated_last(walk: SimpleNamespace) -> None:
    row = walk.tiny_models.Row
    models = {"a": "AForCausalLM", "b": "BModel", "c": "CForConditionalGeneration", "d": "DForImageClassification"}
    index = {name: row(name, kind, 1, "ok") for name, kind in models.items()}
    assert walk.run.order_by_cost(index, index) == ["b", "d", "a", "c"]


def test_what_is_run_is_what_is_missing_or_asked_for_again(walk: SimpleNamespace) -> None:
    done = {
        ("a", "cpu"): {"outcome": "right"},
        ("b", "cpu"): {"outcome": "refused"},
        ("c", "cpu"): {"outcome": "wrong"},
    }
    steps = ["cpu", "npu"]

    def chosen(*again: str) -> dict[str, list[str]]:
        return dict(walk.run.choose(["a", "b", "c", "d"], steps, done, again))

    assert chosen() == {"a": ["npu"], "b": ["npu"], "c": ["npu"], "d": steps}
    assert chosen("refused")["b"] == steps
    assert chosen("refused")["c"] == ["npu"]
    assert chosen("failed") == {"a": ["npu"], "b": steps, "c": steps, "d": steps}
    assert chosen("a")["a"] == steps


def test_an_earlier_walk_counts_for_the_same_models_and_versions_alone(tmp_path: Path, walk: SimpleNamespace) -> None:
    row = walk.tiny_models.Row
    index = {
        "bert": row("bert", "BertModel", 5, "ok"),
        "dpt": row("dpt", "DPTModel", 6, "ok"),
        "vit": row("vit", "ViTModel", 7, "ok"),
    }
    right = {"outcome": "right", "reason": "", "seconds": 3.0, "cosine": 0.5}
    steps = {"inspect": {"outcome": "right", "reason": "", "seconds": 1.0}, "cpu": right}
    earlier = {
        "versions": {"transformers": "5", "winml-modelkit": "0.0"},
        "architectures": [
            {"name": "bert", "class": "BertModel", "parameters": 5, "task": "fill-mask", "steps": steps},
            {"name": "dpt", "class": "DPTModel", "parameters": 99, "task": None, "steps": steps},
            {"name": "vit", "class": "ViTModel", "parameters": 7, "task": None, "steps": {}},
        ],
    }
    file = tmp_path / "walk.json"
    file.write_text(json.dumps(earlier), encoding="utf-8")
    same = {"transformers": "5", "winml-modelkit": "9.9"}
    assert walk.run.earlier_steps(file, index, same) == {("bert", step): steps[step] for step in steps}
    assert walk.run.earlier_steps(file, index, {"transformers": "6"}) == {}
    assert walk.run.earlier_steps(tmp_path / "none.json", index, same) == {}

    said = {"outcome": "wrong", "reason": "off", "code": None, "facts": {"exit_code": 5}}
    records = [
        {"kind": "start", "versions": same},
        {"kind": "step", "model": "bert", "step": "npu", "seconds": 2.0, **said},
    ]
    found = {one["name"]: one for one in walk.summary.summarize(index, records, earlier)["architectures"]}
    assert found["bert"]["steps"] == {
        **steps,
        "npu": {"outcome": "wrong", "reason": "off", "seconds": 2.0, "exit_code": 5},
    }
    assert found["bert"]["task"] == "fill-mask"
    assert found["dpt"]["steps"] == found["vit"]["steps"] == {}
    other = [{"kind": "start", "versions": {"transformers": "6"}}, records[1]]
    found = {one["name"]: one for one in walk.summary.summarize(index, other, earlier)["architectures"]}
    assert list(found["bert"]["steps"]) == ["npu"]


def proof(**values: Any) -> dict[str, Any]:
    """The part of a build's result that is judged, as `winml build` writes it."""
    placed = {
        "requested": "QNNExecutionProvider",
        "nodes": {"QNNExecutionProvider": 854, "CPUExecutionProvider": 3},
        "cpu_ops": {"QuantizeLinear": 1, "DequantizeLinear": 1, "GatherND": 1},
        "by_setting": {"QuantizeLinear": 1, "DequantizeLinear": 1},
    }
    agreed = {"output": "logits", "cosine": 0.99986}
    said = {"status": "proven on target", "reason": None, "agreement": agreed, "limit": 0.95, "placement": placed}
    return {"proof": said | values, "artifact": {"bytes": 10}}


BUILT = {"ok": True, "precision": "w8a16", "simulated": True, "notes": []}
REFUSED = {
    "ok": False,
    "error": {"code": "invalid-model", "message": "architecture `dpt` is not supported", "hint": "h"},
}
MISSED = {
    "ok": False,
    "error": {"code": "check-failed", "message": "on qnn/npu `logits` has a cosine of 0.31"},
    "proof": {"agreement": {"output": "logits", "cosine": 0.31}},
}


@pytest.mark.parametrize(
    ("code", "said", "errors", "outcome", "reason"),
    [
        (0, BUILT | proof(), "", "right", ""),
        (0, BUILT | {"parts": [{"part": "encoder", **proof()}, {"part": "decoder", **proof()}]}, "", "right", ""),
        (0, BUILT | proof(status="not proven", reason="all outputs are zero"), "", "not proven", "outputs are zero"),
        (0, BUILT | proof(status="proven on cpu only (target not here)"), "", "not proven", "proven on cpu only"),
        (0, BUILT | proof(agreement={"output": "y", "cosine": 0.2}), "", "wrong", "with exit 0"),
        (2, REFUSED, "", "refused", "architecture `dpt` is not supported"),
        (1, REFUSED, "Traceback (most recent call last):\n  ...\nKeyError: 'x'\n", "crashed", "KeyError: 'x'"),
        (70, REFUSED, "", "crashed", "ended with 70"),
        (-11, None, "", "crashed", "ended with -11"),
        (0, None, "", "crashed", "no JSON"),
        (5, MISSED, "", "wrong", "cosine of 0.31"),
        (None, None, "", "timeout", "not done"),
    ],
)
def test_a_build_is_judged_by_its_exit_code_its_words_and_its_proof(
    walk: SimpleNamespace, code: int | None, said: Any, errors: str, outcome: str, reason: str
) -> None:
    text = "" if said is None else json.dumps(said)
    judged = walk.outcomes.judge("npu", walk.outcomes.Ran(exit_code=code, stdout=text, stderr=errors, seconds=3.0))
    assert judged.outcome == outcome
    assert reason in judged.reason
    # Every judgement can be written to the journal, which takes no NaN.
    assert journal.encode(0, {"facts": judged.facts})


def test_nodes_that_a_setting_leaves_on_the_cpu_are_not_counted(walk: SimpleNamespace) -> None:
    text = json.dumps(BUILT | proof())
    judged = walk.outcomes.judge("npu", walk.outcomes.Ran(exit_code=0, stdout=text, stderr="", seconds=1.0))
    assert judged.facts["left"] == {"GatherND": 1}
    assert judged.facts["cosine"] == 0.99986


def test_an_inspection_that_knows_no_way_to_export_is_a_refusal(walk: SimpleNamespace) -> None:
    said = {"ok": True, "architecture": "DPTForDepthEstimation", "inputs": [], "reason": "`dpt` is not supported"}
    ran = walk.outcomes.Ran(exit_code=0, stdout=json.dumps(said), stderr="", seconds=1.0)
    assert walk.outcomes.judge("inspect", ran).outcome == "refused"


def test_a_comparison_that_finds_a_difference_is_wrong_with_exit_0_and_one_that_fails_proves_nothing(
    walk: SimpleNamespace,
) -> None:
    def judged(code: int, said: str, errors: str = "") -> Any:
        return walk.outcomes.judge_check(
            walk.outcomes.Ran(exit_code=code, stdout=said, stderr=errors, seconds=1.0)
        ).outcome

    assert judged(0, '{"outcome": "wrong", "reason": "`y` is off", "facts": {"error": 0.5}}') == "wrong"
    assert judged(0, '{"outcome": "right", "reason": ""}') == "right"
    assert judged(1, "", "Traceback (most recent call last)\nRuntimeError: shapes") == "skipped"


def test_the_summary_counts_how_far_architectures_came(walk: SimpleNamespace) -> None:
    row = walk.tiny_models.Row
    index = {
        "dpt": row("dpt", "DPTModel", 5, "ok"),
        "sam": row("sam", "SamModel", 5, "ok, no forward", "needs points"),
        "vit": row("vit", "ViTModel", 5, "ok"),
        "part": row("part", "", 0, "no model", "transformers has no model class"),
        "timm": row("timm", "TimmModel", 0, "failed", "ImportError: timm"),
    }

    def step(model: str, name: str, outcome: str, **facts: Any) -> dict[str, Any]:
        said = {"outcome": outcome, "reason": "", "code": None, "facts": facts}
        return {"kind": "step", "model": model, "step": name, "seconds": 1.0, **said}

    records = [
        {"kind": "start", "versions": {"transformers": "5"}},
        step("dpt", "cpu", "refused", exit_code=2),
        step("dpt", "cpu", "right", cosine=1.0),
        step("dpt", "check", "wrong", error=0.5),
        step("dpt", "npu", "right", left={"GatherND": 1}),
        step("sam", "cpu", "refused", exit_code=2),
        step("vit", "cpu", "right"),
        step("vit", "npu", "wrong", exit_code=5),
    ]
    found = walk.summary.summarize(index, records)
    counts = {name: number for name, number in found["shares"]["all"].items() if number}
    assert counts == {
        "architectures": 5, "without a model class": 1, "not made tiny": 1, "walked": 3, "exported and right on cpu": 1,
        "placed and right on the NPU": 1, "compared with PyTorch by another program": 1, "refused for cpu": 1,
        "wrong, and said so": 1, "wrong with exit 0": 1,
    }  # fmt: skip
    assert found["shares"]["named"]["architectures"] == 2
    assert json.loads(walk.summary.text(found)) == found


def test_a_reason_has_no_folders_of_the_machine_that_walked(walk: SimpleNamespace) -> None:
    said = "cannot run `/home/me/cache/artifact/model.onnx`: 3/4 of `C:\\work\\x\\a.onnx`; try `-p fp16`"
    assert walk.summary._without_folders(said) == "cannot run `model.onnx`: 3/4 of `a.onnx`; try `-p fp16`"
