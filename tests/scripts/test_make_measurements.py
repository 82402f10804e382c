"""The page of measurements says what the results files hold."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "measurements.md"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", list(sys.path))  # the script adds the folder of the benchmarks
    spec = importlib.util.spec_from_file_location("make_measurements", ROOT / "scripts" / "make_measurements.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_number_on_the_page_is_that_of_its_results_file(script: ModuleType) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == script.make_page(page), "run `python scripts/make_measurements.py` and read the difference"


def test_every_results_file_is_named_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    folder = ROOT / "benchmarks"
    files = [*folder.glob("results/*.json"), *folder.glob("*/*.jsonl"), *folder.glob("*/results/*.jsonl")]
    # A policy that is compared with in docs/measuring.md.
    names = {path.relative_to(ROOT).as_posix() for path in files} - {"benchmarks/verdicts/results/seed.jsonl"}
    assert names
    assert sorted(name for name in names if f"(../{name})" not in page) == []


def test_a_table_shows_median_spread_and_count_of_the_values_and_on_what(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "BENCHMARKS", tmp_path / "benchmarks")
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    written = {
        "command": "python benchmarks/one.py --pairs 3",
        "machine": {"processor": "Processor (avx2)", "cores": 2, "system": "Linux", "python": "3.11.7"},
        "versions": {"onnxruntime": "1.31.1"},
        "conditions": {"load": 3.5, "device": "simulated"},
        "rows": [{"name": "ours / theirs", "values": [1.5, 0.5, 1.25]}, {"name": "bytes", "values": [4096]}],
    }
    (tmp_path / "benchmarks" / "results" / "one.json").write_text(json.dumps(written), encoding="utf-8")

    assert script.make_page("before\n<!-- table: one -->\nold\n<!-- end -->\nafter\n") == (
        "before\n"
        "<!-- table: one -->\n"
        "| what | median | spread | n |\n"
        "| --- | --- | --- | --- |\n"
        "| ours / theirs | 1.25 | 0.50 … 1.50 | 3 |\n"
        "| bytes | 4096 |  | 1 |\n"
        "\n"
        "2 cores of Processor (avx2), Linux, Python 3.11.7; onnxruntime 1.31.1; load 3.5 on 2 cores; "
        "the NPU is simulated. Again: `python benchmarks/one.py --pairs 3`. "
        "Values: [`benchmarks/results/one.json`](../benchmarks/results/one.json).\n"
        "<!-- end -->\n"
        "after\n"
    )


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0793, "0.0793"), (2.279, "2.28"), (24.96, "24.96"), (490, "490"), (153.4, "153"), (0, "0")]
)
def test_a_number_keeps_the_digits_that_count(script: ModuleType, value: float, shown: str) -> None:
    assert script.figure(value) == shown
