"""QNNMonitor: cycles per operator from the QNN EP's own profile, mapped to the nodes of the model."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, ClassVar

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.op_trace import OperatorMetrics, OpTraceResult, TracingLevel, with_shares
from winml.modelkit.core.statistics import mean
from winml.modelkit.graph.outline import Outline
from winml.modelkit.session.monitor.ep_monitor import EPMonitor
from winml.modelkit.session.monitor.op_mapping import RuntimeOp, map_operators, place_operators, plain_name
from winml.modelkit.session.monitor.ort_monitor import (
    end_to_end,
    missing_runs,
    model_outline,
    operators_of,
    read_profiles,
    runtime_op,
    split_warmup,
)
from winml.modelkit.session.monitor.ort_profile import ProfileRun
from winml.modelkit.session.monitor.qnn.csv_parser import CsvError, CsvNode, CsvRun, QnnCsv
from winml.modelkit.session.monitor.qnn.op_trace_file import qnn_types
from winml.modelkit.session.monitor.qnn.qhas_parser import Qhas, QhasError, read_qhas
from winml.modelkit.session.monitor.qnn.schematic import find_schematics
from winml.modelkit.session.monitor.qnn.viewer import ViewerFailed, analysis_summary, find_viewer
from winml.modelkit.session.monitor.run_folder import RunFolder
from winml.modelkit.session.options import PROFILE_PREFIX

log = logging.getLogger(__name__)

EP = "QNNExecutionProvider"
PROFILING = {"basic": "detailed", "detail": "optrace"}
RETRIES_S = (0.05, 0.1, 0.2)
"""Waits for a file whose handle a Windows build releases after the session is gone."""
SIMULATED = "cycles are host time of a simulator; they rank operators roughly and say nothing about a device"
_CSV = "qnn_profile.csv"
_LOG = "qnn_profile_qnn.log"
_OP_TRACE = "qnn_op_trace.json"


@dataclass
class _Partition:
    """The runs of one partition, operator by operator."""

    nodes: tuple[CsvNode, ...]
    samples: list[list[float]] = field(default_factory=list)
    """Per run: the value of every operator."""
    times_us: list[list[float | None]] = field(default_factory=list)
    """Per run: the microseconds of every operator, where the profile has them beside cycles."""
    figures: list[CsvRun] = field(default_factory=list)


def _partitions(csv: QnnCsv) -> list[_Partition]:
    found: dict[tuple[tuple[str, str], ...], _Partition] = {}
    for run in csv.runs():
        partition = found.setdefault(run.signature, _Partition(run.nodes))
        partition.samples.append([node.value for node in run.nodes])
        partition.times_us.append([node.time_us for node in run.nodes])
        partition.figures.append(replace(run, nodes=()))
    return [p for p in found.values() if p.nodes]


def _average(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return mean(known) if known else None


class QNNMonitor(EPMonitor):
    """`basic` is the EP's detailed profile; `detail` is its operator trace, read by the SDK's viewer."""

    requires_session_teardown: ClassVar[bool] = True  # Windows builds write the profile when the session is destroyed
    ep_name: ClassVar[str | None] = "qnn"
    backend: ClassVar[str] = "qnn profiling"

    def __init__(
        self,
        level: TracingLevel = "basic",
        output_dir: str | os.PathLike[str] | None = None,
        extra_provider_options: Mapping[str, str] | None = None,
    ) -> None:
        """`extra_provider_options` pass through, but for the two that profiling owns."""
        super().__init__(level)
        self._folder = RunFolder(output_dir, "qnn_profile_")
        self._extra = dict(extra_provider_options or {})
        self._prefix = f"ort_profile_{os.getpid()}_{id(self):x}"
        self._begun_s = 0.0
        self._csv_begin = 0

    @classmethod
    def _available(cls) -> bool:
        from winml.modelkit.session import ep_registry

        return ep_registry.has_devices("qnn")

    @property
    def output_dir(self) -> Path:
        """Where everything the EP writes goes; a temporary folder stays until `cleanup()`."""
        return self._folder.path

    def cleanup(self) -> None:
        """Remove the temporary folder, if it is one."""
        self._folder.cleanup()

    def get_session_options(self) -> dict[str, str]:
        """The runtime's profiler too: it knows the nodes that stayed on the CPU and the time of each partition."""
        return {PROFILE_PREFIX: str(self._folder.path / self._prefix)}

    def get_provider_options(self) -> dict[str, str]:
        return {
            "enable_framework_op_trace": "1",
            "framework_op_trace_dir": str(self._folder.path),
            **self._extra,
            "profiling_level": PROFILING[self.level],
            "profiling_file_path": str(self._folder.path / _CSV),
        }

    def _prepare(self) -> None:
        self._folder.prepare()
        csv = self._folder.path / _CSV
        self._csv_begin = csv.stat().st_size if csv.is_file() else 0
        self._begun_s = time.time()

    def _wait_for(self, path: Path) -> bool:
        """Whether the file is there with something new in it, at once or after the last wait."""
        for wait_s in (*RETRIES_S, None):
            if path.is_file() and path.stat().st_size > self._csv_begin:
                return True
            if wait_s is not None:
                time.sleep(wait_s)
        return False

    def _collect(self) -> OpTraceResult:
        csv = QnnCsv(self._folder.path / _CSV, self._csv_begin)
        if not self._wait_for(csv.path):
            what = "is empty" if csv.path.is_file() else "was not written"
            return self.failure("no_data", f"the profile `{csv.path}` {what}")
        try:
            partitions = _partitions(csv)
        except CsvError as error:
            return replace(
                self.failure("parse_failed", f"`{csv.path}` cannot be used: {error}"), artifacts=self._artifacts({})
            )
        profile, files = read_profiles(self._folder.path, self._prefix)
        warmup, measured = split_warmup(profile, self._observation)
        operators, summary = self._trace(partitions, warmup, measured)
        summary["notes"] = [*csv.notes, *profile.notes, *missing_runs(profile, self._observation), *summary["notes"]]
        samples = max((len(o.samples) for o in operators if o.ep == EP), default=0)
        metadata = self.metadata(warmup=len(warmup), samples=samples)
        if not samples:
            reason = "the profile holds no operator of a run after warm-up"
            return OpTraceResult(metadata, "no_data", artifacts=self._artifacts(files), summary=summary, error=reason)
        result = OpTraceResult(metadata, "ok", with_shares(operators), summary, self._artifacts(files))
        return result if self.level == "basic" else self._add_detail(result, set(summary["partitions"]))

    def _artifacts(self, files: Mapping[str, str]) -> dict[str, str]:
        named = {"csv": _CSV, "qnn_log": _LOG, "op_trace": _OP_TRACE}
        there = {name: self._folder.path / file for name, file in named.items()}
        return {**{name: str(path) for name, path in there.items() if path.exists()}, **files}

    def _trace(
        self, partitions: Sequence[_Partition], warmup: Sequence[ProfileRun], measured: Sequence[ProfileRun]
    ) -> tuple[list[OperatorMetrics], dict[str, Any]]:
        """Operators of the partitions in cycles and nodes on the CPU in microseconds, mapped together."""
        model = model_outline(self._observation)
        types = {n.name: n.op_type for n in self._observation.nodes if n.name} if self._observation else {}
        plain = _model_names([n.name for p in partitions for n in p.nodes if not n.boundary], model)
        on_npu = [_runtime_op(node, number, types, plain) for number, p in enumerate(partitions) for node in p.nodes]
        elsewhere = operators_of(warmup, measured)
        on_cpu = [o for o in elsewhere if o.ep != EP]
        mapping = map_operators(model, [*on_npu, *(runtime_op(o, group=o.ep) for o in on_cpu)])
        skip = self._observation.warmup_runs if self._observation else 0
        kinds = self._qnn_types()
        metrics = [m for number, p in enumerate(partitions) for m in _metrics(p, number, skip, kinds)] + on_cpu
        operators = place_operators(metrics, mapping)
        times = {o.op_path: o.average for o in elsewhere if o.ep == EP}
        operators = _in_order(operators, [o.start_time_us or 0.0 for o in elsewhere if o.ep == EP])
        return operators, {**self._summary(partitions, operators, times), "absorbed_nodes": list(mapping.absorbed)}

    def _qnn_types(self) -> dict[str, str]:
        """The EP writes them when it compiles a model; for a compiled one they may lie beside it."""
        folders = [self._folder.path]
        if self._observation is not None and self._observation.model is not None:
            folders.append(Path(self._observation.model).parent)
        return next((found for folder in folders if (found := qnn_types(folder / _OP_TRACE))), {})

    def _summary(
        self, partitions: Sequence[_Partition], operators: Sequence[OperatorMetrics], times: Mapping[str, float | None]
    ) -> dict[str, Any]:
        skip = self._observation.warmup_runs if self._observation else 0
        runs = [p.figures[skip:] for p in partitions]
        accelerator = [_average([r.accelerator_cycles for r in one]) for one in runs]
        cycles = sum(o.average or 0.0 for o in operators if o.unit == "cycles")
        known = None if not accelerator or None in accelerator else sum(a for a in accelerator if a is not None)
        cpu_us = sum(o.average or 0.0 for o in operators if o.ep != EP)
        simulated = self._observation is not None and self._observation.target.simulated
        return {
            "unit": next((o.unit for o in operators if o.ep == EP), None),
            "hvx_threads": max((r.hvx_threads for one in runs for r in one if r.hvx_threads is not None), default=None),
            "accel_execute_us": _sum([_average([r.accelerator_us for r in one]) for one in runs]),
            "qnn_execute_us": _sum([_average([r.execute_us for r in one]) for one in runs]),
            "accelerator_cycles": known,
            "operators_cycles": cycles,
            "unexplained_cycles": None if known is None else known - cycles,
            "cpu_operators_us": cpu_us,
            "partitions": dict(times),
            **end_to_end(self._observation, cpu_us + sum(t or 0.0 for t in times.values())),
            "notes": [SIMULATED] if simulated else [],
        }

    def _add_detail(self, result: OpTraceResult, partitions: set[str]) -> OpTraceResult:
        """The result with the details of the viewer, or with the reason why there are none."""
        try:
            found, files = self._run_viewer(partitions)
        except ViewerFailed as error:
            log.warning("detail falls back to basic: %s", error)
            return replace(result, status="basic_fallback", fallback_reason=error.reason, error=str(error))
        operators = tuple(replace(o, detail=found.operators.get(o.op_path, {})) for o in result.operators)
        return replace(
            result,
            operators=operators,
            summary={**result.summary, **found.summary},
            artifacts={**result.artifacts, **files},
        )

    def _run_viewer(self, partitions: set[str]) -> tuple[Qhas, dict[str, str]]:
        qnn_log = self._folder.path / _LOG
        if not qnn_log.is_file():
            raise ViewerFailed("qnn_log_missing", f"the EP wrote no {_LOG}")
        viewer = find_viewer()
        schematics = find_schematics(self._folder.path, begun_s=self._begun_s, partitions=partitions)
        if not schematics:
            raise ViewerFailed(
                "schematic_missing", "the EP wrote no schematic of this model into the working directory"
            )
        whole = Qhas({}, {})
        files: dict[str, str] = {}
        for number, schematic in enumerate(schematics):
            path = analysis_summary(viewer, log=qnn_log, schematic=schematic, folder=self._folder.path)
            try:
                part = read_qhas(path)
            except QhasError as error:
                raise ViewerFailed("qhas_parse_failed", f"{path.name}: {error}") from error
            whole = Qhas({**part.summary, **whole.summary}, {**whole.operators, **part.operators})
            files |= {f"qhas_{number}": str(path), f"schematic_{number}": str(schematic)}
        return whole, files


def _in_order(operators: Sequence[OperatorMetrics], partition_starts: Sequence[float]) -> list[OperatorMetrics]:
    """As they ran: the operators of a partition where the runtime started it."""
    starts = dict(enumerate(sorted(partition_starts)))

    def start(operator: OperatorMetrics) -> float:
        return starts.get(int(operator.stream), 0.0) if operator.ep == EP else operator.start_time_us or 0.0

    return sorted(operators, key=start)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


_LAST_NUMBER = re.compile(r"_\d+$")
_NUMBERED_TOKEN = re.compile(r"_token_\d+_\d+$")


def _model_names(names: Sequence[str], model: Outline) -> Mapping[str, str]:
    """The EP's names as the model has them: devices put a number at the end of every name (`Add_3`, `Conv_token_1_2`).

    A number may belong to the name (`Add_1`), so it is removed everywhere or nowhere: everywhere when all names
    have one and more of them are nodes of the model without it than with it, or when no name says otherwise.
    """
    if not names or not all(_LAST_NUMBER.search(name) for name in names):
        return {}
    without = {name: _LAST_NUMBER.sub("", name) for name in names}
    labels = {node.label for node in model.nodes}
    here, there = (sum(plain_name(n) in labels for n in words) for words in (names, without.values()))
    numbered = there > here or (there == here and any(_NUMBERED_TOKEN.search(name) for name in names))
    return without if numbered else {}


def _runtime_op(node: CsvNode, partition: int, types: Mapping[str, str], plain: Mapping[str, str]) -> RuntimeOp:
    own = plain.get(node.name, node.name)
    sources = node.sources or ((own,) if not node.boundary else ())
    return RuntimeOp(node.name, tuple((s, types.get(s)) for s in sources), boundary=node.boundary, group=str(partition))


def _times(partition: _Partition, at: int, skip: int) -> tuple[float, ...]:
    """The microseconds of an operator; none where one run lacks them."""
    found = [run[at] for run in partition.times_us[skip:]]
    known = [t for t in found if t is not None]
    return tuple(map(float, known)) if len(known) == len(found) else ()


def _metrics(partition: _Partition, number: int, skip: int, kinds: Mapping[str, str]) -> list[OperatorMetrics]:
    return [
        OperatorMetrics(
            op_path=node.name or f"OpId_{node.op_id}",
            ep=EP,
            unit=node.unit,
            op_type=kinds.get(node.name),
            samples=tuple(float(run[at]) for run in partition.samples[skip:]),
            warmup=tuple(float(run[at]) for run in partition.samples[:skip]),
            times_us=_times(partition, at, skip),
            stream=str(number),
            op_id=node.op_id or None,
        )
        for at, node in enumerate(partition.nodes)
    ]
