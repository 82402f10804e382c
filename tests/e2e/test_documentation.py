"""Every command that the docs show in a `sh` block is run, on the sample.

README has test_readme.py. Pages that are read from the first to the last block are run so (scripts/run_pages.py), by
tests/docs/test_pages.py.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import onnx
import pytest
from pages import read_page
from program import winml, winml_process
from test_environments import CACHE, installed

from winml.modelkit import sample
from winml.modelkit.core.op_trace import OperatorMetrics, OpTraceResult, TraceMetadata
from winml.modelkit.feed.content import scan
from winml.modelkit.feed.names import version
from winml.modelkit.feed.table import open_feed

ROOT = Path(__file__).parents[2]
PATHS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in map(read_page, PATHS) if page.kind is None]


def _commands() -> list[str]:
    found = []
    for page in PAGES[1:]:  # what the README shows is run in its order
        for block in page.texts("sh"):
            found += [line.partition("#")[0].strip() for line in block.splitlines()]
    return list(dict.fromkeys(c for c in found if c.startswith("winml ")))


def at_batch(size: int, path: Path) -> None:
    """The sample for one batch size, as an NPU needs it."""
    model = onnx.load(sample.MODEL)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = size
    path.write_bytes(model.SerializeToString())


def _options(command: str) -> frozenset[tuple[str, ...]]:
    """A command and its options with their values, unless those name a model or an output."""
    words = shlex.split(command, comments=True)[1:]
    starts = [index for index, word in enumerate(words) if word.startswith("-")]
    groups = [tuple(words[a:b]) for a, b in itertools.pairwise([0, *starts, len(words)])]
    return frozenset(group[:1] if group[:1] in (("-m",), ("-o",)) else group for group in groups)


@functools.cache
def _run_elsewhere() -> frozenset[str]:
    """Commands that show nothing new: the README, or a line before, has the same options with the same values."""
    lines = [line.strip() for block in PAGES[0].texts("sh") for line in block.splitlines() if "openvino" not in line]
    seen = {_options(line) for line in lines if line.startswith("winml ")}
    found = []
    for command in _commands():
        if _options(command) in seen:
            found.append(command)
        seen.add(_options(command))
    return frozenset(found)


def _marks(command: str) -> list[pytest.MarkDecorator]:
    if command in _run_elsewhere():
        return [pytest.mark.slow, *_needs(command)]
    return _needs(command)


def _needs(command: str) -> list[pytest.MarkDecorator]:
    if "openvino" in command:
        return [pytest.mark.package_index, pytest.mark.xdist_group("environments"), pytest.mark.timeout(900)]
    if command.startswith("winml feed"):
        return []
    return [pytest.mark.qnn] if "qnn" in command or "npu" in command else []


def _traces(folder: Path) -> None:
    """The two traces that the docs compare."""
    metadata = TraceMetadata("cpu", "cpu", "basic", "onnxruntime profiler", num_samples=1)
    for name, us in (("before", 5.0), ("after", 9.0)):
        operators = (OperatorMetrics("conv", "CPUExecutionProvider", "us", (us,), onnx_nodes=("conv",), origin="node"),)
        value = OpTraceResult(metadata, operators=operators).to_dict()
        (folder / f"{name}_op_trace.json").write_text(json.dumps(value))


def _feed(folder: Path) -> None:
    """The feed that the docs list, pull from and verify."""
    with closing(open_feed(f"folder:{folder / 'artifacts'}")) as feed:
        tree = scan(folder / "new")
        for ep, device in (("qnn", "npu"), ("cpu", "cpu")):
            feed.publish("digits", version("20260609", "digits", ep=ep, device=device), tree, lambda _: None)


@pytest.mark.parametrize("command", [pytest.param(c, marks=_marks(c)) for c in _commands()])
def test_a_command_in_the_docs_works(command: str, tmp_path: Path) -> None:
    shutil.copy(sample.MODEL, tmp_path / "model.onnx")
    for name in ("other.onnx", "old/model.onnx", "new/model.onnx"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(sample.MODEL, tmp_path / name)
    shutil.copy(sample.CALIBRATION, tmp_path / "samples.npz")
    for name, size in (("small.onnx", 1), ("large.onnx", 2)):
        at_batch(size, tmp_path / name)
    _traces(tmp_path)
    _feed(tmp_path)
    space = {"schema": "winml/space/1", "knobs": {"quantize.scheme": ["int8", "fp16"]}}
    (tmp_path / "space.json").write_text(json.dumps(space))
    words = shlex.split(command)[1:]
    if "openvino" in words[-1] and words[:2] != ["ep", "install"]:
        installed("openvino")
    first = command in _first_ones()
    words += [] if first and words[0] in ("perf", "compare") else _shortened(words)
    run = winml_process if first else winml
    result = run(*words, cwd=tmp_path, env={**os.environ, "WINML_CACHE": str(CACHE)})
    assert result.returncode == 0, result.stderr


def _first_ones() -> set[str]:
    """One command line for every command, which is started as a user starts it."""
    by_name = {command.split()[1]: command for command in reversed(_commands()) if command not in _run_elsewhere()}
    return set(by_name.values())


SHORTENED = {
    "perf": ("--sessions", "1", "--iterations", "5"),
    "compare": ("--max-seconds", "5", "--no-calibration"),  # test_compare.py calibrates
    "autoconfig": ("--space", "space.json"),  # of the whole space it takes minutes; test_autoconfig.py goes further
    "ep install": ("--help",),  # what the docs install is installed already; here it only has to be understood
}


def _shortened(words: list[str]) -> tuple[str, ...]:
    """Options that make a command take less time, unless the docs say something else about them."""
    added = SHORTENED.get(" ".join(words[:2])) or SHORTENED.get(words[0], ())
    if "--fail-if-slower" in words:
        # It ends when the answer is clear; without one, which takes longer on a busy machine, a gate fails.
        added = ("--max-seconds", "120", "--no-calibration")
    return () if set(added).intersection(words) else added


def _shorten_script(script: str) -> str:
    """A script that takes seconds: without the A/A rounds, which take most of a first comparison."""
    return script.replace("max_seconds=5", "max_seconds=1, calibrate=False")


def _scripts() -> list[tuple[str, str]]:
    """Every `python` block of the docs, with the page it is on; `tests/api` runs those of api.md in one process."""
    return [
        (page.path.name, _shorten_script(block))
        for page in PAGES
        if page.path.name != "api.md"
        for block in page.texts("python")
    ]


@pytest.mark.parametrize(
    ("page", "script"),
    [pytest.param(page, script, marks=_needs(script), id=page) for page, script in _scripts()],
)
def test_a_script_in_the_docs_works(page: str, script: str, tmp_path: Path) -> None:
    shutil.copy(sample.MODEL, tmp_path / "model.onnx")
    for name, size in (("prefill.onnx", 2), ("decode.onnx", 1)):
        at_batch(size, tmp_path / name)
    # On Windows a script writes to a pipe in the code page of its user, whatever that is.
    env = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", timeout=540,
        env=env,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()


def test_the_docs_show_commands() -> None:
    assert len(_commands()) >= 8


def test_links_to_files_of_the_repository_lead_somewhere() -> None:
    for path in PATHS:
        for name in re.findall(r"`((?:docs|src|tests|benchmarks|scripts)/[\w./-]+)`", path.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{path.name} names {name}"
