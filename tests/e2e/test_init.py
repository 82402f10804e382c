"""`winml init`: what it writes, and that what it wrote works."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from program import failed, valid, winml

from winml.modelkit import sample
from winml.modelkit.cli.command_check import wrong_command
from winml.modelkit.cli.init_questions import ask
from winml.modelkit.render.workflow import WorkflowJob, workflow_text

_STEP = re.compile(r"      - name: (.*)\n(?:        if: .*\n)?        run: \|\n((?:          .*\n)+)")


def _steps(workflow: str, job: str) -> dict[str, str]:
    """The scripts of a job by the names of their steps."""
    text = workflow.partition(f"\n  {job}:\n")[2]
    text = re.split(r"\n  [\w-]+:\n", text)[0]
    return {name: re.sub(r"(?m)^ {10}", "", script) for name, script in _STEP.findall(text)}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("init") / "my project"
    done = winml("init", "--sample", "--target", "cpu", "-p", "int8", "--yes", "-o", folder, "--json")
    value = valid(done.stdout)
    assert value["files"] == ["model.onnx", "calibration.npz", "test.npz", "winml-cpu.json", value["workflow"]]
    assert value["configs"] == [
        {"target": "cpu", "precision": "int8", "file": "winml-cpu.json", "build_folder": "built-cpu"}
    ]
    return folder


def test_the_configs_name_files_as_any_checkout_has_them(project: Path) -> None:
    config = json.loads((project / "winml-cpu.json").read_text(encoding="utf-8"))
    assert config["schema"] == "winml/build-config/1"
    assert (config["model"], config["target"]) == ("model.onnx", "cpu")
    assert config["quantize"]["calibration"]["source"] == "calibration.npz"


def test_the_commands_of_the_workflow_exist_and_its_build_works_where_the_project_was_moved_to(
    project: Path, tmp_path: Path
) -> None:
    moved = shutil.copytree(project, tmp_path / "elsewhere")
    steps = _steps((moved / ".github/workflows/winml.yml").read_text(encoding="utf-8"), "cpu")
    assert list(steps) == [
        "Install", "Build", "Check the accuracy", "Compare with the baseline", "Make this build the baseline"
    ]  # fmt: skip
    commands = [shlex.split(line) for script in steps.values() for line in script.splitlines() if "winml " in line]
    assert [words[1] for words in commands] == ["build", "eval", "compare"]
    assert [wrong_command(tuple(words[1:]), True) for words in commands] == [None] * 3
    done = winml(*commands[0][1:], "--no-analyze", "--no-prove", cwd=moved)
    assert done.returncode == 0, done.stderr
    assert (moved / "built-cpu" / "model.onnx").is_file()


@pytest.mark.slow
@pytest.mark.shell("bash")
@pytest.mark.posix("a runner's bash is started")
def test_the_steps_of_the_workflow_run_in_bash_as_on_a_runner(project: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(project, tmp_path / "elsewhere")
    steps = _steps((moved / ".github/workflows/winml.yml").read_text(encoding="utf-8"), "cpu")
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    assert steps.pop("Install") == "python -m pip install winml-modelkit==0.1.0\n"
    first = [_run_step(script, moved, env) for script in steps.values()]
    assert "there is no baseline yet" in first[2]
    assert valid((moved / "eval-cpu.json").read_text(encoding="utf-8"))["checks"][0]["answer"] == "within"
    assert "IDENTICAL" in _run_step(steps["Compare with the baseline"], moved, env)
    # A check that fails has to end the job.
    worse = steps["Check the accuracy"].replace("--max-drop 0.01 -o eval-cpu.json", "--min-metric 1")
    assert _code_of(worse, moved, env) == 5


def _code_of(script: str, folder: Path, env: dict[str, str]) -> int:
    return subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=folder, env=env).returncode


def _run_step(script: str, folder: Path, env: dict[str, str]) -> str:
    words = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_is_replaced_without_being_told(project: Path, tmp_path: Path) -> None:
    before = (project / "winml-cpu.json").read_bytes()
    assert "winml.yml` exists" in failed(winml("init", "--sample", "--yes", "-o", project), 2)
    (tmp_path / "model.onnx").write_bytes(b"mine")
    assert "model.onnx` exists" in failed(winml("init", "--sample", "--yes", "-o", tmp_path), 2)
    assert (tmp_path / "model.onnx").read_bytes() == b"mine"
    (tmp_path / "winml-cpu.json").write_text("{}")
    told = failed(winml("init", "-m", sample.MODEL, "--yes", "-o", tmp_path), 2)
    assert "winml-cpu.json` exists" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "winml-cpu.json"]
    assert (project / "winml-cpu.json").read_bytes() == before


def test_files_elsewhere_are_named_with_a_note_and_the_next_command_is_told(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    shutil.copy(sample.MODEL, tmp_path / "model.onnx")
    done = winml("init", "-m", tmp_path / "model.onnx", "--yes", "-o", tmp_path / "here")
    assert done.returncode == 0, done.stderr
    assert "is outside of" in done.stderr
    assert "next: winml build -c winml-cpu.json -o built-cpu" in done.stderr


def test_a_project_inside_of_a_repository_is_told_where_github_looks(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    done = winml("init", "--sample", "--yes", "-o", tmp_path / "inner")
    assert "GitHub reads workflows in the root of a repository only" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--yes"], 2, "give either `-m MODEL` or `--sample`"),
        (["--sample", "-m", "x.onnx", "--yes"], 2, "give either"),
        (["--sample", "--target", "nonsense", "--yes"], 2, "unknown execution provider `nonsense`"),
        (["--sample", "-p", "int9", "--yes"], 2, "unknown precision `int9`"),
        (["-m", "missing.onnx", "--yes"], 2, "model file not found"),
        (["-m", str(sample.MODEL), "-p", "int8", "--yes"], 2, "needs calibration data"),
        (["-m", str(sample.MODEL), "--data", "${{ x }}.npz", "--yes"], 2, "GitHub evaluates"),
    ],
)
def test_bad_requests_write_nothing(words: list[str], code: int, told: str, tmp_path: Path) -> None:
    assert told in failed(winml("init", *words, cwd=tmp_path), code)
    assert list(tmp_path.iterdir()) == []


def test_names_in_the_workflow_are_words_of_its_shell() -> None:
    hostile = "a b'$(touch pwned)\n- name: evil\x1b.onnx"
    job = WorkflowJob(
        name="cpu", target="cpu", runner="ubuntu-latest", packages=("winml-modelkit==0.1.0",), ep="dml",
        config="winml-cpu.json", build_folder="built-cpu", model=hostile, data=hostile, task=None, max_drop=0.01,
        min_agreement=0.9, fail_if_slower_pct=5.0, is_simulated=False,
    )  # fmt: skip
    text = workflow_text([job])
    assert "winml ep install dml" in text
    assert "\x1b" not in text
    plain = workflow_text([dataclasses.replace(job, model="m.onnx", data="t.npz")])
    assert text.count("\n") == plain.count("\n")
    script = _steps(text, "cpu")["Check the accuracy"]
    assert len(script.splitlines()) == 1
    if sys.platform != "win32":
        shown = subprocess.run(
            ["bash", "-c", f"winml() {{ printf '%s\\0' \"$@\"; }}\n{script}"], capture_output=True, check=True
        )
        words = shown.stdout.decode().split("\0")
        assert (words[words.index("--reference") + 1], words[words.index("--data") + 1]) == (hostile, hostile)


def test_a_simulated_target_is_checked_on_few_samples_and_not_timed() -> None:
    job = WorkflowJob(
        name="qnn-npu", target="qnn/npu", runner="ubuntu-latest", packages=(), ep=None, config="winml-qnn-npu.json",
        build_folder="built-qnn-npu", model="m.onnx", data="t.npz", task="image-classification", max_drop=0.01,
        min_agreement=0.95, fail_if_slower_pct=5.0, is_simulated=True,
    )  # fmt: skip
    text = workflow_text([job])
    assert "winml compare" not in text
    assert "--samples 20 --min-agreement 0.95" in text


NOTHING = {
    "model": None, "sample": False, "targets": (), "precision": None, "calibration": None, "data": None, "task": None,
    "max_drop": None,
}  # fmt: skip


def _typed(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    answers = iter(lines)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda prompt="": next(answers))


def test_questions_are_asked_again_until_an_answer_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("model.onnx", "samples.npz", "test.npz"):
        (tmp_path / name).touch()
    _typed(
        monkeypatch,
        "modle.onnx", "", "cpu, qnn/nonsense", "cpu,qnn/npu", "int9", "", "missing.npz", "samples.npz", "test.npz",
        "image-clasification", "image-classification", "2", "0.02",
    )  # fmt: skip
    assert ask(NOTHING) == {
        "model": "model.onnx", "sample": False, "targets": ("cpu", "qnn/npu"), "precision": "auto",
        "calibration": "samples.npz", "data": "test.npz", "task": "image-classification", "max_drop": 0.02,
    }  # fmt: skip
    told = capsys.readouterr()
    for reason in (
        "model file not found: `modle.onnx`", "unknown device `nonsense`", "unknown precision `int9`",
        "data not found: `missing.npz`", "did you mean `image-classification`?", "a drop must be from 0 to 1",
    ):  # fmt: skip
        assert reason in told.err
    assert told.out == ""


def test_what_is_given_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    _typed(monkeypatch)
    given = {**NOTHING, "sample": True, "targets": ("cpu",), "precision": "fp32", "max_drop": 0.0}
    assert ask(given) == given


def test_an_empty_folder_offers_the_sample_and_a_name_that_cannot_be_shown_is_not_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _typed(monkeypatch, "", "", "", "")
    assert ask(NOTHING)["sample"] is True
    if sys.platform != "win32":
        (tmp_path / "bad\x1b[2J.onnx").touch()
        _typed(monkeypatch, "", "", "", "")
        assert ask(NOTHING)["sample"] is True


@pytest.mark.posix("a pseudo-terminal is typed at")
def test_a_terminal_is_asked_and_the_answers_make_the_project(tmp_path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    os.write(ours, b"sample\ncpu\nfp32\n0.05\n")
    done = subprocess.run(
        [sys.executable, "-m", "winml.modelkit", "init"],
        cwd=tmp_path, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, timeout=120,
    )  # fmt: skip
    os.close(theirs)
    told = os.read(ours, 65536).decode()
    os.close(ours)
    assert done.returncode == 0, told
    assert "Largest accepted drop of the metric [0.01]" in told
    assert "--max-drop 0.05" in (tmp_path / ".github/workflows/winml.yml").read_text(encoding="utf-8")
    assert b"winml-cpu.json" in done.stdout
