"""Every command on terminals of 60, 80 and 120 columns: no line is longer, no word is broken.

WINML_TRANSCRIPTS=DIR writes what each command showed to DIR, for a person to read.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from cluster_zoo import ClusterHere
from e2e.program import QUICK
from e2e.terminal import Transcript, run_on_terminal, show_again
from winml.modelkit import sample
from winml.modelkit.cli import main
from winml.modelkit.render.screen import columns_of

pytestmark = pytest.mark.posix("Windows has no pseudo-terminals that a test could read without a console of its own")

WIDTHS = (60, 80, 120)
PERF = " ".join(QUICK)
QUICK_COMMANDS = (
    "inspect --sample",
    "inspect -m missing.onnx",
    "ep options qnn",
    "ep list",
    "catalog --family bert",
    "compile --list --target qnn/npu",
    "optimize --list",
    "kb list --target cpu",
    "kb show npu-006",
    "kb judge {tests}/knowledge/seed-sessions.json --model BAAI/bge-small-en-v1.5",
    "support knowledge list",
    "matrix plan --sample",
    "cache size",
    "cache list",
    "cache verify",
    "cache gc --dry-run",
    "export --sample -o model{columns}.onnx",
    "init --sample --target cpu --target qnn/npu -o project{columns} --yes",
    "support knowledge show bart-001",
    "support knowledge check",
    "support knowledge add missing.json",
    "kb promote npu-006 confirmed",
    "ep remove openvino",
    "node --list --cluster dask://127.0.0.1:1",
    "perf --sample --taget cpu",
    "dashboard missing",
    "report {tests}/goldens/before/search -o search.html",
)
"""Quick enough to run whenever tests run."""
COMMANDS = (
    "config --sample -p int8 -o config.json --overwrite",
    "kb check",
    "kb report -o findings.html --overwrite",
    "support inputs --sample -o inputs{columns}.npz",
    "skill check {root}/skills",
    "sys",
    "sys --list-device",
    "analyze --sample --target cpu -o analysis.json --overwrite",
    "analyze --sample --all --no-fusions",
    "optimize --sample -o basic.onnx --target cpu --overwrite",
    "quantize --sample -o int8.onnx --target cpu -p int8 --overwrite",
    "build --sample --target cpu -p int8 -o built --explain-cache --overwrite",
    f"perf -m built --target cpu {PERF} -o perf.json --overwrite",
    "perf --sample --target cpu --sessions 2 --iterations 40 --memory --monitor",
    "perf --sample --target cpu --op-tracing basic -o traced.json --overwrite",
    "perf --sample --target cpu --op-tracing detail --baseline traced_op_trace.json --top-k 10",
    "trace diff traced_op_trace.json traced_op_trace.json",
    "eval --sample --target cpu --samples 40",
    "run --sample --target cpu",
    "package copy-loader -o loader{columns}.py",
    "debug -m int8.onnx --reference {sample} --data {test} --samples 2 --target cpu",
    "eval -m int8.onnx --reference {sample} --data {test} --task image-classification --samples 40 --max-drop 0.5",
    "compare {sample} int8.onnx --target cpu --max-seconds 2 --no-calibration --normal-priority -o compare.json "
    "--overwrite",
    "compare {sample} {sample} --target cpu --max-seconds 1 --no-calibration --normal-priority",
    "matrix run --sample --targets cpu,dml --no-analyze --run-stamp s{columns} --feed folder:feed -o run{columns}",
    "matrix status run{columns}",
    "feed push built -m digits-again --run-stamp p{columns} --feed folder:feed",
    "feed verify -m digits --feed folder:feed",
    "feed list --feed folder:feed",
    "feed list -m digits --feed folder:feed",
    "feed pull -m digits --target cpu -o pulled{columns} --feed folder:feed --run-stamp s{columns}",
    "cache list",
    "autoconfig --sample --target cpu --objective size --max-discards 1 -o search{columns}",
    "autoconfig --sample --target cpu --budget 2m -o timed",
    "kb draft timed",
    "support produce --sample -p dynamic --goal L2 -o contribution{columns}",
    "support review contribution{columns} --sample",
    "support probe --sample --target cpu",
    "catalog",
)
"""The real short work of the others, in the order in which they need what was written."""
LONG = (
    "build",
    "quantize",
    "perf",
    "compare",
    "eval",
    "debug",
    "matrix run",
    "autoconfig --sample --target cpu --objective",
    "export",
    "compile",
    "support produce",
)
"""Those that show progress; it is drawn on a terminal of each width."""
NOT_HERE = {
    "completion": "prints a script",
    "ep install": "downloads",
    "kb replay": "measures for minutes; its text is that of `kb show` and `compare`",
    "package create": "needs evaluations with many samples; `docs/package.md` runs it",
    "package create-key": "its key differs from run to run",
    "package verify": "needs a package; `docs/package.md` runs it",
    "serve": "runs until it is stopped; `docs/run-and-serve.md` and `tests/serving` run it",
}
"""Sub-commands that no transcript shows, and why."""

COLUMN_NAMES = "took file digest reason smallest largest median cosine difference SQNR"
"""Words that name a column only where it has no room."""


def _words(text: str) -> set[str]:
    """The words of a text without what only a terminal shows."""
    return set(re.sub(r"[✓✗▁-▏]", "", text).split())


def _problems(command: str, folder: Path, number: int) -> list[str]:
    """What is wrong with what a command shows: on a narrow terminal, then the same on wider ones."""
    played = [_play(command, width, folder) for width in (WIDTHS if command.startswith(LONG) else WIDTHS[:1])]
    done, found = played[0], []
    for one in played:
        # 1: on a busy machine two minutes do not suffice for a verdict.
        found += [] if one.code in range(6) else [f"exit {one.code}"]
        found += [f"too long at {one.columns}: {line}" for line in one.too_long]
        _keep(one, number)
    for columns in WIDTHS:
        again = show_again(done, columns=columns, env=_environment(folder))
        found += [f"too long at {columns}: {line}" for line in again.too_long]
        found += [f"broken at {columns}: {word}" for word in _broken_words(again, columns)]
        if columns not in [one.columns for one in played]:
            _keep(again, number)
    return [f"{done.command}: {problem}" for problem in found]


def _broken_words(shown: Transcript, columns: int) -> list[str]:
    whole = _words("\n".join([*shown.plain, COLUMN_NAMES]))
    known = whole | _words("~ · - \\ not shown: (a wider terminal or --json shows it) them)")
    known |= {f"{word}{end}" for word in whole for end in ",:"}  # columns that are named in a line
    # A word wider than a line of its own, also an indented one, has to be broken; a node's name keeps its end.
    wide = [word for word in whole if columns_of(word) > columns - 12]
    unknown = sorted(_words("\n".join(shown.lines)) - known)
    return [word for word in unknown if not word.startswith("…") and not any(word in one for one in wide)]


def _keep(transcript: Transcript, number: int) -> None:
    folder = os.environ.get("WINML_TRANSCRIPTS")
    if folder is None:
        return
    name = re.sub(r"[^a-z0-9]+", "-", transcript.command.replace(str(sample.MODEL), "digits"))[:60].strip("-")
    file = Path(folder, str(transcript.columns), f"{number:02}-{name}.txt")
    file.parent.mkdir(parents=True, exist_ok=True)
    shown = "\n".join(transcript.lines).rstrip()
    file.write_text(f"$ winml {transcript.command}\n{shown}\n[exit {transcript.code}]\n", encoding="utf-8")


def _play(command: str, columns: int, folder: Path) -> Transcript:
    root = Path(__file__).parents[2]
    text = command.format(columns=columns, sample=sample.MODEL, test=sample.TEST, root=root, tests=root / "tests")
    return run_on_terminal(shlex.split(text), columns=columns, cwd=folder, env=_environment(folder))


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    own = {"WINML_CACHE": str(folder / "cache"), "WINML_KNOWLEDGE": str(folder / "own"), "TERM": "xterm-256color"}
    return kept | own


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("terminal")


@pytest.mark.parametrize("command", QUICK_COMMANDS)
def test_lines_fit_and_words_are_whole(command: str, folder: Path) -> None:
    assert _problems(command, folder, QUICK_COMMANDS.index(command)) == []


@pytest.mark.slow
def test_lines_fit_and_words_are_whole_in_commands_that_measure(folder: Path) -> None:
    problems = []
    for number, command in enumerate(COMMANDS, len(QUICK_COMMANDS)):
        problems += _problems(command, folder, number)
    assert problems == []


@pytest.mark.slow
@pytest.mark.qnn
@pytest.mark.hf
def test_lines_fit_and_words_are_whole_where_a_model_is_exported_and_compiled(folder: Path, hf_folders: Path) -> None:
    commands = (
        f"export -m {hf_folders}/bert -o exported{{columns}}",
        "build -m exported60 --target qnn/npu -p w8a16 --calibration random -o npu{columns}",
        "compile -m npu60 --target qnn/npu -o compiled{columns}.onnx",
    )
    assert [p for number, command in enumerate(commands, 80) for p in _problems(command, folder, number)] == []


@pytest.mark.slow
@pytest.mark.dask
def test_lines_fit_and_words_are_whole_where_nodes_are_listed(folder: Path, two_jobs_and_an_npu: ClusterHere) -> None:
    assert _problems(f"node --list --cluster {two_jobs_and_an_npu.cluster}", folder, 90) == []


def _names() -> Iterator[str]:
    """Every command and sub-command, by the words behind `winml`."""

    def below(path: str, command: click.Command) -> Iterator[str]:
        if isinstance(command, click.Group) and not command.invoke_without_command:
            for name, inner in command.commands.items():
                yield from below(f"{path} {name}", inner)
        else:
            yield path

    for name, (module, *_) in main.COMMANDS.items():
        yield from below(name, import_module(module).command)


def test_every_command_is_shown() -> None:
    shown = [*QUICK_COMMANDS, *COMMANDS, "compile"]
    missing = [name for name in _names() if not any(f"{one} ".startswith(f"{name} ") for one in shown)]
    assert sorted(missing) == sorted(NOT_HERE)
