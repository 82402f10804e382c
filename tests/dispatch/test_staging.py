from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

import model_zoo
from feed_zoo import StandInAz, quiet
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.dispatch import staged_job
from winml.modelkit.dispatch.base import Result
from winml.modelkit.dispatch.staging import PACKAGE, Inputs, Staging, answer_of, job_argv, stamp_of
from winml.modelkit.feed.base import NotPublished
from winml.modelkit.feed.content import FeedDamaged, scan
from winml.modelkit.feed.folder import FolderFeed
from winml.modelkit.feed.table import absolute, open_feed

pytestmark = pytest.mark.usefixtures("no_logins")


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    made = Staging(FolderFeed.at(f"folder:{tmp_path / 'feed'}"), "a1")
    made.check()
    return made


def test_what_is_put_comes_back_by_its_digest_and_goes_with_its_run(staging: Staging, tmp_path: Path) -> None:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "sub" / "a.bin").write_bytes(b"a")
    name = staging.put(scan(tmp_path / "in"))
    assert staging.put(scan(tmp_path / "in")) == name
    other = Staging(staging.feed, "b2")
    other.put(scan(tmp_path / "in"))
    staging.get(name, tmp_path / "out")
    assert (tmp_path / "out" / "sub" / "a.bin").read_bytes() == b"a"
    staging.clear()
    staging.clear()
    with pytest.raises(NotPublished, match="this machine finds nothing with"):
        staging.get(name, tmp_path / "again")
    other.get(name, tmp_path / "again")


def test_files_that_are_not_those_of_the_digest_are_refused(staging: Staging, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(b"a")
    wanted = "sha256:" + "0" * 64
    staging.feed.publish(PACKAGE, f"0.0.0-a1-{'0' * 64}", scan(tmp_path / "in"), quiet)
    with pytest.raises(FeedDamaged):
        staging.get(wanted, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_feed_that_keeps_everything_for_ever_is_no_way_for_files(az: StandInAz) -> None:
    with pytest.raises(RequestError, match="indefinitely"):
        Staging(open_feed("azure:org/project/feed"), "a1").check()


def test_a_model_travels_with_its_external_data_and_other_words_as_they_are(staging: Staging, tmp_path: Path) -> None:
    model = tmp_path / "m" / "conv.onnx"
    model.parent.mkdir()
    (model.parent / "weights").mkdir()
    onnx.save(model_zoo.conv_net(), model, save_as_external_data=True, location="weights/conv.bin", size_threshold=0)
    inputs = Inputs(staging)
    words = inputs.words(["build", "-m", str(model), "--calibration", "random", "--target", "cpu"])
    assert [word for word in words if isinstance(word, str)] == [
        "build",
        "-m",
        "--calibration",
        "random",
        "--target",
        "cpu",
    ]
    assert isinstance(words[2], dict)
    assert words[2]["path"] == "conv.onnx"
    here = Path(staged_job.fetch_word(staging, words[2]))
    assert scan(here.parent).content == scan(model.parent).content
    here.write_bytes(b"edited")
    assert Path(staged_job.fetch_word(staging, words[2])).read_bytes() == model.read_bytes()


def test_a_node_forgets_inputs_that_nobody_asks_for(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.lock").touch()
    os.utime(tmp_path / "old", (0, 0))
    staged_job.forget_unused(tmp_path, (tmp_path / "new").stat().st_mtime)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "new.lock"]


def test_an_address_means_the_same_on_every_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("folder:feed") == absolute("feed") == f"folder:{tmp_path / 'feed'}"
    assert absolute("oci://h/x") == "oci://h/x"


def test_a_job_that_cannot_get_its_inputs_says_so_as_its_answer(
    staging: Staging, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = job_argv(staging, ["build", "-m", {"input": "sha256:" + "1" * 64, "path": "m.onnx"}])
    assert staged_job.main(argv[-1]) == 2
    answer = json.loads(capsys.readouterr().out)
    assert answer["digest"] is None
    assert "all machines of a cluster must reach the same feed" in json.loads(answer["output"])["error"]["hint"]


def test_runs_in_different_folders_stage_apart_and_one_that_goes_on_finds_its_own(tmp_path: Path) -> None:
    assert stamp_of(tmp_path / "a") == stamp_of(tmp_path / "a")
    feed = FolderFeed.at(f"folder:{tmp_path / 'feed'}")
    first, second = (Staging(feed, stamp_of(tmp_path / name)) for name in ("a", "b"))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.bin").write_bytes(b"a")
    name = first.put(scan(tmp_path / "in"))
    second.put(scan(tmp_path / "in"))
    first.clear()
    second.get(name, tmp_path / "out")
    assert (tmp_path / "out" / "a.bin").read_bytes() == b"a"


def test_a_node_that_cannot_reach_the_feed_is_named_and_is_no_failure_of_its_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = Staging(FolderFeed.at(f"folder:{tmp_path / 'not-mounted'}"), "a1")
    argv = job_argv(nowhere, ["build", "-m", {"input": "sha256:" + "1" * 64, "path": "m.onnx"}])
    assert staged_job.main(argv[-1]) == 3
    result = Result("cell", "failed", 3, capsys.readouterr().out, "", 1.0, node="npu")
    with pytest.raises(UnavailableError, match="node npu: no feed in folder"):
        answer_of(result)
    assert answer_of(replace(result, output="")) == {}


@pytest.mark.posix("a crash is an exit code of its own there")
def test_a_job_whose_command_crashed_ends_by_the_same_signal(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from winml.modelkit.dispatch import staged_job\n"
        "staged_job.carry_out = lambda spec, out: (-signal.SIGSEGV, {'output': ''})\n"
        "sys.exit(staged_job.main('{}'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == -signal.SIGSEGV, done.stderr
