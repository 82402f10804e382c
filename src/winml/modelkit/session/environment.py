"""The machine and the runtime that every measurement records."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import numpy as np
import onnxruntime

from winml.modelkit import __version__
from winml.modelkit.core.environment import Environment, EPVersion, Machine, Power, RuntimeVersion


def _cpu_name() -> str | None:
    if sys.platform == "linux":
        try:
            lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return None
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        return names[0] if names else None
    return platform.processor() or None


def load() -> float | None:
    """The one-minute load average, None where the system has none."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def pressure() -> float | None:
    """Share in percent of the last 10 s in which something waited for a CPU (Linux PSI), None where unknown."""
    try:
        first = Path("/proc/pressure/cpu").read_text(encoding="ascii").split()
    except OSError:
        return None
    return float(first[1].partition("=")[2])


def _governor() -> str | None:
    try:
        return Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text(encoding="ascii").strip()
    except OSError:
        return None


def _priority() -> int | None:
    if sys.platform == "win32":
        return None
    return os.getpriority(os.PRIO_PROCESS, 0)


def usable_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def environment(ep: str, ep_version: str | None) -> Environment:
    """Where this process measures; None for what the system does not report."""
    machine = Machine(
        system=platform.system(),
        release=platform.release(),
        architecture=platform.machine(),
        cpu=_cpu_name(),
        cores=usable_cores(),
    )
    return Environment(
        machine=machine,
        winml=__version__,
        python=platform.python_version(),
        numpy=np.__version__,
        runtime=RuntimeVersion(name="onnxruntime", version=onnxruntime.__version__),
        ep=EPVersion(name=ep, version=ep_version),
        power=Power(governor=_governor()),
        priority=_priority(),
        load=load(),
        pressure_pct=pressure(),
    )
