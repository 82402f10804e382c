from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from winml.modelkit.session.monitor.hw_monitor import HWMonitor
from winml.modelkit.session.report import Usage

FAST_S = 0.01


def _busy(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_samples_this_process_and_the_machine() -> None:
    seen: list[Mapping[str, float]] = []
    with HWMonitor(interval_s=FAST_S, on_sample=seen.append) as monitor:
        _busy(0.3)
    summary = monitor.summary()
    assert summary.samples == len(seen) >= 3
    assert summary.sources["process_cpu_pct"].max > 10
    assert summary.sources["process_memory_bytes"].mean > 2**20
    assert {"cpu_pct", "memory_pct"} <= set(summary.sources)
    assert set(summary.sources) | set(summary.missing) >= {"load", "frequency_mhz", "gpu_pct", "npu_pct"}


def test_a_block_shorter_than_the_interval_has_a_sample_too() -> None:
    with HWMonitor(interval_s=60) as monitor:
        pass
    assert monitor.summary().samples == 1


@pytest.mark.posix("a tree of sysfs")
def test_reads_a_gpu_and_an_npu_from_sysfs(tmp_path: Path) -> None:
    gpu, npu = tmp_path / "class/drm/card0/device", tmp_path / "class/accel/accel0/device"
    gpu.mkdir(parents=True)
    npu.mkdir(parents=True)
    (gpu / "gpu_busy_percent").write_text("37\n")
    (npu / "npu_busy_time_us").write_text("1000\n")
    with HWMonitor(interval_s=FAST_S, sysfs=tmp_path) as monitor:
        time.sleep(0.05)
        (npu / "npu_busy_time_us").write_text("9000000\n")
        time.sleep(0.05)
    sources = monitor.summary().sources
    assert sources["gpu_pct"] == Usage(mean=37.0, min=37.0, max=37.0)
    assert (sources["npu_pct"].min, sources["npu_pct"].max) == (0.0, 100.0)


@pytest.mark.posix("a tree of sysfs")
def test_a_source_that_is_missing_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    with HWMonitor(interval_s=FAST_S, sysfs=tmp_path) as monitor:
        _busy(0.05)
    assert monitor.missing["npu_pct"] == "no NPU on this machine reports its load"
    assert monitor.summary().sources


@pytest.mark.posix("a tree of sysfs")
def test_a_source_that_breaks_while_it_is_sampled_keeps_what_it_gave(tmp_path: Path) -> None:
    gpu = tmp_path / "class/drm/card0/device"
    gpu.mkdir(parents=True)
    (gpu / "gpu_busy_percent").write_text("50")
    with HWMonitor(interval_s=FAST_S, sysfs=tmp_path) as monitor:
        time.sleep(0.05)
        (gpu / "gpu_busy_percent").unlink()
        time.sleep(0.05)
    assert monitor.summary().sources["gpu_pct"].mean == 50
    assert "gpu_pct" not in monitor.missing


def test_a_process_that_is_gone_is_a_missing_source() -> None:
    with HWMonitor(2**22 - 3, interval_s=FAST_S) as monitor:
        pass
    assert "NoSuchProcess" in monitor.missing["process_cpu_pct"]
