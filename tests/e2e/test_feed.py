"""`winml feed` as a user runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from program import failed, valid, winml

from feed_zoo import RegistryServer, StandInAz, contents, filled, quiet
from winml.modelkit.feed.feed_command import Wanted, push

pytestmark = pytest.mark.usefixtures("no_logins")
MODEL = "microsoft/resnet-50"


def _json(*args: str | Path, **options: Any) -> dict[str, Any]:
    result = winml("feed", *args, "--json", **options)
    assert result.returncode == 0, result.stderr
    return valid(result.stdout)


@pytest.fixture
def feed(tmp_path: Path) -> str:
    """Two targets of one model and another model, published by one run; a second run published one target again."""
    address = f"folder:{tmp_path / 'feed'}"
    for target, stamp in (("qnn/npu", "20260609"), ("ov/cpu", "20260609"), ("qnn/npu", "20260610")):
        folder = filled(tmp_path / f"{target}{stamp}", model=f"{target} {stamp}".encode(), data__weights=b"w" * 50)
        push(str(folder), address, Wanted(MODEL, run_stamp=stamp, target=target), quiet)
    return address


@pytest.fixture
def build(tmp_path: Path) -> Path:
    result = winml("build", "--sample", "--target", "cpu", "-p", "fp32", "--no-analyze", "-o", tmp_path / "build")
    assert result.returncode == 0, result.stderr
    return tmp_path / "build"


def test_a_build_folder_is_pushed_under_its_model_and_target_and_comes_back_whole(build: Path, tmp_path: Path) -> None:
    pushed = _json("push", build, "--run-stamp", "20260609", "--feed", tmp_path / "feed")
    assert (pushed["package"], pushed["version"]) == ("digits", "0.0.0-20260609-cpu-cpu-digits")
    assert pushed["outcome"] == "published"
    again = _json("push", build, "--run-stamp", "20260609", "--feed", tmp_path / "feed")
    assert (again["outcome"], again["sent_bytes"]) == ("already-there", 0)
    pulled = _json("pull", "-m", "digits", "--target", "cpu", "-o", tmp_path / "out", "--feed", tmp_path / "feed")
    assert contents(tmp_path / "out") == contents(build)
    assert pulled["versions"][0]["digest"] == pushed["digest"]
    assert winml("inspect", "-m", tmp_path / "out").returncode == 0


def test_a_model_comes_with_all_its_targets_side_by_side(feed: str, tmp_path: Path) -> None:
    _json("pull", "-m", MODEL, "--run-stamp", "20260609", "-o", tmp_path / "out", "--feed", feed)
    assert set(contents(tmp_path / "out")) == {
        f"{folder}/{name}" for folder in ("qnn_npu", "openvino_cpu") for name in ("model.bin", "data/weights.bin")
    }


def test_one_target_comes_straight_into_the_folder(feed: str, tmp_path: Path) -> None:
    wanted = ("-m", MODEL, "--run-stamp", "20260609", "--target", "openvino")
    _json("pull", *wanted, "--target", "ov/cpu", "-o", tmp_path / "out", "--feed", feed)
    assert contents(tmp_path / "out")["model.bin"] == b"ov/cpu 20260609"


def test_one_file_comes_alone(feed: str, tmp_path: Path) -> None:
    wanted = ("-m", MODEL, "--run-stamp", "20260609", "--file", "qnn_npu/model*")
    pulled = _json("pull", *wanted, "-o", tmp_path / "out", "--feed", feed)
    assert contents(tmp_path / "out") == {"qnn_npu/model.bin": b"qnn/npu 20260609"}
    assert [v["files"] for v in pulled["versions"]] == [["model.bin"]]


def test_several_runs_are_not_mixed(feed: str, tmp_path: Path) -> None:
    result = winml("feed", "pull", "-m", MODEL, "-o", tmp_path / "out", "--feed", feed)
    assert "several runs: 20260609, 20260610" in failed(result, 2)
    assert "--run-stamp" in result.stderr
    assert not (tmp_path / "out").exists()


def test_list_shows_packages_and_versions(feed: str) -> None:
    assert _json("list", "--feed", feed)["packages"] == ["microsoft-resnet-50"]
    listed = _json("list", "-m", MODEL, "--run-stamp", "20260609", "--feed", feed)["versions"]
    assert [(v["target"], v["state"]) for v in listed] == [("openvino/cpu", "live"), ("qnn/npu", "live")]
    assert "20260610" in winml("feed", "list", "-m", MODEL, "--feed", feed).stdout


def test_one_package_for_all_models_is_told_apart_by_model(tmp_path: Path) -> None:
    for model in ("a", "b"):
        folder = filled(tmp_path / model, model=model.encode())
        _json("push", folder, "--package-name", "all", "--run-stamp", "1", "--feed", tmp_path / "feed")
    _json("pull", "--package-name", "all", "-m", "b", "-o", tmp_path / "out", "--feed", tmp_path / "feed")
    assert contents(tmp_path / "out") == {"model.bin": b"b"}


def test_verify_answers_no_for_damage_and_pull_delivers_nothing(feed: str, tmp_path: Path) -> None:
    assert len(_json("verify", "-m", MODEL, "--feed", feed)["versions"]) == 3
    for path in (tmp_path / "feed" / "objects").rglob("*"):
        if path.is_file() and path.read_bytes() == b"w" * 50:
            path.unlink()
            path.write_bytes(b"x" * 50)
    result = winml("feed", "pull", "-m", MODEL, "--run-stamp", "20260610", "-o", tmp_path / "out", "--feed", feed)
    assert "weights.bin" in failed(result, 1)
    assert not (tmp_path / "out" / "qnn_npu" / "model.bin").exists()
    result = winml("feed", "verify", "-m", MODEL, "--feed", feed, "--json")
    assert "3 files" in failed(result, 5)
    assert valid(result.stdout)["versions"][0]["damaged"] == ["data/weights.bin"]


@pytest.mark.parametrize(
    ("args", "exit_code", "message"),
    [
        (["push", "none"], 2, "folder not found"),
        (["push", "source", "--run-stamp", "2026-06-09"], 2, "run stamp must be"),
        (["push", "source", "--version", "1.0.0+b"], 2, "invalid version"),
        (["push", "source", "--package-name", "Upper"], 2, "invalid package name"),
        (["push", "source", "--target", "qmm/npu"], 2, "unknown execution provider"),
        (["push", "source", "--target", "auto"], 2, "names no execution provider"),
        (["push", "source", "--feed", "ftp://x/y"], 2, "unknown kind of feed"),
        (["push", "source", "--feed", "oci://127.0.0.1:9/m"], 3, "not reachable"),
        (["push", "source", "--feed", "azure:o/p/f"], 3, "not on PATH"),
        (["list", "--feed", "nowhere"], 3, "no feed in folder"),
        (["list", "-m", "other"], 2, "no package `other`"),
        (["pull", "-o", "out"], 2, "name the model"),
        (["pull", "-m", "source", "-o", "out", "--version", "0.0.0-9-x"], 2, "no such version"),
        (["pull", "-m", "source", "-o", "out", "--file", "nothing*"], 2, "no file of `source` matches"),
        (["verify", "-m", "source", "--run-stamp", "9"], 2, "no such version"),
    ],
)
def test_bad_input_is_one_clear_error(args: list[str], exit_code: int, message: str, tmp_path: Path) -> None:
    filled(tmp_path / "source", model=b"m")
    push(str(tmp_path / "source"), str(tmp_path / "feed"), Wanted(run_stamp="1"), quiet)
    given = args if "--feed" in args else [*args, "--feed", "feed"]
    env = {**os.environ, "PATH": str(tmp_path)}
    assert message in failed(winml("feed", *given, cwd=tmp_path, env=env), exit_code)
    assert not (tmp_path / "out").exists()


def test_a_conflict_says_so_in_json_and_changes_nothing(tmp_path: Path) -> None:
    address = ("--version", "1.0.0", "--package-name", "m", "--feed", str(tmp_path / "feed"))
    _json("push", filled(tmp_path / "a", m=b"a"), *address)
    result = winml("feed", "push", filled(tmp_path / "b", m=b"b"), *address, "--json")
    assert "with different content" in failed(result, 1)
    assert valid(result.stdout)["outcome"] == "conflict"
    _json("pull", *address, "-o", tmp_path / "out")
    assert contents(tmp_path / "out") == {"m.bin": b"a"}


@pytest.mark.registry
def test_the_same_commands_work_on_a_registry(registry: RegistryServer, tmp_path: Path) -> None:
    address = ("-m", "e2e", "--feed", f"{registry.address}/e2e")
    folder = filled(tmp_path / "a", model=b"m" * 1000, sub__data=b"d")
    pushed = _json("push", folder, "--run-stamp", "1", *address)
    assert pushed["reference"].startswith("sha256:")
    assert _json("verify", *address)["versions"][0]["damaged"] == []
    _json("pull", *address, "-o", tmp_path / "out")
    assert contents(tmp_path / "out") == contents(folder)


def test_the_same_commands_work_on_azure(az: StandInAz, tmp_path: Path) -> None:
    address = ("-m", "e2e", "--feed", "azure:org/project/feed")
    folder = filled(tmp_path / "a", model=b"m" * 1000, sub__data=b"d")
    assert _json("push", folder, "--run-stamp", "1", *address)["sent_bytes"] is None
    _json("pull", *address, "-o", tmp_path / "out")
    assert contents(tmp_path / "out") == contents(folder)
    az.mood("logged-out")
    assert "az login" in failed(winml("feed", "push", folder, *address), 3)


@pytest.mark.registry
@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent another way there")
def test_ctrl_c_in_a_push_is_130_and_the_next_push_goes_on(registry: RegistryServer, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    for name in "abcd":
        (folder / name).write_bytes(os.urandom(10 << 20))
    argv = ["push", str(folder), "--run-stamp", "1", "--feed", f"{registry.address}/interrupted"]
    with subprocess.Popen([sys.executable, "-m", "winml.modelkit", "feed", *argv], stderr=subprocess.PIPE) as program:
        uploads = registry.storage / "docker/registry/v2/repositories/models/interrupted"
        while not uploads.exists():
            assert program.poll() is None
            time.sleep(0.02)
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate(timeout=60)
    assert program.returncode == 130, errors
    assert b"Traceback" not in errors
    assert _json(*argv)["outcome"] == "published"
