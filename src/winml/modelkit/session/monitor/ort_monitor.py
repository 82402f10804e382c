"""ORTMonitor: the runtime's own profiler, for the CPU EP and every EP without a monitor of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from winml.modelkit.core.errors import ModelFileError
from winml.modelkit.core.op_trace import OperatorMetrics, OpTraceResult, TracingLevel, with_shares
from winml.modelkit.core.statistics import mean
from winml.modelkit.graph.outline import Outline, outline
from winml.modelkit.session.monitor.ep_monitor import EPMonitor, Observation
from winml.modelkit.session.monitor.op_mapping import RuntimeOp, map_operators, place_operators
from winml.modelkit.session.monitor.ort_profile import NodeEvent, Profile, ProfileRun, read_profile
from winml.modelkit.session.monitor.run_folder import RunFolder
from winml.modelkit.session.options import PROFILE_PREFIX, SAVED_GRAPH

NO_DETAIL = "level_unsupported"
GPU_NOTE = "the runtime's profiler times the launch of GPU kernels, not their run"

Key = tuple[str, str, str]


def model_outline(observation: Observation | None) -> Outline:
    """The nodes of the observed model; none where its file cannot be read any more."""
    try:
        return outline(Path(observation.model)) if observation and observation.model else Outline((), frozenset())
    except ModelFileError:
        return Outline((), frozenset())


def end_to_end(observation: Observation | None, operators_us: float) -> dict[str, Any]:
    """The session's own run time against the sum of its operators; null where nothing was measured."""
    if observation is None or not observation.wall_ns:
        return {"end_to_end_us": None, "unexplained_us": None, "unexplained_pct": None}
    wall_us = mean(observation.wall_ns) / 1000.0
    rest = wall_us - operators_us
    return {"end_to_end_us": wall_us, "unexplained_us": rest, "unexplained_pct": 100.0 * rest / wall_us}


def _key(node: NodeEvent) -> Key:
    return node.name, node.op_type, node.provider


def _per_run(runs: Sequence[ProfileRun]) -> dict[Key, list[float]]:
    """Microseconds per operator and run; a node that ran several times in a run counts with their sum."""
    samples: dict[Key, list[float]] = {}
    for run in runs:
        sums: dict[Key, float] = {}
        for node in run.nodes:
            sums[_key(node)] = sums.get(_key(node), 0.0) + node.duration_us
        for key, total in sums.items():
            samples.setdefault(key, []).append(total)
    return samples


def split_warmup(profile: Profile, observation: Observation | None) -> tuple[list[ProfileRun], list[ProfileRun]]:
    """Warm-up runs and measured runs."""
    count = 0 if observation is None else observation.warmup_runs
    return profile.runs[:count], profile.runs[count:]


def missing_runs(profile: Profile, observation: Observation | None) -> list[str]:
    """The runtime stops recording after a million events; runs that are missing are no runs that took no time."""
    wanted = 0 if observation is None else observation.warmup_runs + len(observation.wall_ns)
    if len(profile.runs) >= wanted:
        return []
    return [f"the runtime's profile holds {len(profile.runs)} of {wanted} runs; trace fewer with `--iterations`"]


def operators_of(warmup: Sequence[ProfileRun], measured: Sequence[ProfileRun]) -> list[OperatorMetrics]:
    """What the profile says of every operator, in the order they ran."""
    first: dict[Key, NodeEvent] = {}
    starts: dict[Key, float] = {}
    for run in (*measured, *warmup):
        for node in run.nodes:
            first.setdefault(_key(node), node)
            if measured and run is measured[0]:
                starts.setdefault(_key(node), node.start_us - run.start_us)
    timed, warm = _per_run(measured), _per_run(warmup)
    return [
        OperatorMetrics(
            op_path=node.name,
            ep=node.provider,
            unit="us",
            samples=tuple(timed.get(key, ())),
            warmup=tuple(warm.get(key, ())),
            op_type=node.op_type,
            op_id=None if node.node_index is None else str(node.node_index),
            start_time_us=starts.get(key),
            data_type=node.data_type,
            dims=node.dims,
        )
        for key, node in first.items()
    ]


def runtime_op(operator: OperatorMetrics, group: str = "") -> RuntimeOp:
    """An operator of the profile, whose id is its index in the runtime's graph."""
    index = None if operator.op_id is None else int(operator.op_id)
    return RuntimeOp(operator.op_path, ((operator.op_path, operator.op_type),), index, group=group)


def read_profiles(folder: Path, prefix: str) -> tuple[Profile, Mapping[str, str]]:
    """All profiles of a prefix as one, and the files."""
    whole = Profile()
    files = sorted(folder.glob(f"{prefix}*.json"))
    for path in files:
        part = read_profile(path)
        whole.runs += part.runs
        whole.notes += part.notes
    return whole, {f"ort_profile{'' if i == 0 else f'_{i}'}": str(path) for i, path in enumerate(files)}


class ORTMonitor(EPMonitor):
    """Per-node times from ONNX Runtime's profiler, in microseconds."""

    requires_session_teardown: ClassVar[bool] = True  # the profile is written when the session ends
    backend: ClassVar[str] = "onnxruntime profiler"

    def __init__(self, level: TracingLevel = "basic", output_dir: str | os.PathLike[str] | None = None) -> None:
        """`output_dir` is where the profile is kept; without one it goes to a temporary folder."""
        super().__init__(level)
        self._folder = RunFolder(output_dir, "ort_profile_")
        self._prefix = f"ort_profile_{os.getpid()}_{id(self):x}"

    @property
    def output_dir(self) -> Path:
        return self._folder.path

    def cleanup(self) -> None:
        """Remove the temporary folder, if it is one."""
        self._folder.cleanup()

    def get_session_options(self) -> dict[str, str]:
        """The runtime also saves the graph it executes: its values say which nodes a kernel does the work of."""
        return {PROFILE_PREFIX: str(self._folder.path / self._prefix), SAVED_GRAPH: str(self._saved_graph)}

    @property
    def _saved_graph(self) -> Path:
        return self._folder.path / f"{self._prefix}.onnx"

    def _take_saved_graph(self) -> Outline | None:
        """The nodes of the graph the runtime saved; the file goes, for it holds all weights once more."""
        try:
            return outline(self._saved_graph) if self._saved_graph.is_file() else None
        except ModelFileError:
            return None
        finally:
            self._saved_graph.unlink(missing_ok=True)

    def _prepare(self) -> None:
        self._folder.prepare()

    def _collect(self) -> OpTraceResult:
        final = self._take_saved_graph()
        profile, artifacts = read_profiles(self._folder.path, self._prefix)
        if not artifacts:
            return self.failure("no_data", f"the runtime wrote no profile into `{self._folder.path}`")
        warmup, measured = split_warmup(profile, self._observation)
        operators = operators_of(warmup, measured)
        if not any(o.samples for o in operators):
            return OpTraceResult(
                self.metadata(warmup=len(warmup), samples=len(measured)), "no_data", artifacts=artifacts,
                error=f"the profile holds {len(profile.runs)} runs and none of a node after warm-up",
            )  # fmt: skip
        mapping = map_operators(model_outline(self._observation), [runtime_op(o) for o in operators], final)
        total = sum(o.average or 0.0 for o in operators)
        notes = [*profile.notes, *missing_runs(profile, self._observation)]
        if self._observation is not None and self._observation.target.device == "gpu":
            notes.append(GPU_NOTE)
        fallback = self.level == "detail"
        return OpTraceResult(
            self.metadata(warmup=len(warmup), samples=len(measured)),
            "basic_fallback" if fallback else "ok",
            with_shares(place_operators(operators, mapping)),
            {
                "unit": "us",
                "operators_us": total,
                "model_run_us": mean([run.duration_us for run in measured]),
                **end_to_end(self._observation, total),
                "absorbed_nodes": list(mapping.absorbed),
                "mapped_by": "names" if final is None else "graph",
                "notes": notes,
            },
            artifacts,
            fallback_reason=NO_DETAIL if fallback else None,
        )
