"""Bad input of every command: what was misspelt gets the nearest name, what contradicts itself names both options."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from winml.modelkit import sample
from winml.modelkit.cli import main
from winml.modelkit.cli.spellings import EarlierOption


def _list_commands(words: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from _list_commands((*words, name), inner)


COMMANDS = {
    words: command
    for name, row in main.COMMANDS.items()
    for words, command in _list_commands((name,), import_module(row[0]).command)
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["winml"])
    monkeypatch.delenv("WINML_FEED", raising=False)


def refuse(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    """Run a wrong request: exit 2 with one error as text and as JSON; returns its message and its hint."""
    code = main.run([*words, "--json"])
    printed = capsys.readouterr()
    error = json.loads(printed.out)["error"]
    assert (code, error["exit"]) == (2, 2), printed.err
    assert printed.err.count("error: ") == 1
    assert "Traceback" not in printed.err
    return error["message"], error["hint"] or ""


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_misspelt_command_is_answered_with_the_nearest(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    message, hint = refuse(capsys, *words[:-1], words[-1] + words[-1][-1])
    assert words[-1] + words[-1][-1] in message
    assert f"did you mean `{words[-1]}`?" in hint


@pytest.mark.parametrize(
    "words", [words for words, command in COMMANDS.items() if not isinstance(command, click.Group)], ids=" ".join
)
def test_a_misspelt_option_or_choice_is_answered_with_the_nearest(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    for option in COMMANDS[words].params:
        if not isinstance(option, click.Option):
            continue
        for name in (one for one in (*option.opts, *option.secondary_opts) if one.startswith("--")):
            message, hint = refuse(capsys, *words, name + name[-1])
            assert name + name[-1] in message
            now = option.now if isinstance(option, EarlierOption) else name
            assert f"did you mean `{now}`? `winml {' '.join(words)} --help` shows the options" == hint
        for choice in getattr(option.type, "choices", ()):
            message, hint = refuse(capsys, *words, option.opts[-1], f"{choice}x")
            assert option.opts[-1] in message
            assert hint.startswith(f"did you mean `{choice}`?")


def test_one_dash_instead_of_two_is_understood(capsys: pytest.CaptureFixture[str]) -> None:
    assert refuse(capsys, "perf", "-iterations", "3")[1].startswith("did you mean `--iterations`?")


def test_an_option_of_the_program_is_answered_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert refuse(capsys, "--versoin") == (
        "unknown option `--versoin`",
        "did you mean `--version`? known: `--help`, `--help-all`, `--version`",
    )


VALUES = {
    "perf --sample --target qnnn/npu": "qnn",
    "perf --sample --target qnn/npuu": "npu",
    "perf --sample --ep opnvino": "openvino",
    "perf --sample --device gpuu": "gpu",
    "compare model.onnx model.onnx --targets cpu,qnnn": "qnn",
    "build --sample --target cpu -p in8 -o out": "int8",
    "build --sample --target cpu --level extnded -o out": "extended",
    "build --sample --target cpu --enable gelu_fusio -o out": "gelu_fusion",
    "config --sample --target cpu -p fp61": "fp16",
    "optimize --sample --level extnded -o o.onnx": "extended",
    "optimize --sample --disable gelu_fusio -o o.onnx": "gelu_fusion",
    "autoconfig --sample --target cpuu -o out": "cpu",
    "compile --sample --target cpu --compiler qart -o c.onnx": "qairt",
    "catalog --family bertt": "bert",
    "catalog --task object-detecton": "object-detection",
    "ep options opnvino": "openvino",
    "ep install opnvino": "openvino",
    "ep remove opnvino": "openvino",
    "kb list --status confirmd": "confirmed",
    "kb show npu-0066": "npu-006",
    "kb promote npu-006 confirmd": "confirmed",
    "support knowledge list --family baart": "bart",
    "support knowledge show bart-01": "bart-001",
    "support produce --sample --recipe text-encodr-w8a16 -o out": "text-encoder-w8a16",
    "support produce --sample -p int88 -o out": "int8",
    "matrix plan --sample --target qnnn/npu": "qnn",
    "node --cluster dask://127.0.0.1:9 --no-tls --target qnnn": "qnn",
}
"""Values that are not a choice of click's, and the name that is proposed."""


def _needs(words: str) -> list[pytest.MarkDecorator]:
    marks = {"node --": pytest.mark.dask, "compile -m": pytest.mark.qnn}
    return [mark for start, mark in marks.items() if words.startswith(start)]


@pytest.mark.parametrize("words", [pytest.param(words, marks=_needs(words)) for words in VALUES])
def test_a_misspelt_value_is_answered_with_the_nearest(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(sample.MODEL, "model.onnx")
    _, hint = refuse(capsys, *words.split())
    assert f"did you mean `{VALUES[words]}`?" in hint


FILES = {
    "inspect -m modle.onnx": "model.onnx",
    "inspect model.onx": "model.onnx",
    "inspect -m foldr/model.onnx": "folder/model.onnx",
    "analyze -m modle.onnx --target cpu": "model.onnx",
    "perf modle.onnx --target cpu": "model.onnx",
    "perf -m model.onnx --target cpu --input-data sampels.npz": "samples.npz",
    "perf -m model.onnx --target cpu --op-tracing basic --baseline perf_op_trce.json": "perf_op_trace.json",
    "eval -m modle.onnx --data random --target cpu": "model.onnx",
    "eval -m model.onnx --data sampels.npz --task image-classification --target cpu": "samples.npz",
    "compare modle.onnx model.onnx": "model.onnx",
    "compare model.onnx modle.onnx": "model.onnx",
    "compare --from comparison.jsn": "comparison.json",
    "config -m modle.onnx --target cpu": "model.onnx",
    "config -m model.onnx --target cpu -p int8 --calibration sampels.npz": "samples.npz",
    "build -c confg.json -o out": "config.json",
    "build -m modle.onnx --target cpu -o out": "model.onnx",
    "config -m model.onnx --target cpu --input-specs specs.jso": "specs.json",
    "export -m ./modle.onnx -o out": "model.onnx",
    "optimize -m modle.onnx -o out.onnx": "model.onnx",
    "quantize -m modle.onnx -p dynamic -o out.onnx": "model.onnx",
    "compile -m modle.onnx --target qnn/npu -o out.onnx": "model.onnx",
    "compile -m model.onnx --target qnn/npu -o out.onnx -c confg.json": "config.json",
    "autoconfig -m modle.onnx --target cpu -o out": "model.onnx",
    "autoconfig -m model.onnx --target cpu --space spce.json -o out": "space.json",
    "autoconfig -m model.onnx --target cpu --knowledge foldr -o out": "folder",
    "autoconfig -m model.onnx --target cpu --reuse serch -o out": "search",
    "autoconfig --models lst.txt --target cpu -o out": "list.txt",
    "matrix plan -m ./modle.onnx": "model.onnx",
    "matrix plan --models lst.txt": "list.txt",
    "matrix status serch": "search",
    "feed push foldr --feed folder:feed -m a": "folder",
    "optimize --sample -o foldr/out.onnx": "folder",
    "analyze --sample --target cpu -o foldr/out.json": "folder",
    "autoconfig --sample --target cpu -o foldr/out": "folder",
    "matrix run --sample --target cpu -o foldr/out": "folder",
    "support produce --sample -o foldr/out": "folder",
    "kb judge comparison.jsn": "comparison.json",
    "kb draft comparison.jsn": "comparison.json",
    "kb list --knowledge foldr": "folder",
    "support probe -m modle.onnx": "model.onnx",
    "support produce -m modle.onnx -o out": "model.onnx",
    "support produce --sample --data sampels.npz -o out": "samples.npz",
    "support produce --sample --recipe ./spces.json -o out": "specs.json",
    "support review foldr": "folder",
    "support inputs -m modle.onnx -o out.npz": "model.onnx",
    "support knowledge add specs.jso": "specs.json",
    "skill check foldr": "folder",
    "trace diff perf_op_trce.json perf_op_trace.json": "perf_op_trace.json",
    "node --list --cluster dask://127.0.0.1:9 --tls-ca ca.pm --tls-cert me.pem --tls-key me.key": "ca.pem",
}
"""Files and folders that are misspelt, and the ones that are there."""


@pytest.mark.parametrize("words", [pytest.param(words, marks=_needs(words)) for words in FILES])
def test_a_misspelt_file_is_answered_with_the_nearest_in_its_folder(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("folder", "search"):
        Path(name).mkdir()
    for name in ("model.onnx", "folder/model.onnx"):
        shutil.copy(sample.MODEL, name)
    shutil.copy(sample.CALIBRATION, "samples.npz")
    for name in ("perf_op_trace.json", "comparison.json", "config.json", "space.json", "specs.json", "list.txt",
                 "ca.pem", "me.pem", "me.key"):  # fmt: skip
        Path(name).touch()
    _, hint = refuse(capsys, *words.split())
    assert hint.startswith("did you mean `")
    assert Path(hint.removeprefix("did you mean `").removesuffix("`?")).samefile(FILES[words])


CONFLICTS = {
    "perf -m model.onnx --sample": ("-m model.onnx", "--sample"),
    "perf model.onnx -m other.onnx": ("-m other.onnx", "model.onnx"),
    "perf -m model.onnx -m other.onnx": ("model.onnx", "other.onnx"),
    "perf --sample --target cpu --target qnn/npu": ("cpu", "qnn/npu"),
    "perf --sample --target cpu --ep qnn": ("--target", "--ep"),
    "perf --sample --target cpu --device npu": ("--target", "--device"),
    "perf --sample --iterations 3 --duration 2": ("--iterations", "--duration"),
    "perf --sample --input-data a.npz --dim x=1": ("--input-data", "--dim"),
    "compare a.onnx b.onnx --target cpu --targets cpu,qnn/npu": ("--target", "--targets"),
    "compare a.onnx --target cpu --target mlas_cpu": ("mlas_cpu", "twice"),
    "compare a.onnx --sample -m b.onnx": ("--sample", "-m b.onnx"),
    "compare a.onnx b.onnx --target cpu --ep qnn": ("--target", "--ep"),
    "compare a.onnx --from b.json": ("--from", "models"),
    "compare --from b.json --target cpu": ("--from", "--target"),
    "analyze --sample --all --target cpu": ("--all", "--target"),
    "analyze --sample --target cpu --device npu": ("--target", "--device"),
    "build --sample -c config.json -o out": ("--sample", "--config"),
    "build -c config.json -p int8 -o out": ("--precision", "--config"),
    "build -c config.json --data a.npz -o out": ("--calibration", "--config"),
    "build --sample -o out --use-cache": ("-o DIR", "--use-cache"),
    "build --sample --no-quant -p int8 -o out": ("--no-quant", "--precision"),
    "config --sample --no-optimize --enable gelu_fusion": ("--no-optimize", "--enable"),
    "config --sample --calibration a.npz --data b.npz": ("--calibration", "--data"),
    "quantize -m model.onnx -m other.onnx -p dynamic -o q.onnx": ("model.onnx", "other.onnx"),
    "compile -m a.onnx -m b.onnx -o out.onnx --target qnn/npu": ("-o", "several models"),
    "compile -m a.onnx -o out.onnx --output-dir out --target qnn/npu": ("-o FILE", "--output-dir DIR"),
    "compile a.onnx -m b.onnx -o out.onnx": ("-m b.onnx", "a.onnx"),
    "compile a.onnx --sample -o out.onnx": ("--sample", "-m a.onnx"),
    "compile --sample -o out.onnx --rebuild --no-cache": ("--rebuild", "--no-cache"),
    "export --sample -m org/name -o out": ("--sample", "-m org/name"),
    "export --sample -o out.onnx --opset 18": ("--sample", "--opset"),
    "export --sample -o out.onnx --task fill-mask": ("--sample", "--task"),
    "autoconfig --sample -o out --resume --overwrite": ("--resume", "--overwrite"),
    "autoconfig --models list.txt -m a.onnx -o out": ("--models", "-m"),
    "autoconfig --sample -o out --preset cpu --space space.json": ("--preset", "--space"),
    "autoconfig --sample -o out --only h1": ("--only", "--preset"),
    "autoconfig --sample -o out --target cpu --ep qnn": ("--target", "--ep"),
    "autoconfig --sample -o out --staging folder:x": ("--staging", "--cluster"),
    "matrix plan --sample -m a.onnx": ("-m", "--sample"),
    "matrix plan --sample --models list.txt": ("--models", "--sample"),
    "matrix plan a.onnx -m b.onnx": ("-m b.onnx", "a.onnx"),
    "matrix plan --sample --target cpu --ep qnn": ("--target", "--ep"),
    "matrix run --sample -o out --trust-journal": ("--trust-journal", "--resume"),
    "matrix run --sample -o out --resume --continue": ("--resume", "--continue"),
    "matrix run --sample -o out --jobs 2 --cluster dask://127.0.0.1:9 --no-tls": ("--jobs", "--cluster"),
    "matrix run --sample -o out --tls-ca a.pem": ("--tls-ca", "--tls-cert"),
    "matrix status a -o b": ("-o", "winml matrix status DIR"),
    "node --cluster dask://127.0.0.1:9 --no-tls --scheduler --list": ("--scheduler", "--list"),
    "node --cluster dask://127.0.0.1:9 --no-tls --list --name a": ("--name", "--list"),
    "feed list a -m b --feed folder:x": ("-m b", "a"),
    "support produce a.onnx --sample -o out": ("--sample", "-m a.onnx"),
    "support review out -m a.onnx --sample": ("--sample", "-m a.onnx"),
    "support probe --sample --target cpu --targets cpu,qnn/npu": ("--target", "--targets"),
}
"""Requests that contradict themselves, and the two things that the error names."""


@pytest.mark.parametrize("words", [pytest.param(words, marks=_needs(words)) for words in CONFLICTS])
def test_options_that_contradict_each_other_are_both_named(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    message, hint = refuse(capsys, *words.split())
    for named in CONFLICTS[words]:
        assert named in f"{message} {hint}"
    assert [path.name for path in Path.cwd().iterdir()] == []
