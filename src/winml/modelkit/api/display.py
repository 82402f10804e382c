"""How results are shown: the text of their command, the same in HTML with its picture, and rows for a table."""

from __future__ import annotations

import html as _html
from collections.abc import Callable, Iterable
from typing import Any

from winml.modelkit.api.rows import rows_of
from winml.modelkit.core import plain_text
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.result import CommandResult
from winml.modelkit.render import (
    analyze,
    autoconfig,
    autoconfig_sweep,
    build,
    compare,
    evaluate,
    generation,
    kb,
    matrix,
    mend,
    optimize,
    perf,
    quantize,
    report,
    sensitivity,
    trace,
)
from winml.modelkit.render import compile as compiling
from winml.modelkit.render import debug as debugging
from winml.modelkit.render import export as exporting
from winml.modelkit.render import inspect as inspecting
from winml.modelkit.render import package as packages
from winml.modelkit.render import run as running
from winml.modelkit.render import sys as system
from winml.modelkit.render.figures import pictures

_TRACE_LINES = 10

_TEXTS: dict[str, Callable[[Any], str]] = {
    "AnalyzeResult": analyze.analyze_text,
    "BuildPartsResult": build.parts_text,
    "BuildResult": build.build_text,
    "CompareResult": compare.compare_text,
    "CompileResult": compiling.compile_text,
    "ConfigResult": build.config_text,
    "DebugResult": debugging.debug_text,
    "EvalResult": evaluate.evaluate_text,
    "ExportResult": exporting.export_text,
    "FolderInspection": inspecting.folder_text,
    "GenerationPerf": generation.generation_text,
    "Inspection": inspecting.inspect_text,
    "KbReport": kb.report_text,
    "MendResult": mend.mend_text,
    "OptimizeResult": optimize.optimize_text,
    "KeyResult": packages.key_text,
    "LoaderCopy": packages.loader_text,
    "PackageResult": packages.package_text,
    "PackageVerification": packages.verification_text,
    "PerfParts": perf.parts_text,
    "PerfResult": perf.perf_text,
    "PredictionResult": running.run_text,
    "PlanResult": matrix.plan_text,
    "QuantizeResult": quantize.quantize_text,
    "ReportResult": report.report_text,
    "RunResult": matrix.cells_text,
    "SearchResult": autoconfig.autoconfig_text,
    "SensitivityResult": sensitivity.sensitivity_text,
    "ServeReady": running.ready_text,
    "StatusResult": matrix.cells_text,
    "SweepResult": autoconfig_sweep.sweep_text,
    "SysResult": lambda result: "\n\n".join(
        filter(None, (system.machine_text(result), system.ep_text(result.eps), system.problems_text(result.problems)))
    ),
    "TraceDiffResult": lambda result: trace.diff_text(result.diff, _TRACE_LINES),
}
"""The text of every result, by the name of its class: the classes themselves would import every command."""

_PICTURES: dict[str, Callable[[Any], str]] = {
    "CompareResult": pictures.compare_picture,
    "GenerationPerf": pictures.generation_picture,
    "PerfResult": pictures.perf_picture,
    "SearchResult": pictures.search_picture,
    "SensitivityResult": pictures.sensitivity_picture,
}
"""Results that have a picture, as inline SVG."""

_BOX = 'style="font-family: monospace; white-space: pre; overflow-x: auto; line-height: 1.35; text-align: left"'


def text(result: CommandResult) -> str:
    """What the command prints, its notes and warnings at the end; control characters in names are escaped."""
    safe = plain_text.values(result)
    lines = [_TEXTS[type(result).__name__](safe).rstrip("\n")]
    for kind in ("note", "warning"):
        lines += [f"{kind}: {line}" for line in _remarks(safe, f"{kind}s")]
    return plain_text.lines("\n".join(lines))


def _remarks(result: Any, name: str) -> Iterable[str]:
    """The notes or warnings of a result, or of the report inside it."""
    for owner in (result, *(getattr(result, inner, None) for inner in ("report", "outcome", "diff"))):
        yield from getattr(owner, name, ())


def html(result: CommandResult) -> str:
    """The text and the picture as HTML that needs nothing else; markup in names is escaped."""
    picture = _PICTURES.get(type(result).__name__)
    drawn = "" if picture is None else pictures.with_style(picture(result))
    shown = drawn and f'<div style="max-width: 45em">{drawn}</div>'
    return f'<div class="winml-result"><div {_BOX}>{_html.escape(text(result))}</div>{shown}</div>'


def dataframe(result: CommandResult) -> Any:
    """The rows of a result as a `pandas.DataFrame`."""
    rows = rows_of(result)
    if rows is None:
        raise RequestError(f"`{type(result).__name__}` has no rows", hint="`to_json()` holds all of it")
    try:
        import pandas as pd
    except ImportError as error:
        raise UnavailableError(
            "`to_dataframe()` needs pandas, which is not installed", hint="install it with `pip install pandas`"
        ) from error
    return pd.DataFrame(rows)
