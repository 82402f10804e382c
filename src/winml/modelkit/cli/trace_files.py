"""The files of a trace, named after `-o`: never overwritten by accident."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.cli.results import ResultFile
from winml.modelkit.core.errors import RequestError

if TYPE_CHECKING:
    from winml.modelkit.core.op_trace import OpTraceResult

SUFFIX = "_op_trace"


class TraceFiles:
    """`perf.json` has its trace in `perf_op_trace.json` and what the EP wrote in the folder `perf_op_trace`.

    Where a run has several `phases`, each has a trace: `perf_prompt_op_trace.json` and `perf_step_op_trace.json`.
    """

    def __init__(
        self, output: str | None, *, wanted: bool, perfetto: bool, overwrite: bool, phases: Sequence[str] = ()
    ) -> None:
        self._files: dict[str, tuple[Path, ResultFile, ResultFile | None]] = {}
        self._written: list[ResultFile] = []
        self.folder: Path | None = None
        if perfetto and (not wanted or output is None):
            raise RequestError("`--trace-format perfetto` writes a file", hint="add `--op-tracing basic` and `-o FILE`")
        if output is None or not wanted:
            return
        stem = Path(output).stem
        for phase in phases or ("",):
            name = stem + (f"_{phase}" if phase else "") + SUFFIX
            path, drawn = (Path(output).with_name(name + end) for end in (".json", ".perfetto.json"))
            timeline = ResultFile(str(drawn), overwrite=overwrite) if perfetto else None
            self._files[phase] = (path, ResultFile(str(path), overwrite=overwrite), timeline)
        base = Path(output).with_name(stem + SUFFIX)
        self.folder = base.absolute()
        if self.folder.exists() and not overwrite:
            raise RequestError(f"output folder exists: `{base}`", hint="add `--overwrite` to write into it")

    def write(self, traces: Mapping[str, OpTraceResult | None]) -> str | None:
        """Write the traces by phase; the path of the last, or None where there is nothing to write."""
        last = None
        for phase, trace in traces.items():
            if trace is None or phase not in self._files:
                continue
            path, file, timeline = self._files[phase]
            file.write(trace)
            self._written.append(file)
            last = str(path)
            if timeline is not None:
                from winml.modelkit.render.perfetto import perfetto

                timeline.write(perfetto(trace))
                self._written.append(timeline)
        return last

    def say_wrote(self) -> None:
        """Name the files for people."""
        for file in self._written:
            file.say_wrote()
