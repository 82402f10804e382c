"""What a path is: which kind of run, and the value that its command wrote. Nothing is written or followed."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from winml.modelkit.core.build_folder import MANIFEST, PACKAGE
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, RequestError, UnavailableError
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.values import read
from winml.modelkit.store import journal

JOURNAL = "journal.jsonl"
SWEEP = "summary.json"
_HINT = "give a file that `perf`, `compare` or `eval` wrote with `-o`, or the folder of a search, a matrix or a build"


@dataclass(frozen=True)
class RunKind:
    """A kind of run: the class that its file holds, and the function that makes its page."""

    name: str
    value: str
    """`module:Class` below this package."""
    page: str
    """`module:function` in `render/pages`."""
    schema: str | None = None
    """The schema of the file, without its version."""


KINDS: dict[str, RunKind] = {
    kind.name: kind
    for kind in (
        RunKind("perf", "measuring.perf:PerfResult", "perf:perf_page", "winml/perf"),
        RunKind("perf-parts", "measuring.perf_parts:PerfParts", "perf:parts_page", "winml/perf-parts"),
        RunKind("perf-generation", "measuring.generation:GenerationPerf", "generation:generation_page",
                "winml/perf-generation"),
        RunKind("compare", "measuring.compare_result:CompareResult", "compare:compare_page", "winml/compare"),
        RunKind("op-trace", "core.op_trace:OpTraceResult", "op_trace:op_trace_page", "winml/op-trace"),
        RunKind("trace-diff", "measuring.trace:TraceDiffResult", "trace_diff:trace_diff_page", "winml/trace"),
        RunKind("eval", "evaluation.result:EvalResult", "evaluate:evaluate_page", "winml/eval"),
        RunKind("debug", "accuracy.result:DebugResult", "debug:debug_page", "winml/debug"),
        RunKind("sensitivity", "accuracy.sensitivity_result:SensitivityResult", "sensitivity:sensitivity_page",
                "winml/sensitivity"),
        RunKind("build", "building.result:BuildResult", "build:build_page", "winml/build"),
        RunKind("build-parts", "building.result:BuildPartsResult", "build:parts_page", "winml/build-parts"),
        RunKind("build-folder", "building.manifest:BuildManifest", "build:manifest_page", "winml/build-manifest"),
        RunKind("analyze", "building.analysis.result:AnalyzeResult", "analyze:analyze_page", "winml/analyze"),
        RunKind("autoconfig", "search.result:SearchResult", "autoconfig:autoconfig_page"),
        RunKind("sweep", "search.result:SweepResult", "sweep:sweep_page"),
        RunKind("matrix-plan", "build_matrix.command:PlanResult", "matrix:matrix_page"),
        RunKind("matrix-status", "build_matrix.command:StatusResult", "matrix:matrix_page"),
        RunKind("matrix", "build_matrix.command:RunResult", "matrix:matrix_page"),
        RunKind("kb", "findings.result:KbReport", "kb:kb_page"),
        RunKind("probe", "support.probe_result:ProbeResult", "support:probe_page"),
        RunKind("produce", "support.produce:ProduceResult", "support:contribution_page"),
        RunKind("review", "support.review.command:ReviewResult", "support:review_page"),
        RunKind("package", "packaging.manifest:PackageManifest", "package:package_page", "winml/package-manifest"),
        RunKind("contribution", "support.review.contribution:Contribution", "support:contribution_page",
                "winml/contribution"),
    )
}  # fmt: skip
"""Every kind of run. Two kinds with one schema differ in their keys: see `_kind_of`."""

_BY_SCHEMA = {kind.schema: kind for kind in KINDS.values() if kind.schema is not None}
_BY_ACTION = {
    ("winml/matrix", "plan"): "matrix-plan",
    ("winml/matrix", "status"): "matrix-status",
    ("winml/matrix", "run"): "matrix",
    ("winml/kb", "report"): "kb",
    ("winml/support", "probe"): "probe",
    ("winml/support", "produce"): "produce",
    ("winml/support", "review"): "review",
}


@dataclass(frozen=True)
class Run:
    """A run that was read."""

    kind: str
    path: Path
    """What was given."""
    value: Any
    beside: tuple[Any, ...] = ()
    """What its page shows besides the value: rounds of a search, commands of a contribution."""
    failure: str | None = None
    """Why the command failed that wrote all of its result anyway, as a comparison whose gate is not met."""
    finished: bool = True
    """False for one that is being written, or was interrupted."""


def load_class(name: str) -> Any:
    """The class or function that `module:name` is."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(f"winml.modelkit.{module}"), attribute)


def find_kind(path: Path) -> str:
    """The kind of the run in a file or a folder, by the first lines of what is there."""
    if path.is_dir():
        return _kind_of_folder(path)
    if not path.exists():
        raise RequestError(f"not found: `{path}`", hint=near_path(path))
    return _kind_of(_read_object(path), path)


def read_run(path: Path) -> Run:
    """The run in a file or a folder; an error says what does not fit."""
    if path.is_dir():
        return _read_folder(path)
    if not path.exists():
        raise RequestError(f"not found: `{path}`", hint=near_path(path))
    content = _read_object(path)
    return _read_content(content, path)


def run_of_value(value: CommandResult) -> Run:
    """A run of this process."""
    name = type(value).__name__
    kind = next((kind.name for kind in KINDS.values() if kind.value.endswith(f":{name}")), None)
    if kind is None:
        raise RequestError(f"`{name}` has no report", hint="`print` shows it")
    return Run(kind, Path(name), value, finished=_is_finished(kind, value))


def read_known_findings() -> Run:
    """The findings that this user has, and those of the package."""
    return Run("kb", Path("findings"), load_class("findings.kb_command:report")(None, ""))


def _read_object(path: Path) -> dict[str, Any]:
    try:
        content = read_json(path)
    except PermissionError as error:
        raise UnavailableError(f"cannot be read: `{path}`") from error
    except (OSError, ValueError) as error:
        raise DataError(f"`{path}` is no run: {error}", hint=_HINT) from error
    if not isinstance(content, dict):
        raise DataError(f"`{path}` is no run: it is not a JSON object", hint=_HINT)
    return content


def _read_content(content: dict[str, Any], path: Path) -> Run:
    kind = KINDS[_kind_of(content, path)]
    failure = _failure_of(content)
    if kind.name == "op-trace":
        from winml.modelkit.core.op_trace import op_trace_from_json

        return Run(kind.name, path, op_trace_from_json(content, source=f"`{path}`"))
    if failure is not None:
        # The result that the error carries has all fields of one that did not fail.
        content = {**{key: value for key, value in content.items() if key != "error"}, "ok": True}
    try:
        value = read(load_class(kind.value), content, kind.name, strict=False, error=DataError)
    except DataError as error:
        if failure is None:
            raise DataError(f"`{path}` cannot be read: {error.message}", hint=error.hint) from error
        raise DataError(
            f"`{path}` is the result of a command that failed: {failure}",
            hint="it holds nothing to report; run the command again",
        ) from error
    return Run(kind.name, path, value, failure=failure)


def _failure_of(content: dict[str, Any]) -> str | None:
    """Why the command that wrote this failed; None when it did not."""
    if content.get("ok") is not False:
        return None
    failure = content.get("error")
    said = failure.get("message") if isinstance(failure, dict) else None
    return said if isinstance(said, str) else "it does not say why"


_SCHEMAS = {*_BY_SCHEMA, *(name for name, _ in _BY_ACTION), "winml/autoconfig"}
_SCHEMA = re.compile(r"(winml/[a-z-]+)/([0-9]{1,6})")
_VERSION = "1"


def _kind_of(content: dict[str, Any], path: Path) -> str:
    schema = content.get("schema")
    found = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
    if found is None:
        raise DataError(f"`{path}` is no run: it has no schema of winml", hint=_HINT)
    name, version = found.groups()
    if name not in _SCHEMAS:
        raise DataError(f"`{path}` holds `{name}`, which has no report", hint=_HINT)
    if version != _VERSION:
        raise DataError(
            f"`{path}` has the schema `{schema}`, this version reads `{name}/{_VERSION}`",
            hint="use the version of winml that wrote it, or a newer one",
        )
    if name == "winml/autoconfig":
        return "sweep" if "models" in content else "autoconfig"
    action = str(content.get("action"))
    if (name, action) in _BY_ACTION:
        return _BY_ACTION[name, action]
    if name not in _BY_SCHEMA:
        raise DataError(f"`{path}` holds the result of `{name.removeprefix('winml/')} {action}`, which has no report")
    return _BY_SCHEMA[name].name


def kind_of_head(head: dict[str, Any], path: Path) -> str | None:
    """The kind of a file by its first keys, None for one that is no run; a schema of another version is an error."""
    schema = head.get("schema")
    found = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
    if found is None or found[1] not in _SCHEMAS:
        return None
    actions = [action for name, action in _BY_ACTION if name == found[1]]
    if found[2] == _VERSION and actions and head.get("action") not in actions:
        # The action of a matrix follows its cells, which are many.
        return "matrix" if found[1] == "winml/matrix" and "cells" in head else None
    return _kind_of(head, path)


def _kind_of_folder(path: Path) -> str:
    if (path / JOURNAL).is_file():
        return _kind_of_journal(path)
    for name, kind in (
        ("autoconfig.json", "autoconfig"),
        ("contribution.json", "contribution"),
        (MANIFEST, "build-folder"),
        (PACKAGE, "package"),
    ):
        if (path / name).is_file():
            return kind
    if (path / SWEEP).is_file() and _kind_of(_read_object(path / SWEEP), path / SWEEP) == "sweep":
        return "sweep"
    if (path / "findings").is_dir():
        return "kb"
    raise RequestError(f"`{path}` is no run", hint=_HINT)


def _kind_of_journal(path: Path) -> str:
    """A search begins with its study, a matrix with its run."""
    records = journal.read(path / JOURNAL).records
    if not records:
        raise RequestError(f"`{path / JOURNAL}` has no whole line yet", hint="wait for the run to begin")
    return "autoconfig" if records[0].get("kind") == "study" else "matrix-status"


def _read_folder(path: Path) -> Run:
    kind = _kind_of_folder(path)
    value = _FOLDERS[kind](path)
    beside = (_BESIDE[kind](path, value),) if kind in _BESIDE else ()
    return Run(kind, path, value, beside, finished=_is_finished(kind, value))


def _evidence(path: Path, contribution: Any) -> list[Any]:
    """The records of the commands of a contribution, as far as they are there; a step is named like a file of ours."""
    load, place = load_class("knowledge.files:load"), load_class("support.review.evidence:record_path")
    record = load_class("support.review.evidence:Record")
    return [load(path / place(name), record) for name in contribution.steps if (path / place(name)).is_file()]


def _is_finished(kind: str, value: Any) -> bool:
    if kind == "autoconfig":
        return bool(value.finished)
    if kind == "sweep":
        return bool(len(value.models) >= value.total)
    if kind == "matrix-status":
        return bool(value.progress.pending == 0)
    return True


def _rounds(path: Path, result: Any) -> Any:
    """The rounds of the race of a search, where its journal is there."""
    return load_class("search.run_folder:read_rounds")(path)


_BESIDE: dict[str, Callable[[Path, Any], Any]] = {"autoconfig": _rounds, "contribution": _evidence}


def _search(path: Path) -> Any:
    return load_class("search.run_folder:read_search")(path)


def _matrix(path: Path) -> Any:
    return load_class("build_matrix.command:read_status")(str(path))


def _findings(path: Path) -> Any:
    return load_class("findings.kb_command:report")(str(path), "")


def _document(name: str) -> Callable[[Path], Any]:
    def load(path: Path) -> Any:
        return _read_content(_read_object(path / name), path / name).value

    return load


_FOLDERS: dict[str, Callable[[Path], Any]] = {
    "autoconfig": _search,
    "matrix-status": _matrix,
    "kb": _findings,
    "sweep": _document(SWEEP),
    "contribution": _document("contribution.json"),
    "build-folder": _document(MANIFEST),
    "package": _document(PACKAGE),
}
