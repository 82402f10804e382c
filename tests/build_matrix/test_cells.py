from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from build_values import DIGEST, manifest
from winml.modelkit.build_matrix.cells import Builder, BuildOptions, build_words
from winml.modelkit.build_matrix.models import MatrixModel
from winml.modelkit.build_matrix.plan import COMBOS, plan
from winml.modelkit.build_matrix.run_folder import MatrixFolder, manifest_of
from winml.modelkit.core.errors import DiskFull, RunFailedError
from winml.modelkit.core.values import to_json
from winml.modelkit.dispatch.base import Result
from winml.modelkit.store.cache import Cache

NPU, GPU = plan([MatrixModel("org/bert", "org/bert", "fill-mask")], COMBOS[:2], run_stamp="s")

FAILED = {
    "ok": False,
    "error": {"code": "invalid-data", "message": "no data", "hint": None, "exit": 2},
    "stage": "quantize",
}


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    (tmp_path / "out").mkdir()
    return Builder(MatrixFolder(tmp_path / "out"), Cache(tmp_path / "cache"), BuildOptions(timeout_s=9.0))


def test_a_cell_is_a_build_with_its_target_and_precision() -> None:
    assert build_words(NPU, BuildOptions("random", ("--no-analyze",))) == [
        "build", "-m", "org/bert", "--target", "qnn/npu", "-p", "w8a16", "--task", "fill-mask", "--calibration",
        "random", "--no-analyze",
    ]  # fmt: skip
    own = replace(NPU, model=replace(NPU.model, data="/d.npz"))
    assert build_words(own, BuildOptions("random"))[-2:] == ["--calibration", "/d.npz"]
    assert "--calibration" not in build_words(GPU, BuildOptions("/d.npz"))  # fp32 needs none
    assert "--compile" in build_words(replace(GPU, compile=True), BuildOptions())


@pytest.mark.parametrize(
    ("result", "status", "stage", "error"),
    [
        (Result("v", "timeout", None, "", "", 9.0), "timeout", "load", "took longer than 9 s"),
        (Result("v", "lost", -9, "", "", 1.0), "failed", "load", "was killed by the system (SIGKILL)"),
        (Result("v", "failed", 70, "", "Traceback\nboom", 1.0), "failed", "load", "exit code 70; Traceback; boom"),
        (Result("v", "ok", 0, "no JSON", "", 1.0), "failed", "load", "the build"),
        (Result("v", "failed", 1, json.dumps(FAILED), "", 1.0), "failed", "quantize", "no data"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_the_cells_result_and_only_its_log_stays(
    builder: Builder, result: Result, status: str, stage: str, error: str
) -> None:
    job = builder.job(GPU)
    staged = Path(job.argv[job.argv.index("-o") + 1])
    staged.mkdir()
    build = builder.accept(GPU, result)
    assert (build.status, build.stage) == (status, stage)
    assert error in (build.error or "")
    assert not staged.exists()
    assert (builder.folder.path / "logs/org-bert-fill-mask.qnn_gpu.log").is_file()


def test_a_full_disk_is_no_result_of_a_cell(builder: Builder) -> None:
    builder.job(GPU)
    answer = {
        "ok": False,
        "error": {"code": "disk-full", "message": "disk full while writing `x`", "hint": "free some", "exit": 3},
    }
    with pytest.raises(DiskFull, match="disk full"):
        builder.accept(GPU, Result("v", "failed", 3, json.dumps(answer), "", 1.0))


def test_work_of_processes_that_are_gone_goes_with_them(builder: Builder) -> None:
    builder.job(GPU)
    for pid in (7, 8):
        (builder.cache.root / f"{Cache.work_prefix(pid)}x").mkdir(parents=True)
    builder.accept(GPU, Result("v", "timeout", None, "", "", 1.0, pids=(7,)))
    assert [path.name for path in builder.cache.root.glob(".*")] == [f"{Cache.work_prefix(8)}x"]


@pytest.mark.parametrize("names", [{"folder": ("../../x",)}, {"objects": {"/etc/x": DIGEST}}])
def test_a_manifest_names_files_of_its_own_folder(tmp_path: Path, names: dict[str, object]) -> None:
    """A node of a cluster may send any manifest back, and files it names are replaced by links."""
    (tmp_path / "build_manifest.json").write_text(json.dumps(to_json(manifest(**names))))
    with pytest.raises(RunFailedError, match="which is outside its folder"):
        manifest_of(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "has no build_manifest.json"),
        ("[]", "has no build_manifest.json"),
        ('{"schema": "winml/build-manifest/1"}', "is missing"),
    ],
)
def test_a_build_without_a_manifest_that_can_be_read_has_failed(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "build_manifest.json").write_text(text)
    with pytest.raises(RunFailedError, match=message):
        manifest_of(tmp_path)
