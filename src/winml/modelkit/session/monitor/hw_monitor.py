"""HWMonitor: what the machine did beside a timed loop, sampled in a thread.

A source that this machine does not have is reported with the reason; it never ends the measurement.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, TypeVar

from winml.modelkit.core.statistics import mean
from winml.modelkit.session.report import Usage, Utilization

Read = Callable[[], float | None]
"""A source; None when it has nothing to say at the moment."""
Answer = TypeVar("Answer")
INTERVAL_S = 0.1
SYSFS = Path("/sys")
_NOT_USED = "it was not in use"


class SourceMissing(Exception):
    """A source is missing on this machine; the message says why."""


def _process(pid: int) -> dict[str, Callable[[], Read]]:
    def cpu() -> Read:
        import psutil

        process = psutil.Process(pid)
        process.cpu_percent(None)
        return lambda: float(process.cpu_percent(None))

    def memory() -> Read:
        import psutil

        process = psutil.Process(pid)
        return lambda: float(process.memory_info().rss)

    return {"process_cpu_pct": cpu, "process_memory_bytes": memory}


def _cpu() -> Read:
    import psutil

    psutil.cpu_percent(None)
    return lambda: float(psutil.cpu_percent(None))


def _memory() -> Read:
    import psutil

    return lambda: float(psutil.virtual_memory().percent)


def _frequency() -> Read:
    import psutil

    def read() -> float:
        found = psutil.cpu_freq()
        if found is None or not found.current:
            raise SourceMissing("the system does not report the CPU frequency")
        return float(found.current)

    read()
    return read


def _load() -> Read:
    if sys.platform == "win32":
        raise SourceMissing("Windows has no load average")
    return lambda: os.getloadavg()[0]


def _amd_gpu(sysfs: Path) -> Read:
    files = sorted(sysfs.glob("class/drm/card*/device/gpu_busy_percent"))
    if not files:
        raise SourceMissing("no GPU on this machine reports its load")
    return lambda: max(float(f.read_text("ascii")) for f in files)


def _intel_npu(sysfs: Path) -> Read:
    """The driver counts busy microseconds; the share is what they grew by since the last sample."""
    files = sorted(sysfs.glob("class/accel/accel*/device/npu_busy_time_us"))
    if not files:
        raise SourceMissing("no NPU on this machine reports its load")
    last = [time.monotonic(), float(files[0].read_text("ascii"))]

    def read() -> float:
        now, busy = time.monotonic(), float(files[0].read_text("ascii"))
        share = (busy - last[1]) / max((now - last[0]) * 1e6, 1.0)
        last[:] = [now, busy]
        return min(100.0, 100.0 * share)

    return read


class _NvmlUtilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


def _nvidia_gpu() -> Read:
    name = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"
    try:
        nvml = ctypes.CDLL(name)
    except OSError as error:
        raise SourceMissing("no GPU on this machine reports its load") from error
    device = ctypes.c_void_p()
    if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)):
        raise SourceMissing("the NVIDIA driver has no device")

    def read() -> float:
        found = _NvmlUtilization()
        if nvml.nvmlDeviceGetUtilizationRates(device, ctypes.byref(found)):
            raise SourceMissing("the NVIDIA driver does not report utilisation")
        return float(found.gpu)

    return read


def _engines(kind: Literal["gpu", "npu"]) -> Read:
    """The busiest engine of all GPUs or NPUs; Windows lists both as GPUs, and those alone that a process uses."""
    from winml.modelkit.session.monitor.windows_counters import adapter_load, counter_values

    read = counter_values(r"\GPU Engine(*)\Utilization Percentage")
    return lambda: adapter_load(read(), kind)


def _gpu(sysfs: Path) -> Read:
    if sys.platform == "win32":
        return _engines("gpu")
    try:
        return _amd_gpu(sysfs)
    except SourceMissing:
        return _nvidia_gpu()


def _npu(sysfs: Path) -> Read:
    return _engines("npu") if sys.platform == "win32" else _intel_npu(sysfs)


def _sources(pid: int, sysfs: Path) -> dict[str, Callable[[], Read]]:
    return {
        "cpu_pct": _cpu,
        **_process(pid),
        "memory_pct": _memory,
        "load": _load,
        "frequency_mhz": _frequency,
        "gpu_pct": lambda: _gpu(sysfs),
        "npu_pct": lambda: _npu(sysfs),
    }


class HWMonitor:
    """Samples the machine and one process until it is left."""

    def __init__(
        self,
        pid: int | None = None,
        *,
        interval_s: float = INTERVAL_S,
        on_sample: Callable[[Mapping[str, float]], None] = lambda _: None,
        sysfs: Path = SYSFS,
    ) -> None:
        """`on_sample` is called from the sampling thread."""
        self._interval_s = interval_s
        self._on_sample = on_sample
        self._samples: dict[str, list[float]] = {}
        self.missing: dict[str, str] = {}
        """Sources this machine does not have, with the reason."""
        self._reads: dict[str, Read] = {}
        for name, source in _sources(os.getpid() if pid is None else pid, sysfs).items():
            read = self._ask_source(name, source)
            if read is not None:
                self._reads[name] = read
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def _ask_source(self, name: str, ask: Callable[[], Answer]) -> Answer | None:
        """The answer of a source; one that has none is not asked again."""
        try:
            return ask()
        except Exception as error:  # noqa: BLE001 - whatever a driver does, measuring continues
            self._reads.pop(name, None)
            if name not in self._samples:
                self.missing[name] = (
                    str(error) if isinstance(error, SourceMissing) else f"{type(error).__name__}: {error}"
                )
            return None

    def _sample(self) -> None:
        ended = False
        while not ended:
            # One more sample at the end, so that a short loop has one too.
            ended = self._stop.wait(self._interval_s)
            answers = {name: self._ask_source(name, read) for name, read in list(self._reads.items())}
            latest = {name: value for name, value in answers.items() if value is not None}
            for name, value in latest.items():
                self._samples.setdefault(name, []).append(value)
            if latest:
                self._on_sample(latest)

    def __enter__(self) -> HWMonitor:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def summary(self) -> Utilization:
        """Mean, lowest and highest of every source, and the sources that are missing."""
        return Utilization(
            interval_s=self._interval_s,
            samples=max(map(len, self._samples.values()), default=0),
            sources={
                name: Usage(mean=mean(values), min=min(values), max=max(values))
                for name, values in self._samples.items()
            },
            missing={**{name: _NOT_USED for name in self._reads if name not in self._samples}, **self.missing},
        )
