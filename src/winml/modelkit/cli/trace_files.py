"""The files of a trace, named after `-o`: never overwritten by accident."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.cli.results import ResultFile
from winml.modelkit.core.errors import RequestError

if TYPE_CHECKING:
    from winml.modelkit.core.op_trace import OpTraceResult

SUFFIX = "_op_trace"


class TraceFiles:
    """`perf.json` has its trace in `perf_op_trace.json` and what the EP wrote in the folder `perf_op_trace`."""

    def __init__(self, output: str | None, *, wanted: bool, perfetto: bool, overwrite: bool) -> None:
        self._trace = self._perfetto = None
        self._written = False
        self.folder: Path | None = None
        if perfetto and (not wanted or output is None):
            raise RequestError("`--trace-format perfetto` writes a file", hint="add `--op-tracing basic` and `-o FILE`")
        if output is None or not wanted:
            return
        base = Path(output).with_name(Path(output).stem + SUFFIX)
        self.path = base.with_name(base.name + ".json")
        self._trace = ResultFile(str(self.path), overwrite=overwrite)
        if perfetto:
            self._perfetto = ResultFile(str(base.with_name(base.name + ".perfetto.json")), overwrite=overwrite)
        self.folder = base.absolute()
        if self.folder.exists() and not overwrite:
            raise RequestError(f"output folder exists: `{base}`", hint="add `--overwrite` to write into it")

    def write(self, trace: OpTraceResult | None) -> str | None:
        """Write the trace; its path, or None where there is nothing to write."""
        if trace is None or self._trace is None:
            return None
        self._written = True
        self._trace.write(trace)
        if self._perfetto is not None:
            from winml.modelkit.render.perfetto import perfetto

            self._perfetto.write(perfetto(trace))
        return str(self.path)

    def say_wrote(self) -> None:
        """Name the files for people."""
        for file in (self._trace, self._perfetto):
            if file is not None and self._written:
                file.say_wrote()
