"""THE table of monitors: which one observes which EP."""

from __future__ import annotations

import os

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.op_trace import LEVELS, TracingLevel
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.session.monitor.ep_monitor import EPMonitor
from winml.modelkit.session.monitor.openvino_monitor import OpenVINOMonitor
from winml.modelkit.session.monitor.ort_monitor import ORTMonitor
from winml.modelkit.session.monitor.qnn_monitor import QNNMonitor
from winml.modelkit.session.monitor.vitisai_monitor import VitisAIMonitor

FolderMonitor = type[ORTMonitor] | type[QNNMonitor] | type[OpenVINOMonitor] | type[VitisAIMonitor]

MONITORS: dict[str, FolderMonitor] = {
    "cpu": ORTMonitor,
    "qnn": QNNMonitor,
    "openvino": OpenVINOMonitor,
    "dml": ORTMonitor,
    "vitisai": VitisAIMonitor,
    "webgpu": ORTMonitor,
    "nvtensorrtrtx": ORTMonitor,
    "migraphx": ORTMonitor,
    "cuda": ORTMonitor,
}


def monitor_for(ep: str, level: TracingLevel, output_dir: str | os.PathLike[str] | None = None) -> EPMonitor:
    """A new monitor for an EP, named in any case."""
    if level not in LEVELS:
        raise RequestError(f"unknown tracing level `{level}`", hint=did_you_mean(level, LEVELS))
    name = ep.strip().casefold()
    if name not in MONITORS:
        raise RequestError(f"no monitor observes execution provider `{ep}`", hint=did_you_mean(name, MONITORS))
    return MONITORS[name](level, output_dir)
