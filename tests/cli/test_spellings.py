"""Other ways to write a request: earlier spellings, the model as the first argument, several targets, `--quiet`."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import click
import pytest

from winml.modelkit import sample
from winml.modelkit.cli import console, main
from winml.modelkit.cli.command_check import wrong_command
from winml.modelkit.cli.progress import EvalProgress
from winml.modelkit.evaluation.report import ModelOpened

DROPPED = "the next release drops the old form"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["winml"])
    shutil.copy(sample.MODEL, "model.onnx")
    shutil.copy(sample.CALIBRATION, "samples.npz")


EARLIER = {
    "matrix plan -m model.onnx --run-stamp s --data samples.npz": ("--data", "--calibration samples.npz"),
    "matrix status -o .": ("-o", "."),
    "matrix run --sample -o out --continue": ("--continue", "--resume"),
    "quantize -m missing.onnx -o q.onnx --no-compare": ("--no-compare", "--no-verify"),
    "compile -m missing.onnx -o c.onnx --no-validate": ("--no-validate", "--no-verify"),
    "compile -m missing.onnx -o c.onnx --no-cache": ("--no-cache", "--rebuild"),
    "compare missing.onnx --recalibrate": ("--recalibrate", "--rebuild"),
    "compare missing.onnx --no-priority": ("--no-priority", "--normal-priority"),
    "compare missing.onnx --min-cosine 0.5": ("--min-cosine", "--min-agreement 0.5"),
    "ep install nonsense --reinstall": ("--reinstall", "--rebuild"),
    "node --cluster nonsense --device cpu": ("--device", "--target cpu"),
}
"""Requests as they were written, the old word, and the end of the request as it is written now."""


def _answer(words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, object, str]:
    code = main.run([*words.split(), "--json"])
    printed = capsys.readouterr()
    return code, json.loads(printed.out), printed.err


@pytest.mark.parametrize("words", EARLIER)
def test_an_earlier_spelling_does_the_same_with_one_note(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    old, end = EARLIER[words]
    now = f"{words.partition(f' {old}')[0]} {end}"
    code, value, told = _answer(words, capsys)
    expected = _answer(now, capsys)
    assert (code, value) == expected[:2]
    notes = [line for line in told.splitlines() if DROPPED in line]
    assert len(notes) == 1
    assert notes[0].startswith(f"note: `{old}` is now written `")
    assert told.replace(notes[0] + "\n", "") == expected[2]
    assert wrong_command(tuple(now.split()), True) is None
    assert "is now written" in str(wrong_command(tuple(words.split()), True)), "docs and skills use the new spelling"


def test_an_earlier_key_of_a_list_is_noted_once(capsys: pytest.CaptureFixture[str]) -> None:
    text = "model.onnx data=samples.npz name=a\n./model.onnx data=samples.npz name=b task=t\n"
    Path("old.txt").write_text(text, encoding="utf-8")
    Path("new.txt").write_text(text.replace("data=", "calibration="), encoding="utf-8")
    code, value, told = _answer("matrix plan --models old.txt --run-stamp s --target qnn/npu", capsys)
    assert (code, value, "") == _answer("matrix plan --models new.txt --run-stamp s --target qnn/npu", capsys)
    assert told.splitlines() == [f"note: `old.txt`: the key `data=` is now written `calibration=`; {DROPPED}"]


@pytest.mark.parametrize("words", ["config -m model.onnx --target cpu", "matrix plan -m model.onnx --run-stamp s"])
def test_the_model_is_the_first_argument_or_an_option(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _answer(words.replace("-m ", ""), capsys) == _answer(words, capsys)


def test_several_models_are_several_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(sample.MODEL, "other.onnx")
    arguments = _answer("matrix plan model.onnx other.onnx --run-stamp s", capsys)
    assert arguments == _answer("matrix plan -m model.onnx -m other.onnx --run-stamp s", capsys)
    assert arguments[0] == 0


@pytest.mark.parametrize(
    ("words", "same"),
    [
        ("matrix plan --sample --run-stamp s --targets cpu,qnn/npu", "--target cpu --target qnn/npu"),
        ("matrix plan --sample --run-stamp s --targets mlas_cpu,qnn_npu", "--target cpu --target qnn/npu"),
        ("matrix plan --sample --run-stamp s --targets ov_gpu", "--target openvino/gpu"),
        ("config --sample --target MLAS_CPU", "--target cpu"),
        ("catalog --family bert --target mlas_cpu", "--target cpu"),
    ],
)
def test_targets_can_be_written_in_several_ways(words: str, same: str, capsys: pytest.CaptureFixture[str]) -> None:
    cut = words.index(" --target")
    first, second = _answer(words, capsys), _answer(f"{words[:cut]} {same}", capsys)
    assert first == second
    assert first[0] == 0


def test_an_analysis_of_several_targets_answers_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    _, value, _ = _answer("analyze model.onnx --target vitisai/npu --target dml --no-fusions", capsys)
    assert isinstance(value, dict)
    assert [one["target"] for one in value["targets"]] == ["vitisai/npu", "dml/gpu"]


def test_the_sample_can_be_exported(capsys: pytest.CaptureFixture[str]) -> None:
    code, value, _ = _answer("export --sample -o new.onnx", capsys)
    assert code == 0
    assert isinstance(value, dict)
    assert Path("new.onnx").read_bytes() == sample.MODEL.read_bytes()
    assert (value["path"], value["bytes"]) == (str(Path("new.onnx").absolute()), sample.MODEL.stat().st_size)
    assert main.run(["export", "--sample", "-o", "new.onnx"]) == 2
    assert "add `--overwrite`" in capsys.readouterr().err
    assert main.run(["export", "--sample", "-o", "new.onnx", "--overwrite"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("wrote ")
    assert printed.err == "next: winml perf -m new.onnx\n"
    assert main.run(["export", "--sample", "-o", "new"]) == 2
    assert "must end in .onnx" in capsys.readouterr().err


QUIET = {
    "export --sample -o new.onnx --overwrite": "next: winml perf",
    "matrix plan --sample --run-stamp s --data samples.npz": "note: `--data`",
}
"""Commands, and the beginning of what they tell besides their result."""


@pytest.mark.parametrize("words", QUIET)
@pytest.mark.parametrize("quiet", ["-q", "--quiet"])
def test_quiet_hides_notes_and_next_commands(words: str, quiet: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(words.split()) == 0
    loud = capsys.readouterr()
    assert QUIET[words] in loud.err
    assert main.run([*words.split(), quiet]) == 0
    silent = capsys.readouterr()
    assert (silent.out, silent.err) == (loud.out, "")


def test_quiet_keeps_errors_and_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["inspect", "-m", "modle.onnx", "-q"]) == 2
    assert capsys.readouterr().err == "error: model file not found: `modle.onnx`\nhint: did you mean `model.onnx`?\n"
    console.set_quiet(True)
    console.say("warning", "hot")
    console.say("note", "cold")
    assert capsys.readouterr().err == "warning: hot\n"
    assert main.run(["export", "--sample", "-o", "new.onnx"]) == 0
    assert "next: " in capsys.readouterr().err, "it holds for one command"


def test_quiet_hides_progress_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "is_terminal", lambda stream: True)
    for quiet in (False, True):
        console.set_quiet(quiet)
        with EvalProgress() as progress:
            progress.on_event(ModelOpened(total=7))
        assert ("sample 0 of 7" in capsys.readouterr().err) is not quiet
    console.set_quiet(False)


@pytest.mark.parametrize("word", ["-V", "--version"])
def test_the_version_has_a_short_option(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([word]) == 0
    assert capsys.readouterr().out.startswith("winml ")


def test_a_value_that_looks_like_an_earlier_option_is_a_value() -> None:
    @click.command()
    def command() -> None:
        pass

    from winml.modelkit.cli.build_options import calibration_options

    with calibration_options(command).make_context("made up", ["--processor", "--data"]) as context:
        assert (context.params["processor"], context.params["calibration"]) == ("--data", None)
