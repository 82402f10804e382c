"""A program: runs a model with the openvino package and writes what every operator took.

Started in a process of its own, because the package and the EP bring OpenVINO libraries of one name and two builds.
Imports nothing of winml.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def _text(value: Any) -> str:
    return str(getattr(value, "value", value))


def _originals(compiled: Any) -> dict[str, list[str]]:
    """The names of the model's own operators behind every operator that runs."""
    found = {}
    for operator in compiled.get_runtime_model().get_ordered_ops():
        names = _text(operator.get_rt_info()["originalLayersNames"])
        found[operator.get_friendly_name()] = [name for name in names.split(",") if name]
    return found


def _run(request: Any, feed: dict[str, Any]) -> dict[str, Any]:
    before = time.perf_counter_ns()
    request.infer(feed)
    wall_ns = time.perf_counter_ns() - before
    nodes = [
        {
            "name": info.node_name,
            "type": info.node_type,
            "kernel": info.exec_type,
            "us": info.real_time.total_seconds() * 1e6,
        }
        for info in request.profiling_info
        if info.status.name == "EXECUTED"
    ]
    return {"wall_ns": wall_ns, "nodes": nodes}


def main(job_path: str) -> None:
    """Do the job described in a JSON file and write the answer beside it."""
    import openvino

    job = json.loads(Path(job_path).read_text(encoding="utf-8"))  # noqa: TID251 - our own file; this runs by itself
    core = openvino.Core()
    model = core.read_model(job["model"])
    with np.load(job["inputs"]) as stored:
        feed = {name: stored[f"i{at}"] for at, name in enumerate(job["names"])}
    if model.is_dynamic():
        model.reshape({name: list(array.shape) for name, array in feed.items()})
    compiled = core.compile_model(model, job["device"], {"PERF_COUNT": True, **job["config"]})
    request = compiled.create_infer_request()
    runs = [_run(request, feed) for _ in range(job["runs"])]
    answer = {"version": openvino.__version__, "originals": _originals(compiled), "runs": runs}
    Path(job["answer"]).write_text(json.dumps(answer), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1])
