"""The CI workflow that `winml init` writes: build, check of accuracy, comparison with the last build."""

from __future__ import annotations

from collections.abc import Iterable

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.plain_text import shell_word

_HEAD = """\
# Written by `winml init`; yours to change. Builds the model for every target, checks its accuracy, and compares its
# speed with the last build of the default branch.
name: winml

on:
  push:
  pull_request:
  workflow_dispatch:

permissions:
  contents: read

defaults:
  run:
    shell: bash

jobs:
"""

_JOB = """\
  {name}:
    runs-on: {runner}
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-python@v6
        with:
          python-version: "3.12"
      - name: Install
        run: |
{install}
      - name: Build
        run: |
{build}
      - name: Check the accuracy
        run: |
{check}
"""

_COMPARE = """\
      - name: Restore the baseline
        uses: actions/cache/restore@v4
        with:
          path: baseline-{name}
          key: winml-baseline-{name}-${{{{ github.run_id }}}}
          restore-keys: winml-baseline-{name}-
      - name: Compare with the baseline
        run: |
          if [ -d baseline-{name} ]; then
            winml compare baseline-{name} {folder} --fail-if-slower {pct} -o compare-{name}.json
          else
            echo "there is no baseline yet; the next build of the default branch is stored as one"
          fi
      - name: Make this build the baseline
        if: github.ref_name == github.event.repository.default_branch
        run: |
          rm -rf baseline-{name}
          cp -r {folder} baseline-{name}
      - name: Store the baseline
        if: github.ref_name == github.event.repository.default_branch
        uses: actions/cache/save@v4
        with:
          path: baseline-{name}
          key: winml-baseline-{name}-${{{{ github.run_id }}}}
"""
_SIMULATED = """\
      # The device is simulated on this runner: its times mean nothing and are not compared.
"""
_UPLOAD = """\
      - name: Keep the build
        uses: actions/upload-artifact@v4
        with:
          name: {folder}
          path: |
            {folder}
            eval-{name}.json
            compare-{name}.json
"""


@dataclass(frozen=True)
class WorkflowJob:
    """What the job of one target runs; names are those of the folder of the project."""

    name: str
    target: str
    runner: str
    packages: tuple[str, ...]
    ep: str | None
    """The EP that gets an environment of its own."""
    config: str
    build_folder: str
    model: str
    data: str | None
    task: str | None
    max_drop: float
    min_agreement: float
    fail_if_slower_pct: float
    is_simulated: bool


def workflow_text(jobs: Iterable[WorkflowJob]) -> str:
    """The workflow file; every word of a command is quoted for the shell that runs it."""
    return _HEAD + "\n".join(_job_text(job) for job in jobs)


def _command(*words: str) -> str:
    return " ".join(shell_word(word, windows=False) for word in words)


def _lines(*commands: str) -> str:
    return "\n".join(f"          {command}" for command in commands)


def _job_text(job: WorkflowJob) -> str:
    install = [_command("python", "-m", "pip", "install", package) for package in job.packages]
    if job.ep is not None:
        install.append(_command("winml", "ep", "install", job.ep))
    folder = job.build_folder
    text = _JOB.format(
        name=job.name,
        runner=job.runner,
        install=_lines(*install),
        build=_lines(_command("winml", "build", "-c", job.config, "-o", folder)),
        check=_lines(_check_command(job)),
    )
    if job.is_simulated:
        text += _SIMULATED
    else:
        text += _COMPARE.format(name=job.name, folder=folder, pct=f"{job.fail_if_slower_pct:g}")
    return text + _UPLOAD.format(name=job.name, folder=folder)


def _check_command(job: WorkflowJob) -> str:
    """The check by a metric where there is labelled data, otherwise by how near outputs are to those of the model.

    A simulator takes seconds for a run, so that few samples are compared there by their outputs.
    """
    words = ["winml", "eval", "-m", job.build_folder, "--target", job.target, "--data", job.data or "random"]
    if job.data is not None and job.task is not None:
        words += ["--task", job.task]
    words += ["--reference", job.model, "--reference-target", "cpu"]
    if job.data is not None and not job.is_simulated:
        words += ["--max-drop", f"{job.max_drop:g}"]
    else:
        words += [*(["--samples", "20"] if job.is_simulated else []), "--min-agreement", f"{job.min_agreement:g}"]
    return _command(*words, "-o", f"eval-{job.name}.json")
