"""Documents from others that try to load a library or to write a file: the attacks of benchmarks/robustness."""

from __future__ import annotations

import json
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from program import winml

from winml.modelkit.cli.main import run
from winml.modelkit.core.errors import CheckFailed
from winml.modelkit.core.recipe import BuildPart
from winml.modelkit.support.produce import ProduceRequest, produce
from winml.modelkit.support.review.command import ReviewRequest, review

ATTACKS: dict[str, Any] = runpy.run_path(
    str(Path(__file__).parents[2] / "benchmarks" / "robustness" / "option_attacks.py")
)
LONG = ("search", "matrix", "resumed_matrix", "pulled_from_a_feed", "changed_after_the_build", "arm_of_a_comparison")
"""Attacks of several commands; the short ones go through the same reader of documents."""
QUICK = ("--iterations", "1", "--warmup", "0", "--sessions", "1")


def _scene(tmp_path: Path, command: Any) -> Any:
    return ATTACKS["Scene"](tmp_path / "scene", ATTACKS["sample"](tmp_path), command)


def in_this_process(*words: str) -> int:
    return run(list(words))


@pytest.mark.qnn
@pytest.mark.parametrize("attack", [a.__name__ for a in ATTACKS["ATTACKS"] if a.__name__ not in LONG])
def test_a_document_neither_loads_nor_writes(
    attack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WINML_CACHE", str(tmp_path / "cache"))
    scene = _scene(tmp_path, in_this_process)
    scene.make()
    assert ATTACKS[attack](scene) == 2
    assert scene.damage() == []
    assert "may be set on the command line only" in capsys.readouterr().err


@pytest.mark.qnn
@pytest.mark.slow
@pytest.mark.parametrize("attack", LONG)
def test_a_document_that_comes_a_longer_way_neither_loads_nor_writes(attack: str, tmp_path: Path) -> None:
    command = ATTACKS["runner"](sys.executable, None, tmp_path, show=False)
    code, damage = ATTACKS["attempt"](ATTACKS[attack], tmp_path / "scene", ATTACKS["sample"](tmp_path), command)
    assert damage == []
    assert code in (1, 2)  # a matrix counts its cells


@pytest.mark.qnn
def test_a_trusted_option_is_shown_and_takes_effect(tmp_path: Path) -> None:
    """The same document, let through: the library is loaded, so the tests above would have noticed."""
    scene = _scene(tmp_path, in_this_process)
    scene.make()
    folder = scene.options(backend_path=str(scene.library))
    done = winml("perf", "-m", folder, "--target", "qnn/npu", *QUICK, "--trust-options", "backend_path")
    assert f"note: trusted from `{folder / 'build_config.json'}`: backend_path={scene.library}" in done.stderr
    assert scene.damage() == (["a library was loaded"] if shutil.which("gcc") else [])


@pytest.mark.qnn
def test_a_typed_option_wins_over_the_document(tmp_path: Path) -> None:
    scene = _scene(tmp_path, in_this_process)
    scene.make()
    folder = scene.options(profiling_level="basic", profiling_file_path=str(scene.outside / "stolen.csv"))
    mine = tmp_path / "mine.csv"
    words = ("--ep-options", "profiling_level=basic", "--ep-options", f"profiling_file_path={mine}")
    done = winml("perf", "-m", folder, "--target", "qnn/npu", *QUICK, *words)
    assert done.returncode == 0, done.stderr
    assert mine.is_file()
    assert scene.damage() == []


def test_a_contribution_may_not_bring_options_in_its_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a review runs first: `winml config -m MODEL`."""
    scene = _scene(tmp_path, in_this_process)
    folder = scene.build({"config_entries": {"session.debug_layout_transformation": "1"}})
    assert run(["config", "-m", str(folder), "--target", "cpu"]) == 2
    assert "session.debug_layout_transformation" in capsys.readouterr().err


def test_who_only_reads_a_model_reads_it_whatever_its_folder_wants(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = _scene(tmp_path, in_this_process)
    folder = scene.options(backend_path="evil.so")
    assert run(["inspect", "-m", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"]


@pytest.fixture(scope="module")
def contributed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A build folder as a contribution's model, and a contribution on it that is right, for the NPU."""
    place = tmp_path_factory.mktemp("contributed")
    scene = _scene(place, in_this_process)
    model = scene.build({})
    (place / "cache").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINML_CACHE", str(place / "cache"))
        request = ProduceRequest(str(model), str(place / "contribution"), targets=("qnn/npu",), goal="L1",
                                 build=BuildPart(precision="fp16"))  # fmt: skip
        produce(request, lambda event: None)
    return model, place / "contribution"


@pytest.mark.qnn
@pytest.mark.slow
@pytest.mark.parametrize("attack", ["library", "file", "context"])
def test_a_review_that_builds_again_neither_loads_nor_writes(
    attack: str, contributed: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model that the contribution names says how it is opened: the reviewer's rebuilds would take that over.

    Without a sandbox, which would hide what is written: the gate alone has to hold.
    """
    monkeypatch.setenv("WINML_CACHE", str(tmp_path / "cache"))
    scene = _scene(tmp_path, in_this_process)
    scene.make()
    planted: dict[str, dict[str, Any]] = {
        "library": {"ep_options": {"backend_path": str(scene.library)}},
        "file": {"ep_options": {"profiling_level": "detailed", "profiling_file_path": str(scene.outside / "p.csv")}},
        "context": {
            "config_entries": {"ep.context_enable": "1", "ep.context_file_path": str(scene.outside / "c.onnx")}
        },
    }
    model, contribution = contributed
    named = shutil.copytree(model, tmp_path / "named")
    config = {"schema": "winml/build-config/1", "session": planted[attack]}
    (named / "build_config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(CheckFailed, match="REJECT: rerun: ") as caught:
        review(ReviewRequest(str(contribution), model=str(named), unsandboxed=True), lambda event: None)
    assert scene.damage() == []
    ended = {row["step"]: row["exit_code"] for row in caught.value.details["rerun"]}
    assert {ended[step] for step in ended if step.startswith(("config", "build"))} == {2}
    assert 0 not in {code for step, code in ended.items() if step.startswith("perf")}
