"""Default data of tasks, from a cache that is laid out as the hub's; nothing is fetched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import task_cases
from task_zoo import Case
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError, UnavailableError
from winml.modelkit.core.measurement import Arm, SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.tasks import TASKS as CORE_TASKS
from winml.modelkit.core.values import read, to_json
from winml.modelkit.data.dataset import open_dataset
from winml.modelkit.data.defaults import DEFAULTS, MAIN
from winml.modelkit.evaluation.all_tasks import TASKS
from winml.modelkit.evaluation.report import RunArguments, RunReport
from winml.modelkit.session.arm import arm_arguments
from winml.modelkit.worker.client import Worker

COMMIT = "0123456789abcdef0123456789abcdef01234567"
pytestmark = pytest.mark.hf


def cached(home: Path, repo: str, files: dict[str, str], commit: str = COMMIT) -> None:
    """Files of a data set as the hub's cache has them."""
    folder = home / "hub" / f"datasets--{repo.replace('/', '--')}"
    for name, content in files.items():
        path = folder / "snapshots" / commit / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    (folder / "refs").mkdir(exist_ok=True)
    (folder / "refs" / "main").write_text(commit, encoding="utf-8")


def evaluated(home: Path, case: Case, task: str, source: str = "default") -> RunReport:
    arm = Arm(artifact=str(case.model), target=Target("cpu", "cpu"), session=SessionSection(threads=1))
    asked = RunArguments(
        arm=arm_arguments(arm, None), data=DataSection(source), folder=str(case.model.parent), task=task,
        reference=False,
    )  # fmt: skip
    env = {**os.environ, "HF_HOME": str(home), "HF_HUB_OFFLINE": "1"}
    with Worker(env=env) as worker:
        answer: dict[str, Any] = worker.call("evaluate.run", to_json(asked))
    return read(RunReport, answer)


def test_every_default_is_for_a_task_with_a_metric_and_says_where_it_is_from() -> None:
    for task, row in DEFAULTS.items():
        assert TASKS[task].metrics
        assert task in CORE_TASKS
        assert row.licence
        assert row.repo.count("/") == 1
        assert row.revision == MAIN or (len(row.revision) == 40 and int(row.revision, 16))
        assert all(known is None or (len(known) == 64 and int(known, 16)) for known in row.files.values())
        # A branch alone may have other files tomorrow; the file or the commit is pinned where it is known.
        assert len({known is None for known in row.files.values()}) == 1


def test_default_data_is_read_from_the_cache_and_the_result_names_its_commit(tmp_path: Path) -> None:
    case = task_cases.CASES["fill-mask"](tmp_path)
    cached(tmp_path / "hf", "roneneldan/TinyStories", {"TinyStories-valid.txt": "who did it .\n\ngood film\n"})
    report = evaluated(tmp_path / "hf", case, "fill-mask")
    assert report.data.source == f"hf:roneneldan/TinyStories/TinyStories-valid.txt@{COMMIT}"
    assert report.series["gaps"] == (4.0, 2.0)
    assert report.series["first"] == (0.0, 1.0)
    assert any("licence: see its page on the hub" in note for note in report.notes)
    assert any("left out in turn" in note for note in report.notes)


def test_a_custom_metric_reads_the_default_data_that_was_run(tmp_path: Path) -> None:
    case = task_cases.CASES["fill-mask"](tmp_path)
    cached(tmp_path / "hf", "roneneldan/TinyStories", {"TinyStories-valid.txt": "who did it .\n\ngood film\n"})
    (tmp_path / "mine.py").write_text("def gaps(outputs, sample):\n    return len(sample.label)\n", encoding="utf-8")
    # A process of its own, because the hub's package reads where its cache is once.
    words = ["eval", "-m", str(case.model), "--data", "default", "--task", "fill-mask", "--target", "cpu", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "winml.modelkit", *words, "--metric", f"{tmp_path / 'mine.py'}:gaps"],
        env={**os.environ, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1"},
        capture_output=True, text=True, encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["metrics"]["gaps"]["value"] == 3.0
    assert result["data"]["source"] == f"hf:roneneldan/TinyStories/TinyStories-valid.txt@{COMMIT}"


def test_a_corpus_of_the_hub_comes_with_its_questions_and_grades(tmp_path: Path) -> None:
    case = task_cases.CASES["retrieval"](tmp_path)
    folder, row = Path(case.data), DEFAULTS["retrieval"]
    files = {name: (folder / name).read_text(encoding="utf-8") for name in row.files}
    cached(tmp_path / "hf", row.repo, files, row.revision)
    report = evaluated(tmp_path / "hf", case, "retrieval", f"hf:{row.repo}/corpus.jsonl@{row.revision}")
    assert report.series["rank"] == (1.0, 0.5)
    with pytest.raises(DataError, match="`corpus.jsonl` of the data set `mteb/scifact` is not the file that it was"):
        evaluated(tmp_path / "hf", case, "retrieval")


def test_what_is_neither_cached_nor_known_is_one_error(tmp_path: Path) -> None:
    case = task_cases.CASES["fill-mask"](tmp_path)
    with pytest.raises(UnavailableError, match="`roneneldan/TinyStories` @ main|is not in the hub's cache"):
        evaluated(tmp_path / "hf", case, "fill-mask")
    with pytest.raises(DataError, match="no default data for task `depth-estimation`") as caught:
        evaluated(tmp_path / "hf", case, "depth-estimation")
    assert "text-classification" in (caught.value.hint or "")
    with pytest.raises(DataError, match="`default` is the data of a task"):
        open_dataset(DataSection("default"), [], model_folder=None, labels=False)
