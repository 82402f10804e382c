"""OpenVINOMonitor: a pass of its own with the openvino package, because the EP runs a partition as one kernel.

The pass runs outside ONNX Runtime, on the inputs of the observed runs, with the EP's own version, device and precision;
its times are its own and are labelled so.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.op_trace import OperatorMetrics, OpTraceResult, TracingLevel, with_shares
from winml.modelkit.core.statistics import mean
from winml.modelkit.ep.openvino import openvino_inside
from winml.modelkit.session.monitor.ep_monitor import EPMonitor, Observation
from winml.modelkit.session.monitor.op_mapping import RuntimeOp, map_operators, place_operators
from winml.modelkit.session.monitor.ort_monitor import NO_DETAIL, model_outline
from winml.modelkit.session.monitor.run_folder import RunFolder
from winml.modelkit.worker.command import run_command

EP = "OpenVINOExecutionProvider"
PROGRAM = Path(__file__).parent / "openvino" / "traced_pass.py"
TIMEOUT_S = 600.0
INSTALL = "`winml ep install openvino --rebuild` installs the matching one beside the EP"
_PRECISIONS = {"FP32": "f32", "FP16": "f16"}
_DEFAULTS = {"cpu": "FP32", "gpu": "FP16", "npu": "FP16"}
"""The precision the EP computes floats in when its `precision` option is not set."""

_ONNX_TYPES = {"Convolution": "Conv", "FullyConnected": "Gemm"}
"""OpenVINO's operators that take in others, by the ONNX operator that does the same."""


class PassFailed(Exception):
    """There is no traced pass; the message says why."""


def _ep_version() -> str | None:
    """The OpenVINO inside the EP's package in this environment."""
    for module in ("onnxruntime_ep_openvino", "onnxruntime"):
        spec = find_spec(module)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            version = openvino_inside(Path(folder))
            if version is not None:
                return version
    return None


class OpenVINOMonitor(EPMonitor):
    """Operator times of the same model, inputs, device and precision, taken with the openvino package."""

    ep_name: ClassVar[str | None] = "openvino"
    backend: ClassVar[str] = "openvino, outside onnxruntime"

    def __init__(self, level: TracingLevel = "basic", output_dir: str | os.PathLike[str] | None = None) -> None:
        super().__init__(level)
        self._folder = RunFolder(output_dir, "openvino_pass_")

    @classmethod
    def _available(cls) -> bool:
        return find_spec("openvino") is not None and _ep_version() is not None

    @property
    def output_dir(self) -> Path:
        return self._folder.path

    def cleanup(self) -> None:
        """Remove the temporary folder, if it is one."""
        self._folder.cleanup()

    def _prepare(self) -> None:
        self._folder.prepare()

    def _collect(self) -> OpTraceResult:
        if self._observation is None or not self._observation.wall_ns:
            return self.failure("no_data", "no run was observed, so there is nothing to repeat with openvino")
        try:
            answer = self._pass(self._observation)
        except PassFailed as error:
            return self.failure("no_data", str(error))
        return self._result_of(answer, self._observation)

    def _config(self, seen: Observation) -> dict[str, str]:
        options = seen.provider_options
        precision = options.get("precision", _DEFAULTS[seen.target.device])
        config = {"INFERENCE_PRECISION_HINT": _PRECISIONS[precision]} if precision in _PRECISIONS else {}
        if "num_of_threads" in options:
            config["INFERENCE_NUM_THREADS"] = options["num_of_threads"]
        return config

    def _pass(self, seen: Observation) -> dict[str, Any]:
        """What the program answers; it runs as often as was observed."""
        if find_spec("openvino") is None:
            raise PassFailed(f"the openvino package is not in this environment; {INSTALL}")
        folder = self._folder.path
        np.savez(folder / "inputs.npz", **{f"i{at}": array for at, array in enumerate(seen.inputs.values())})
        job: dict[str, Any] = {
            "model": seen.model,
            "inputs": str(folder / "inputs.npz"),
            "names": list(seen.inputs),
            "device": seen.provider_options.get("device_type", seen.target.device.upper()),
            "config": self._config(seen),
            "runs": seen.warmup_runs + len(seen.wall_ns),
            "answer": str(folder / "openvino_pass.json"),
        }
        job_file = folder / "job.json"
        job_file.write_text(json.dumps(job), encoding="utf-8", newline="\n")
        argv = [sys.executable, "-I", str(PROGRAM), str(job_file)]
        done = run_command(argv, cwd=folder, log=folder / "openvino_pass.log", timeout_s=TIMEOUT_S)
        if not done.ok:
            how = f"took longer than {TIMEOUT_S:g} s" if done.returncode is None else "failed"
            raise PassFailed(f"the traced pass with openvino {how}: {' '.join(done.tail(3))}")
        answer: dict[str, Any] = read_json(Path(job["answer"]), lenient=True)
        _check_version(answer["version"])
        return answer

    def _result_of(self, answer: Mapping[str, Any], seen: Observation) -> OpTraceResult:
        skip = seen.warmup_runs
        kinds: dict[str, Mapping[str, Any]] = {}
        for run in answer["runs"]:
            for node in run["nodes"]:
                kinds.setdefault(node["name"], node)
        originals: Mapping[str, list[str]] = answer["originals"]
        ops = [RuntimeOp(name, _sources(originals.get(name) or [name], node["type"])) for name, node in kinds.items()]
        mapping = map_operators(model_outline(seen), ops)
        samples = {name: [_us(run, name) for run in answer["runs"]] for name in kinds}
        operators = [
            OperatorMetrics(
                op_path=name,
                ep=EP,
                unit="us",
                samples=tuple(v for v in samples[name][skip:] if v is not None),
                warmup=tuple(v for v in samples[name][:skip] if v is not None),
                op_type=node["type"],
                data_type=node["kernel"],
            )
            for name, node in kinds.items()
        ]
        total = sum(o.average or 0.0 for o in operators)
        pass_us = mean([run["wall_ns"] for run in answer["runs"][skip:]]) / 1000.0
        fallback = self.level == "detail"
        return OpTraceResult(
            self.metadata(warmup=skip, samples=len(answer["runs"]) - skip),
            "basic_fallback" if fallback else "ok",
            with_shares(place_operators(operators, mapping)),
            {
                "unit": "us",
                "operators_us": total,
                "end_to_end_us": pass_us,
                "unexplained_us": pass_us - total,
                "unexplained_pct": 100.0 * (pass_us - total) / pass_us,
                "session_us": mean(seen.wall_ns) / 1000.0,
                "openvino_version": answer["version"],
                "absorbed_nodes": list(mapping.absorbed),
                "notes": ["times are those of a pass outside onnxruntime; `session_us` is what the session took"],
            },
            {"pass": str(self._folder.path / "openvino_pass.json")},
            fallback_reason=NO_DETAIL if fallback else None,
        )


def _us(run: Mapping[str, Any], name: str) -> float | None:
    found = [float(node["us"]) for node in run["nodes"] if node["name"] == name]
    return sum(found) if found else None


def _sources(names: list[str], kind: str) -> tuple[tuple[str, str | None], ...]:
    """OpenVINO appends what it made of an operator to its name: `conv/WithoutBiases`."""
    plain = dict.fromkeys(name.removesuffix("/WithoutBiases") for name in names)
    return tuple((name, _ONNX_TYPES.get(kind)) for name in plain)


def _check_version(found: str) -> None:
    wanted = _ep_version()
    if wanted is not None and not found.startswith(wanted):
        raise PassFailed(f"openvino {found.split('-')[0]} is installed, but the EP holds {wanted}; {INSTALL}")
