"""`winml matrix` as a user runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest
from program import SCHEMAS, failed, valid, winml

import model_zoo
from ctrl_c import press_ctrl_c, start
from feed_zoo import PASSWORD_HASH, RegistryServer, StandInAz, contents, quiet, skopeo
from winml.modelkit import sample
from winml.modelkit.feed.content import scan
from winml.modelkit.feed.oci import manifest_of
from winml.modelkit.feed.registry import Registry
from winml.modelkit.feed.table import open_feed
from winml.modelkit.store.journal import Journal, parse

pytestmark = pytest.mark.usefixtures("no_logins")
COMBOS = {"qnn_npu", "qnn_gpu", "ov_cpu", "ov_npu", "ov_gpu", "mlas_cpu", "dml_gpu", "vitisai_npu"}
TWO = ("--targets", "cpu,dml", "--no-analyze")
ONE = ("--targets", "cpu", "--no-analyze")


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which all stages of the sample are, so that cells take a second."""
    root = tmp_path_factory.mktemp("warm")
    env = {**os.environ, "WINML_CACHE": str(root / "cache")}
    done = winml("matrix", "run", "--sample", "--jobs", "2", "-o", root / "out", "--json", env=env)
    assert done.returncode == 0, done.stderr
    (root / "result.json").write_text(done.stdout)
    return root


@pytest.fixture
def store(warm: Path, no_logins: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The warm store as the one in use."""
    monkeypatch.setenv("WINML_CACHE", str(warm / "cache"))
    return warm / "cache"


def _run(*args: str | Path, code: int = 0, **options: Any) -> dict[str, Any]:
    result = winml("matrix", "run", *args, "--json", **options)
    assert result.returncode == code, result.stderr
    return valid(result.stdout)


def _results(output: Path) -> dict[str, Any]:
    """`build_only_results.json`, checked against its schema."""
    value = json.loads((output / "build_only_results.json").read_text())
    schema = json.loads((SCHEMAS / "build-only-results-1.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(value)
    return dict(value)


def _folders(output: Path) -> set[str]:
    return {p.parent.relative_to(output).as_posix() for p in output.rglob("build_manifest.json")}


def _computed(value: dict[str, Any]) -> list[str]:
    return sorted(stage for cell in value["cells"] for stage in cell["computed"])


def _versions(address: str, package: str = "digits") -> list[str]:
    with closing(open_feed(address)) as feed:
        return [item.version for item in feed.versions(package) or ()]


def test_the_sample_is_built_for_eight_combos_and_every_stage_ran_once(warm: Path) -> None:
    value = valid((warm / "result.json").read_text())
    assert {cell["combo"] for cell in value["cells"]} == COMBOS
    assert _folders(warm / "out") == {f"digits/{combo}" for combo in COMBOS}
    # Three sections: dynamic, fixed for NPUs, and that of QNN's NPU, which alone is quantized.
    assert _computed(value) == ["optimize"] * 3 + ["quantize"]
    assert value["progress"] == {"total": 8, "done": 8, "failed": 0, "pending": 0, "seconds_left": 0.0}
    results = _results(warm / "out")
    assert {row["upload_status"] for row in results.values()} == {"n/a"}
    assert set(json.loads((warm / "out/environment.json").read_text())) >= {"winml", "onnxruntime", "python"}


@pytest.mark.posix("every cell has copies there")
def test_files_that_cells_share_stand_on_the_disk_once(warm: Path) -> None:
    models = list((warm / "out").rglob("*.onnx"))
    assert len(models) == 17
    assert len({path.stat().st_ino for path in models}) == len({path.read_bytes() for path in models}) == 3
    assert not list((warm / "cache/pins").glob("*.json"))


def test_plan_needs_nothing_but_the_table(tmp_path: Path) -> None:
    args = ("matrix", "plan", "-m", "org/bert", "--task", "fill-mask", "--run-stamp", "s1")
    value = valid(winml(*args, "--json").stdout)
    assert value["cells"][0]["version"] == "0.0.0-s1-qnn-npu-org-bert-fill-mask"
    assert "calibration data is missing" in value["notes"][0]
    text = winml(*args, "--compile")
    assert "ov_npu" in text.stdout
    assert "not compiled, because their providers do not compile: cpu, dml/gpu" in text.stderr


def test_what_is_wrong_with_a_request_is_said_before_anything_is_written(tmp_path: Path, store: Path) -> None:
    (tmp_path / "empty.txt").write_text("# nothing\n")
    (tmp_path / "twice.txt").write_text("org/a\norg/a\n")
    (tmp_path / "list.txt").write_text("org/a priority=P1\n")
    out = tmp_path / "out"
    for args, message in (
        (("--models", tmp_path / "empty.txt"), "lists no models"),
        (("--models", tmp_path / "twice.txt"), "twice"),
        (("--models", tmp_path / "none.txt"), "not found"),
        (("--models", tmp_path / "list.txt", "--priority", "P0"), "no model has the priority `P0`"),
        (("-m", "gone.onnx"), "model not found"),
        (("--sample", "-m", "org/a"), "`-m` cannot be combined with `--sample`"),
        (("--sample", "--targets", "qnnn/npu"), "unknown execution provider `qnnn`"),
        (("--sample", "--ep", "nope"), "unknown execution provider `nope`"),
        (("--sample", "--targets", "cpu,mlas"), "twice"),
        (("--sample", "--targets", "cpu", "--ep", "cpu"), "cannot be combined"),
        (("--sample", "--run-stamp", "2026-06"), "run stamp"),
        (("--sample", "--max-disk", "much"), "a size cannot be `much`"),
        (("--sample", "--resume"), "needs `--run-stamp`"),
        (("--sample", "--trust-journal"), "needs `--resume`"),
    ):
        assert message in failed(winml("matrix", "run", *args, "-o", out), 2)
    assert not out.exists()
    assert "holds no matrix run" in failed(winml("matrix", "status", tmp_path), 2)


def test_one_target_goes_straight_into_the_folder_of_its_model(tmp_path: Path, store: Path) -> None:
    value = _run("--sample", "--ep", "mlas", "--no-analyze", "-o", tmp_path / "out")
    assert [(c["combo"], c["precision"], c["folder"]) for c in value["cells"]] == [("mlas_cpu", "fp32", "digits")]
    assert (tmp_path / "out/digits/model.onnx").is_file()
    assert "holds a run" in failed(winml("matrix", "run", "--sample", *ONE, "-o", tmp_path / "out"), 2)
    status = winml("matrix", "status", tmp_path / "out")
    assert "1 of 1 cells done" in status.stdout
    assert "in use" in status.stdout


def test_a_model_that_does_not_load_fails_alone_and_all_failed_is_another_exit(tmp_path: Path, store: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"not a model")
    (tmp_path / "list.txt").write_text(f"bad.onnx priority=P0\n{sample.MODEL} priority=P0\norg/c priority=P1\n")
    out = tmp_path / "out"
    value = _run("--models", tmp_path / "list.txt", "--priority", "P0", *ONE, "-o", out, code=6)
    bad, good = value["cells"]
    assert (bad["build_status"], bad["build_stage"], good["build_status"]) == ("failed", "load", "ok")
    assert value["error"]["message"] == "1 of 2 cells failed: bad mlas_cpu"
    assert _folders(out) == {"digits"}
    assert "bad.onnx" in (out / "logs/bad.log").read_text()
    assert _results(out)[bad["version"]]["error"] == bad["error"]
    assert _run("-m", tmp_path / "bad.onnx", *ONE, "-o", tmp_path / "all", code=1)["progress"]["failed"] == 1


def test_a_cell_that_cannot_be_compiled_here_fails_early_and_says_so(tmp_path: Path, store: Path) -> None:
    args = ("--sample", "--targets", "vitisai,cpu", "--compile", "--no-analyze", "-o", tmp_path / "out")
    value = _run(*args, code=6)
    vitis, cpu = value["cells"]
    assert (vitis["build_status"], vitis["build_stage"], vitis["seconds"]) == ("failed", "compile", 0.0)
    assert "`vitisai` is not available" in vitis["error"]
    assert cpu["build_status"] == "ok"
    assert "not compiled, because their providers do not compile: cpu" in value["notes"]


def test_a_build_that_takes_too_long_is_that_cells_result_and_leaves_nothing(tmp_path: Path, zoo: Path) -> None:
    out = tmp_path / "out"
    value = _run("-m", zoo / "hang.onnx", *ONE, "--timeout", "8", "-o", out, code=1)
    assert [c["build_status"] for c in value["cells"]] == ["timeout"]
    assert "took longer than 8 s" in value["cells"][0]["error"]
    assert not list(Path(os.environ["WINML_CACHE"]).glob(".winml-tmp-*"))
    assert list((out / ".matrix/building").iterdir()) == []
    assert (out / "logs/hang.log").is_file()


def test_published_cells_lose_their_local_files_and_a_second_run_sends_nothing(tmp_path: Path, store: Path) -> None:
    feed, out = f"folder:{tmp_path / 'feed'}", tmp_path / "out"
    args = ("--sample", *TWO, "--feed", feed, "--run-stamp", "s1")
    first = _run(*args, "-o", out)
    assert {c["upload_status"] for c in first["cells"]} == {"uploaded"}
    assert all(c["reference"] for c in first["cells"])
    assert _folders(out) == set()
    again = _run(*args, "--resume", "-o", out)
    fresh = _run(*args, "--resume", "-o", tmp_path / "fresh")
    assert (again["sent_bytes"], fresh["sent_bytes"]) == (0, 0)
    assert [c["digest"] for c in first["cells"]] == [c["digest"] for c in fresh["cells"]]
    assert [c["build_status"] for c in fresh["cells"]] == [None, None]
    assert _versions(feed) == ["0.0.0-s1-dml-gpu-digits", "0.0.0-s1-mlas-cpu-digits"]
    assert winml("feed", "verify", "-m", "digits", "--feed", feed).returncode == 0
    assert not list((store / "pins").glob("*.json"))
    pulled = tmp_path / "pulled"
    assert winml("feed", "pull", "-m", "digits", "--target", "cpu", "--feed", feed, "-o", pulled).returncode == 0
    assert winml("inspect", "-m", pulled).returncode == 0


def test_a_folder_that_was_published_goes_later_too_unless_it_is_something_else_by_then(
    tmp_path: Path, store: Path
) -> None:
    feed, out = f"folder:{tmp_path / 'feed'}", tmp_path / "out"
    args = ("--sample", *ONE, "--feed", feed, "--run-stamp", "s1", "-o", out, "--resume")
    (cell,) = _run(*args)["cells"]

    def back() -> None:
        """As if the run had been killed just before it removed the folder."""
        with closing(open_feed(feed)) as opened:
            stored = opened.find("digits", cell["version"])
            assert stored is not None
            opened.fetch(stored, out / "digits", only=stored.content, overwrite=False, on_event=quiet)

    back()
    assert _run(*args)["sent_bytes"] == 0
    assert _folders(out) == set()
    back()
    (out / "digits/model.onnx").unlink()
    (out / "digits/model.onnx").write_bytes(b"mine")
    assert _run(*args)["progress"]["done"] == 1
    assert (out / "digits/model.onnx").read_bytes() == b"mine"


def test_going_on_needs_no_clock_and_no_stamp_in_the_folder_of_the_run(tmp_path: Path, store: Path) -> None:
    out = tmp_path / "out"
    args = ("--sample", *ONE, "-o", out)
    _run(*args, "--run-stamp", "99991231")
    value = _run(*args, "--resume")
    assert (value["run_stamp"], value["cells"][0]["computed"]) == ("99991231", [])
    assert "holds the run `99991231`, not `s2`" in failed(
        winml("matrix", "run", *args, "--resume", "--run-stamp", "s2"), 2
    )
    (out / "digits/build_manifest.json").unlink()
    assert "files that do not belong to a build" in failed(winml("matrix", "run", *args, "--resume"), 2)
    shutil.rmtree(out / "digits")
    assert _run(*args, "--resume")["cells"][0]["build_status"] == "ok"
    assert (out / "digits/model.onnx").is_file()


def test_what_was_built_without_a_feed_is_published_later_without_another_build(tmp_path: Path, store: Path) -> None:
    out, feed = tmp_path / "out", f"folder:{tmp_path / 'feed'}"
    args = ("--sample", *ONE, "-o", out, "--run-stamp", "s1")
    built = _run(*args)["cells"][0]
    later = _run(*args, "--resume", "--feed", feed, "--keep-local")["cells"][0]
    assert (later["upload_status"], later["digest"]) == ("uploaded", built["digest"])
    assert later["recorded_at"] > built["recorded_at"]
    assert later["seconds"] == built["seconds"]
    assert (out / "digits/model.onnx").is_file()


def test_two_runs_with_one_stamp_do_not_mix(tmp_path: Path, store: Path) -> None:
    feed = f"folder:{tmp_path / 'feed'}"
    args = ("--sample", *ONE, "--feed", feed, "--run-stamp", "s1")
    first = _run(*args, "-o", tmp_path / "a")["cells"][0]
    taken = winml("matrix", "run", *args, "-o", tmp_path / "b")
    assert "run stamp `s1` is taken: 1 of 1 cells" in failed(taken, 2)
    assert not (tmp_path / "b").exists()
    skipped = _run(*args, "--upload-skip-existing", "-o", tmp_path / "b")["cells"][0]
    assert skipped["upload_status"] == "exists-skipped"
    assert "different content" in skipped["error"]
    assert (tmp_path / "b/digits/model.onnx").is_file()  # not what the feed has, so it stays
    with closing(open_feed(feed)) as opened:
        stored = opened.find("digits", first["version"])
    assert stored is not None
    assert stored.content.digest == first["digest"]


def test_a_folder_is_used_by_one_run_at_a_time(tmp_path: Path, store: Path) -> None:
    out = tmp_path / "out"
    args = ("--sample", *ONE, "--run-stamp", "s1", "-o", out)
    _run(*args)
    with Journal(out / "journal.jsonl"):
        assert "in use by another process" in failed(winml("matrix", "run", *args, "--resume"), 3)


def test_a_feed_that_cannot_be_asked_is_never_an_empty_one(tmp_path: Path, store: Path) -> None:
    out = tmp_path / "out"
    args = ("--sample", *ONE, "--feed", "oci://127.0.0.1:9/models", "--run-stamp", "s1", "-o", out)
    assert "127.0.0.1:9" in failed(winml("matrix", "run", *args), 3)
    assert not out.exists()
    # From the journal alone it goes on until something has to be published, and keeps what it built.
    trusting = winml("matrix", "run", *args, "--resume", "--trust-journal")
    text = failed(trusting, 3)
    assert "continue with `winml matrix run --sample" in text
    assert "--resume --run-stamp s1`" in text
    assert _folders(out) == {"digits"}
    status = valid(winml("matrix", "status", out, "--json").stdout)
    assert (status["progress"]["pending"], status["cells"][0]["build_status"]) == (1, "ok")


def test_a_feed_that_was_there_and_is_not_now_is_an_error_with_a_way_on(tmp_path: Path, store: Path) -> None:
    feed, out = tmp_path / "feed", tmp_path / "out"
    args = ("--sample", *ONE, "--feed", f"folder:{feed}", "--run-stamp", "s1", "-o", out)
    _run(*args)
    feed.rename(tmp_path / "elsewhere")
    feed.write_text("a file where the share was")
    failed(winml("matrix", "run", *args, "--resume"), 2)
    feed.unlink()
    (tmp_path / "elsewhere").rename(feed)
    assert _run(*args, "--resume")["sent_bytes"] == 0


def test_a_damaged_answer_of_the_feed_is_that_cells_result(tmp_path: Path, store: Path) -> None:
    feed = tmp_path / "feed"
    args = ("--sample", *TWO, "--feed", f"folder:{feed}", "--run-stamp", "s1")
    _run(*args, "-o", tmp_path / "a")
    entry = feed / "packages/digits/0.0.0-s1-mlas-cpu-digits.json"
    entry.write_text(entry.read_text().replace("sha256:", "sha256:0", 1))
    value = _run(*args, "--resume", "-o", tmp_path / "b", code=6)
    by_combo = {c["combo"]: c for c in value["cells"]}
    assert by_combo["dml_gpu"]["upload_status"] == "uploaded"
    assert by_combo["mlas_cpu"]["upload_status"] == "failed"
    assert "cannot be read" in by_combo["mlas_cpu"]["error"]


def test_a_name_of_300_characters_is_built_and_published(tmp_path: Path, store: Path) -> None:
    (tmp_path / "list.txt").write_text(f"{sample.MODEL} name={'x' * 300}\n")
    feed = f"folder:{tmp_path / 'feed'}"
    (cell,) = _run("--models", tmp_path / "list.txt", *ONE, "--feed", feed, "-o", tmp_path / "out")["cells"]
    assert cell["upload_status"] == "uploaded"
    assert len(cell["version"]) <= 127
    assert winml("feed", "verify", "-m", "x" * 300, "--feed", feed).returncode == 0


def test_a_full_disk_stops_the_run_and_nothing_is_lost(
    tmp_path: Path, store: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    args = ("--sample", "--targets", "cpu,openvino/npu", "--no-analyze", "--run-stamp", "s1", "-o", out)
    monkeypatch.setenv("WINML_CACHE", str(small_disk / "cache"))
    (small_disk / "filler").write_bytes(bytes(700 << 10))  # the first model that a stage writes does not fit
    text = failed(winml("matrix", "run", *args), 3)
    assert "disk full while writing" in text
    assert "--resume --run-stamp s1" in text
    done = _folders(out)
    monkeypatch.setenv("WINML_CACHE", str(store))
    assert _run(*args, "--resume")["progress"]["done"] == 2
    assert done <= _folders(out) == {"digits/mlas_cpu", "digits/ov_npu"}


def test_a_full_disk_under_the_output_folder_stops_the_run(tmp_path: Path, store: Path, small_disk: Path) -> None:
    args = ("--sample", "--targets", "cpu,openvino/npu", "--no-analyze", "--run-stamp", "s1", "-o")
    text = failed(winml("matrix", "run", *args, small_disk / "out"), 3)
    assert "disk full while writing" in text
    assert _run(*args, tmp_path / "out")["progress"]["done"] == 2


@pytest.mark.posix("cells on Windows are copies on every volume")
def test_on_another_volume_files_are_copied_once_and_that_is_said(store: Path) -> None:
    elsewhere = Path("/dev/shm")
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == store.stat().st_dev:
        pytest.skip("there is no second volume here")
    with tempfile.TemporaryDirectory(dir=elsewhere) as name:
        out = Path(name) / "out"
        value = _run("--sample", "--targets", "cpu,dml,openvino/gpu", "--no-analyze", "-o", out)
        assert {c["files_by"] for c in value["cells"]} == {"copy"}
        assert "on another volume: files were copied, each once" in value["notes"][-1]
        models = list(out.rglob("*.onnx"))
        assert len(models) == 6
        assert len({path.stat().st_ino for path in models}) == 1


def test_the_disk_stays_below_its_limit_while_cells_are_published(tmp_path: Path, zoo: Path) -> None:
    models = [tmp_path / f"m{n}.onnx" for n in range(4)]
    for number, path in enumerate(models):
        model_zoo.saved(model_zoo.conv_net(channels=64 + number), path)
    largest = max(path.stat().st_size for path in models)
    args = [word for path in models for word in ("-m", path)]
    limit = int(4.5 * largest)
    value = _run(*args, *ONE, "--feed", f"folder:{tmp_path / 'feed'}", "--max-disk", str(limit), "-o", tmp_path / "out")
    assert value["progress"]["done"] == 4
    assert value["disk"]["in_use_bytes"] <= limit


def test_a_limit_that_nothing_helps_against_stops_with_the_way_on(tmp_path: Path) -> None:
    args = ("--sample", *TWO, "--run-stamp", "s1", "-o", tmp_path / "out")
    text = failed(winml("matrix", "run", *args, "--max-disk", "1k"), 3)
    assert "--max-disk" in text
    assert "--resume --run-stamp s1" in text


AZURE = ("--feed", "azure:org/project/feed", "--run-stamp", "s1")


def test_azure_a_login_that_is_missing_or_expires_stops_the_run(az: StandInAz, tmp_path: Path, store: Path) -> None:
    args = ("--sample", *TWO, *AZURE, "-o", tmp_path / "out")
    az.mood("logged-out")
    failed(winml("matrix", "run", *args), 3)
    assert not (tmp_path / "out").exists()
    az.mood("expires")
    text = failed(winml("matrix", "run", *args), 3)
    assert "az login" in text
    assert len(_folders(tmp_path / "out")) == 1  # built, not published, so it stays
    az.mood("")
    value = _run(*args, "--resume")
    assert {c["upload_status"] for c in value["cells"]} == {"uploaded"}
    assert _folders(tmp_path / "out") == set()


def test_azure_trouble_with_one_package_is_that_cells_result(az: StandInAz, tmp_path: Path, store: Path) -> None:
    args = ("--sample", *TWO, *AZURE, "-o", tmp_path / "out")
    az.mood("refreshing-once")
    value = _run(*args, code=6)
    assert [c["upload_status"] for c in value["cells"]] == ["failed", "uploaded"]
    assert _folders(tmp_path / "out") == {"digits/mlas_cpu"}
    az.mood("")
    again = _run(*args, "--resume")
    assert [c["upload_status"] for c in again["cells"]] == ["uploaded", "uploaded"]
    assert again["cells"][0]["seconds"] == value["cells"][0]["seconds"]  # published, not built again


@pytest.mark.registry
def test_wrong_credentials_stop_the_run_before_anything_is_built(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "htpasswd").write_text(f"user:{PASSWORD_HASH}\n")
    (tmp_path / "server").mkdir()
    server = RegistryServer(
        tmp_path / "server", auth=f"auth:\n  htpasswd:\n    realm: r\n    path: {tmp_path / 'htpasswd'}\n"
    )
    try:
        monkeypatch.setenv("WINML_FEED_USER", "user")
        monkeypatch.setenv("WINML_FEED_PASSWORD", "wrong")
        failed(winml("matrix", "run", "--sample", *ONE, "--feed", server.address, "-o", tmp_path / "out"), 3)
        assert not (tmp_path / "out").exists()
    finally:
        server.kill()


@pytest.mark.registry
def test_a_tag_that_another_writer_moved_is_noticed_and_left_alone(
    tmp_path: Path, store: Path, registry: RegistryServer
) -> None:
    args = ("--sample", *ONE, "--feed", registry.address, "--run-stamp", "moved", "-o", tmp_path / "out")
    cell = _run(*args)["cells"][0]
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").write_bytes(b"{}")
    raw = manifest_of(scan(other).content, cell["version"])  # its one file is the empty config that is there
    with closing(Registry(f"http://{registry.host}", None)) as client:
        client.put_manifest("models/digits", cell["version"], raw)
    value = _run(*args, "--resume", code=1)
    assert "another writer moved its version" in value["cells"][0]["error"]


def _kill_at(process: subprocess.Popen[bytes], moment: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 500  # a cell took two minutes under Wine on a machine with a load of 12
    while process.poll() is None and not moment():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait()


def _records(output: Path, kind: str) -> list[str]:
    """The versions of the cells of which the journal has such a record."""
    path = output / "journal.jsonl"
    content = path.read_bytes() if path.exists() else b""
    return [record["version"] for record in parse(content, source=str(path)).records if record["record"] == kind]


def test_a_run_that_is_killed_after_a_cell_leaves_no_process_and_goes_on_with_the_rest(tmp_path: Path) -> None:
    feed, out = f"folder:{tmp_path / 'feed'}", tmp_path / "out"
    args = ("--sample", "--targets", "cpu,dml,openvino/gpu", "--no-analyze", "--feed", feed, "--run-stamp", "s1")
    argv = [sys.executable, "-m", "winml.modelkit", "matrix", "run", *map(str, args), "--jobs", "1", "-o", str(out)]
    client = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started: set[psutil.Process] = set()

    def published() -> bool:
        with suppress(psutil.NoSuchProcess):
            started.update(psutil.Process(client.pid).children(recursive=True))
        return bool(_records(out, "upload"))

    _kill_at(client, published)
    assert client.returncode != 0  # killed, not done
    assert started
    assert psutil.wait_procs(started, timeout=60)[1] == []
    before = _records(out, "upload")
    value = _run(*args, "--resume", "-o", out)
    assert {c["upload_status"] for c in value["cells"]} == {"uploaded"}
    assert _versions(feed) == sorted(c["version"] for c in value["cells"])
    uploads = _records(out, "upload")
    assert uploads[: len(before)] == before
    assert sorted(uploads) == _versions(feed)
    assert winml("feed", "verify", "-m", "digits", "--feed", feed).returncode == 0
    assert _folders(out) == set()
    assert list((out / ".matrix/building").iterdir()) == []


@pytest.mark.registry
@pytest.mark.skopeo
def test_kills_of_client_and_registry_lose_nothing_and_publish_every_cell_once(
    tmp_path: Path, store: Path, zoo: Path
) -> None:
    """The short form of benchmarks/matrix/kill.py."""
    (tmp_path / "registry").mkdir()
    server = RegistryServer(tmp_path / "registry")
    out = tmp_path / "out"
    (tmp_path / "list.txt").write_text(f"{sample.MODEL}\n{zoo / 'conv.onnx'}\n")
    args = ("--models", tmp_path / "list.txt", *TWO, "--jobs", "2", "--feed", server.address, "--run-stamp", "s1")
    argv = [sys.executable, "-m", "winml.modelkit", "matrix", "run", *map(str, args), "--resume", "-o", str(out)]

    def journal() -> str:
        path = out / "journal.jsonl"
        return path.read_text() if path.exists() else ""

    try:
        for word in ('"record":"run"', '"record":"build"', '"record":"upload"'):
            before = journal().count(word)
            client = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _kill_at(client, lambda: journal().count(word) > before)  # noqa: B023 - used before the next round
        server.kill()
        assert winml(*argv[3:]).returncode == 3
        server.start()
        value = _run(*args, "--resume", "-o", out)
        assert {c["upload_status"] for c in value["cells"]} == {"uploaded"}
        for package in ("digits", "conv"):
            assert len(_versions(server.address, package)) == 2
            assert winml("feed", "verify", "-m", package, "--feed", server.address).returncode == 0
        assert _run(*args, "--resume", "-o", tmp_path / "fresh")["sent_bytes"] == 0
        assert _folders(out) == set()
        _copied_by_skopeo(server, value["cells"][0], tmp_path)
    finally:
        server.kill()
    assert not [p for p in psutil.process_iter(["cmdline"]) if str(out) in " ".join(p.info["cmdline"] or ())]


def _copied_by_skopeo(server: RegistryServer, cell: dict[str, Any], folder: Path) -> None:
    found = skopeo()
    assert found is not None
    program, env = found
    source = f"docker://{server.host}/models/{cell['package']}:{cell['version']}"
    subprocess.run(
        [program, "--insecure-policy", "copy", "--src-tls-verify=false", source, f"dir:{folder / 'copy'}"],
        check=True, env=env, capture_output=True,
    )  # fmt: skip
    assert any(len(content) > 100_000 for content in contents(folder / "copy").values())


def test_ctrl_c_ends_the_builds_and_says_how_to_go_on(tmp_path: Path, zoo: Path) -> None:
    out = tmp_path / "out"
    argv = ["matrix", "run", "-m", str(zoo / "hang.onnx"), *ONE, "--run-stamp", "s1", "-o", str(out)]
    process = start([sys.executable, "-m", "winml.modelkit", *argv])
    try:
        deadline = time.monotonic() + 500
        while not list((out / ".matrix/running").glob("[0-9]*")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        press_ctrl_c(process)
        _, text = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, text
    assert "--resume --run-stamp s1" in text
    assert not list((out / ".matrix/running").glob("[0-9]*"))
