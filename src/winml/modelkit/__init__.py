"""Takes a model to the fastest accurate artifact for every ONNX Runtime execution provider, and proves it.

    import winml.modelkit as wk

    print(wk.perf("model.onnx", target="cpu"))

`docs/api.md` describes every function. Nothing is imported before it is used.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False
"""Known to type checkers by its name; `typing` costs more than everything else here."""
if TYPE_CHECKING:
    from winml.modelkit import sample as sample
    from winml.modelkit.accuracy.mend_result import MendResult as MendResult
    from winml.modelkit.accuracy.result import DebugResult as DebugResult
    from winml.modelkit.accuracy.sensitivity_result import SensitivityResult as SensitivityResult
    from winml.modelkit.api.answers import run as run
    from winml.modelkit.api.answers import serve as serve
    from winml.modelkit.api.measurements import compare as compare
    from winml.modelkit.api.measurements import debug as debug
    from winml.modelkit.api.measurements import evaluate as evaluate
    from winml.modelkit.api.measurements import perf as perf
    from winml.modelkit.api.measurements import perf_generation as perf_generation
    from winml.modelkit.api.measurements import trace_diff as trace_diff
    from winml.modelkit.api.models import analyze as analyze
    from winml.modelkit.api.models import build as build
    from winml.modelkit.api.models import build_from_config as build_from_config
    from winml.modelkit.api.models import compile as compile  # noqa: A004 - an attribute, as `re.compile` is one
    from winml.modelkit.api.models import export as export
    from winml.modelkit.api.models import inspect as inspect
    from winml.modelkit.api.models import optimize as optimize
    from winml.modelkit.api.models import quantize as quantize
    from winml.modelkit.api.models import quantize_within as quantize_within
    from winml.modelkit.api.models import sensitivity as sensitivity
    from winml.modelkit.api.packages import load_package as load_package
    from winml.modelkit.api.packages import package as package
    from winml.modelkit.api.packages import verify_package as verify_package
    from winml.modelkit.api.reports import report as report
    from winml.modelkit.api.searches import autoconfig as autoconfig
    from winml.modelkit.api.searches import matrix as matrix
    from winml.modelkit.api.searches import sys as sys
    from winml.modelkit.api.session import Session as Session
    from winml.modelkit.build_matrix.command import RunResult as RunResult
    from winml.modelkit.building.analysis.result import AnalyzeResult as AnalyzeResult
    from winml.modelkit.building.compile.command import compile_multiple_onnx as compile_multiple_onnx
    from winml.modelkit.building.compile.result import CompileResult as CompileResult
    from winml.modelkit.building.export.describe import FolderInspection as FolderInspection
    from winml.modelkit.building.export.result import ExportResult as ExportResult
    from winml.modelkit.building.export.warm import warm_exports as warm_exports
    from winml.modelkit.building.inspect import Inspection as Inspection
    from winml.modelkit.building.optimize.result import OptimizeResult as OptimizeResult
    from winml.modelkit.building.quantize.result import QuantizeResult as QuantizeResult
    from winml.modelkit.building.result import BuildResult as BuildResult
    from winml.modelkit.core import errors as errors
    from winml.modelkit.core.errors import CheckFailed as CheckFailed
    from winml.modelkit.core.errors import ModelkitError as ModelkitError
    from winml.modelkit.core.events import Event as Event
    from winml.modelkit.core.result import CommandResult as CommandResult
    from winml.modelkit.core.target import Target as Target
    from winml.modelkit.ep.sys_command import SysResult as SysResult
    from winml.modelkit.evaluation.result import EvalResult as EvalResult
    from winml.modelkit.findings.result import KbReport as KbReport
    from winml.modelkit.measuring.compare_result import CompareResult as CompareResult
    from winml.modelkit.measuring.generation import GenerationPerf as GenerationPerf
    from winml.modelkit.measuring.perf import PerfResult as PerfResult
    from winml.modelkit.measuring.trace import TraceDiffResult as TraceDiffResult
    from winml.modelkit.packaging.command import PackageResult as PackageResult
    from winml.modelkit.packaging.command import PackageVerification as PackageVerification
    from winml.modelkit.reporting.command import ReportResult as ReportResult
    from winml.modelkit.search.result import SearchResult as SearchResult
    from winml.modelkit.serving.prediction import PredictionResult as PredictionResult
    from winml.modelkit.serving.serve_command import ServeReady as ServeReady
    from winml.modelkit.session.session import WinMLSession as WinMLSession

_FROM = {
    "AnalyzeResult": "building.analysis.result",
    "BuildResult": "building.result",
    "CheckFailed": "core.errors",
    "CommandResult": "core.result",
    "CompareResult": "measuring.compare_result",
    "CompileResult": "building.compile.result",
    "DebugResult": "accuracy.result",
    "EvalResult": "evaluation.result",
    "Event": "core.events",
    "ExportResult": "building.export.result",
    "FolderInspection": "building.export.describe",
    "GenerationPerf": "measuring.generation",
    "MendResult": "accuracy.mend_result",
    "Inspection": "building.inspect",
    "KbReport": "findings.result",
    "ModelkitError": "core.errors",
    "OptimizeResult": "building.optimize.result",
    "PackageResult": "packaging.command",
    "PackageVerification": "packaging.command",
    "PerfResult": "measuring.perf",
    "PredictionResult": "serving.prediction",
    "QuantizeResult": "building.quantize.result",
    "ReportResult": "reporting.command",
    "RunResult": "build_matrix.command",
    "SearchResult": "search.result",
    "SensitivityResult": "accuracy.sensitivity_result",
    "ServeReady": "serving.serve_command",
    "Session": "api.session",
    "SysResult": "ep.sys_command",
    "Target": "core.target",
    "TraceDiffResult": "measuring.trace",
    "WinMLSession": "session.session",
    "analyze": "api.models",
    "autoconfig": "api.searches",
    "build": "api.models",
    "build_from_config": "api.models",
    "compare": "api.measurements",
    "compile": "api.models",
    "compile_multiple_onnx": "building.compile.command",
    "debug": "api.measurements",
    "evaluate": "api.measurements",
    "export": "api.models",
    "inspect": "api.models",
    "load_package": "api.packages",
    "matrix": "api.searches",
    "optimize": "api.models",
    "package": "api.packages",
    "perf": "api.measurements",
    "perf_generation": "api.measurements",
    "quantize": "api.models",
    "quantize_within": "api.models",
    "report": "api.reports",
    "sensitivity": "api.models",
    "run": "api.answers",
    "serve": "api.answers",
    "sys": "api.searches",
    "trace_diff": "api.measurements",
    "verify_package": "api.packages",
    "warm_exports": "building.export.warm",
}
"""Public names with the module of each, imported when it is first used."""

_MODULES = {"errors": "winml.modelkit.core.errors", "sample": "winml.modelkit.sample"}
"""Public names of modules."""

__all__ = ["__version__", *_FROM, *_MODULES]

if not TYPE_CHECKING:  # a type checker would take every name to be there

    def __getattr__(name):
        from importlib import import_module

        if name in _MODULES:
            found = import_module(_MODULES[name])
        elif name in _FROM:
            found = getattr(import_module(f"{__name__}.{_FROM[name]}"), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found
        return found

    def __dir__():
        return sorted(__all__)
