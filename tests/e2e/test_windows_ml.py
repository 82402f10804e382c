"""The catalog of Windows ML through Microsoft's package `windowsml`, above a stand-in for its library.

The library itself needs a real Windows; `scripts/windows/windowsml_catalog.c` answers in its place.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from program import failed, valid
from program import winml_process as winml  # the path of its packages is that of a new interpreter

pytestmark = pytest.mark.windows

_READY, _NOT_READY, _NOT_PRESENT = 0, 1, 2


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What Windows offers here: one provider on the machine, one that is not downloaded."""
    package = os.environ.get("WINML_TEST_WINDOWSML")
    if package is None:
        pytest.skip("needs the package windowsml above the stand-in, in WINML_TEST_WINDOWSML")
    path = tmp_path / "catalog.txt"
    library = tmp_path / "no such library.dll"
    path.write_text(
        f"OpenVINOExecutionProvider|1.8.63.0|{_NOT_READY}|{library}\n"
        f"VitisAIExecutionProvider|1.8.52.0|{_NOT_PRESENT}|{library}\n"
    )
    monkeypatch.setenv("WINML_TEST_CATALOG", str(path))
    monkeypatch.setenv("PYTHONPATH", package)
    return path


def test_what_is_offered_is_downloaded_when_asked_for_and_never_before(catalog: Path) -> None:
    log = catalog.with_name("catalog.txt.log")
    eps = {entry["ep"]: entry for entry in valid(winml("sys", "--json").stdout)["eps"]}
    (vitis,) = (entry["targets"][0] for entry in eps["vitisai"]["installations"])
    assert (vitis["status"], vitis["hint"]) == ("missing", "`winml ep install vitisai` downloads it")
    openvino = [row for entry in eps["openvino"]["installations"] for row in entry["targets"]]
    assert {row["status"] for row in openvino} == {"does-not-load"}, "it is on the machine, and its library is none"
    (nv,) = (entry["targets"][0] for entry in eps["nvtensorrtrtx"]["installations"])
    assert "offers no `NvTensorRTRTXExecutionProvider`" in nv["reason"]
    assert not log.exists()

    refused = failed(winml("perf", "--sample", "--target", "vitisai/npu"), 3)
    assert "not downloaded" in refused
    assert "winml ep install vitisai" in refused
    assert not log.exists()

    done = winml("ep", "install", "vitisai", "--json")
    assert done.returncode == 0, done.stderr
    found = valid(done.stdout)["windows_ml"]
    assert (found["ep"], found["version"], found["downloaded"]) == ("vitisai", "1.8.52.0", True)
    assert "note: 50 % of `vitisai`" in done.stderr
    assert log.read_text().split() == ["VitisAIExecutionProvider"]
    assert json.loads(winml("ep", "install", "vitisai", "--json").stdout)["windows_ml"]["downloaded"] is False
