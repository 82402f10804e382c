"""Writes the JSON schemas in `src/winml/modelkit/schemas` from the classes of results and documents.

    python scripts/make_schemas.py           write them
    python scripts/make_schemas.py --check   say which of them are out of date (exit 1)

A name that is not in the table below is written by hand.
"""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winml.modelkit.core.schemas import FOLDER
from winml.modelkit.core.value_schema import document_schema


@dataclass(frozen=True)
class Document:
    """What a schema is made from: `module:Class` of everything it may be."""

    title: str
    classes: tuple[str, ...]
    command: bool = False
    """The result of a command, which may fail; only we write it, so that every key is there."""
    complete: bool = False
    """No result, and only we write it all the same."""


DOCUMENTS: dict[str, Document] = {
    "compare": Document("Result of `winml compare`", ("measuring.compare_result:CompareResult",), command=True),
    "measurement": Document(
        "Raw samples of one or several arms, with protocol and environment",
        ("core.measurement:Measurement",),
        complete=True,
    ),
    "op-trace": Document(
        "Operator trace: `*_op_trace.json`, and `op_trace` in the result of `winml perf`",
        ("core.op_trace:OpTraceResult",),
        complete=True,
    ),
    "perf": Document("Result of `winml perf`", ("measuring.perf:PerfResult",), command=True),
    "perf-parts": Document(
        "Result of `winml perf` of a composite model", ("measuring.perf_parts:PerfParts",), complete=True
    ),
    "perf-generation": Document(
        "Result of `winml perf` of a folder that generates text",
        ("measuring.generation:GenerationPerf",),
        command=True,
    ),
    "trace": Document("Result of `winml trace`", ("measuring.trace:TraceDiffResult",), command=True),
    "build": Document("Result of `winml build`", ("building.result:BuildResult",), command=True),
    "build-config": Document(
        "build_config.json: everything a build does, nothing left open", ("core.config:BuildConfig",), complete=True
    ),
    "build-manifest": Document(
        "build_manifest.json: where the files of a build folder come from",
        ("building.manifest:BuildManifest",),
        complete=True,
    ),
    "build-parts": Document(
        "Result of `winml build` of a composite model", ("building.result:BuildPartsResult",), complete=True
    ),
    "autoconfig": Document(
        "Result of `winml autoconfig`",
        ("search.result:SearchResult", "search.result:SweepResult"),
        command=True,
    ),
    "cache": Document(
        "Result of `winml cache`",
        (
            "store.cache_command:CacheList",
            "store.cache_command:CacheSize",
            "store.cache_command:CacheVerification",
            "store.cache_command:CacheCollection",
        ),
        command=True,
    ),
    "architectures-file": Document(
        "What came of every architecture of transformers, as it ships with winml",
        ("knowledge.catalog:Architectures",),
        complete=True,
    ),
    "catalog": Document(
        "Result of `winml catalog`",
        ("knowledge.catalog_command:CatalogResult", "knowledge.catalog_command:ArchitecturesResult"),
        command=True,
    ),
    "catalog-file": Document("The catalog that ships with winml", ("knowledge.catalog:Catalog",), complete=True),
    "completion": Document("Result of `winml completion`", ("cli.completion.scripts:CompletionResult",), command=True),
    "contribution": Document(
        "A contribution that supports a model", ("support.review.contribution:Contribution",), complete=True
    ),
    "dashboard": Document(
        "What `winml dashboard` writes when it listens", ("reporting.dashboard:DashboardReady",), command=True
    ),
    "ep": Document(
        "Result of `winml ep`",
        ("ep.ep_command:EnvironmentsResult", "ep.options_command:EPOptionsResult"),
        command=True,
    ),
    "evidence": Document(
        "A command of a contribution, with everything it left behind",
        ("support.review.evidence:Record",),
        complete=True,
    ),
    "finding": Document("What is known about an execution provider, with its evidence", ("core.finding:Finding",)),
    "gap": Document("Something that is missing, and the findings that show it", ("knowledge.gaps:Gap",)),
    "kb": Document(
        "Result of `winml kb`",
        (
            "findings.result:KbList",
            "findings.result:KbFinding",
            "findings.result:KbCheck",
            "findings.result:KbJudgement",
            "findings.result:KbReplay",
            "findings.result:KbPromotion",
            "findings.result:KbDrafts",
            "findings.result:KbReport",
        ),
        command=True,
    ),
    "outcome": Document("What a replay of a finding came to", ("knowledge.findings:ReplayOutcome",)),
    "sessions": Document(
        "Recorded session medians, the input of `winml kb judge`", ("findings.judge:RecordedSessions",)
    ),
    "quantize-within": Document(
        "Result of `winml quantize` with a limit of accuracy", ("accuracy.mend_result:MendResult",), command=True
    ),
    "sensitivity": Document(
        "Result of `winml quantize --sensitivity`",
        ("accuracy.sensitivity_result:SensitivityResult",),
        command=True,
    ),
    "debug": Document("Result of `winml debug`", ("accuracy.result:DebugResult",), command=True),
    "eval": Document("Result of `winml eval`", ("evaluation.result:EvalResult",), command=True),
    "feed": Document(
        "Result of `winml feed`",
        (
            "feed.feed_command:PushResult",
            "feed.feed_command:PackageList",
            "feed.feed_command:VersionList",
            "feed.feed_command:PullResult",
            "feed.feed_command:VerifyResult",
            "feed.feed_command:VerifyAllResult",
        ),
        command=True,
    ),
    "build-only-results": Document(
        "`build_only_results.json` of a matrix: what became of every cell, by version",
        ("build_matrix.state:CellRows",),
        complete=True,
    ),
    "matrix": Document(
        "Result of `winml matrix`",
        (
            "build_matrix.command:PlanResult",
            "build_matrix.command:RunResult",
            "build_matrix.command:StatusResult",
        ),
        command=True,
    ),
    "model-knowledge": Document("What is known about supporting a model family", ("knowledge.models:FamilyFile",)),
    "node": Document(
        "Result of `winml node`",
        (
            "dispatch.node_command:NodeRun",
            "dispatch.node_command:SchedulerRun",
            "dispatch.node_command:NodeList",
        ),
        command=True,
    ),
    "preset": Document("A list of hypotheses for a target", ("knowledge.presets:Preset",)),
    "space": Document("What a search is restricted to (`winml autoconfig --space`)", ("search.space:SpaceFile",)),
    "recipe": Document("What a model family needs besides the defaults", ("core.recipe:Recipe",)),
    "skill": Document("Result of `winml skill`", ("knowledge.skill_command:SkillCheck",), command=True),
    "support": Document(
        "Result of `winml support`",
        (
            "support.probe_result:ProbeResult",
            "support.inputs:InputsResult",
            "support.produce:ProduceResult",
            "support.batch:BatchResult",
            "support.review.command:ReviewResult",
            "findings.model_knowledge:KnowledgeList",
            "findings.model_knowledge:KnowledgeEntry",
            "findings.model_knowledge:KnowledgeAddition",
            "findings.model_knowledge:KnowledgeCheck",
        ),
        command=True,
    ),
    "run": Document("Result of `winml run`", ("serving.prediction:PredictionResult",), command=True),
    "prediction": Document(
        "Answer of `winml serve` to `POST /predict`", ("serving.prediction:Prediction",), complete=True
    ),
    "serve": Document("What `winml serve` writes when it listens", ("serving.serve_command:ServeReady",), command=True),
    "report": Document("Result of `winml report`", ("reporting.command:ReportResult",), command=True),
    "sys": Document("Result of `winml sys`", ("ep.sys_command:SysResult",), command=True),
    "analyze": Document("Result of `winml analyze`", ("building.analysis.result:AnalyzeResult",), command=True),
    "compile": Document(
        "Result of `winml compile`",
        ("building.compile.result:CompileResult", "building.compile.result:CompilerList"),
        command=True,
    ),
    "optimize": Document(
        "Result of `winml optimize`",
        ("building.optimize.result:OptimizeResult", "building.optimize.result:PassTable"),
        command=True,
    ),
    "quantize": Document("Result of `winml quantize`", ("building.quantize.result:QuantizeResult",), command=True),
    "config": Document("Result of `winml config`", ("building.result:ConfigResult",), command=True),
    "export": Document(
        "Result of `winml export`",
        ("building.export.result:ExportResult", "building.export.sample_copy:SampleCopy"),
        command=True,
    ),
    "export-metadata": Document(
        "export_metadata.json: how a model was exported and how it compares with PyTorch",
        ("building.export.result:ExportMetadata",),
        complete=True,
    ),
    "init": Document("Result of `winml init`", ("building.init_command:InitResult",), command=True),
    "inspect": Document("Result of `winml inspect`", ("building.inspect:Inspection",), command=True),
    "inspect-folder": Document(
        "Result of `winml inspect` of a Hugging Face model",
        ("building.export.describe:FolderInspection",),
        complete=True,
    ),
    "package-manifest": Document(
        "package.json: what a package for applications holds", ("packaging.manifest:PackageManifest",), complete=True
    ),
    "package": Document(
        "Result of `winml package`",
        (
            "packaging.command:PackageResult",
            "packaging.command:PackageVerification",
            "packaging.command:KeyResult",
            "packaging.command:LoaderCopy",
        ),
        command=True,
    ),
    "parts": Document("parts.json: the parts of a composite model", ("core.build_folder:PartsFile",)),
}


def _load(name: str) -> Any:
    module, _, cls = name.partition(":")
    return getattr(importlib.import_module(f"winml.modelkit.{module}"), cls)


def schema_text(name: str) -> str:
    """The file of one schema."""
    document = DOCUMENTS[name]
    schema = document_schema(
        name,
        document.title,
        [_load(c) for c in document.classes],
        failure=document.command,
        complete=document.command or document.complete,
    )
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def file_of(name: str) -> Path:
    return FOLDER / f"{name}-1.json"


def main() -> int:
    stale = [name for name in DOCUMENTS if not _is_current(name)]
    if "--check" in sys.argv:
        print("\n".join(f"{file_of(name).name} is out of date: python scripts/make_schemas.py" for name in stale))
        return 1 if stale else 0
    for name in stale:
        file_of(name).write_text(schema_text(name), encoding="utf-8", newline="\n")
        print(f"written: {file_of(name).name}")
    return 0


def _is_current(name: str) -> bool:
    file = file_of(name)
    return file.is_file() and file.read_text(encoding="utf-8") == schema_text(name)


if __name__ == "__main__":
    sys.exit(main())
