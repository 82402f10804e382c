"""What options and arguments may be given: names from the tables of the program, and files; imports nothing heavy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from winml.modelkit.cli.completion.protocol import Answer

EVALUATION_TASKS = (
    "image-classification", "text-classification", "sentence-similarity", "question-answering", "token-classification",
    "object-detection", "image-segmentation", "automatic-speech-recognition", "zero-shot-image-classification",
    "zero-shot-classification", "zero-shot-object-detection", "audio-classification", "video-classification",
    "fill-mask", "multiple-choice", "reranking", "retrieval", "depth-estimation", "image-to-image",
    "image-feature-extraction", "time-series-forecasting", "time-series-classification", "time-series-regression",
    "text-to-audio", "instance-segmentation", "panoptic-segmentation", "mask-generation", "keypoint-detection",
    "document-question-answering", "visual-question-answering", "binary-classification", "text-recognition",
    "tabular-classification", "perplexity", "text-generation", "translation", "summarization",
    "text2text-generation", "outputs",
)  # fmt: skip
"""The tasks of `evaluation/all_tasks.py`, which imports numpy; a test compares."""

RUN_FILES = ("journal.jsonl", "build_manifest.json", "parts.json")
"""What a search, a matrix, a build and a build of several parts leave in their folder."""

Values = Callable[[str], Answer]
"""What a word may become, from what is typed of it."""


def _names(values: Iterable[str] | dict[str, str]) -> Answer:
    return Answer("words", values if isinstance(values, dict) else dict.fromkeys(values, ""))


def list_targets(typed: str) -> Answer:
    from winml.modelkit.core.target import Target
    from winml.modelkit.ep import catalog

    found = {str(Target(info.name, device)): info.full_name for info in catalog.TABLE for device in info.devices}
    return _names({"auto": "the best device of this machine", **found})


def list_eps(typed: str) -> Answer:
    from winml.modelkit.ep import catalog

    return _names({info.name: info.full_name for info in catalog.TABLE})


def list_devices(typed: str) -> Answer:
    return _names(("npu", "gpu", "cpu", "auto"))


def list_precisions(typed: str) -> Answer:
    from winml.modelkit.ep import precision

    return _names({"auto": "the default of the target", **{n: p.meaning for n, p in precision.PRECISIONS.items()}})


def list_tasks(typed: str) -> Answer:
    """Tasks that models are evaluated for, and those that families of models are exported for."""
    from winml.modelkit.knowledge import catalog

    return _names(sorted({*EVALUATION_TASKS, *(task for family in catalog.load().families for task in family.tasks)}))


def list_evaluation_tasks(typed: str) -> Answer:
    return _names(EVALUATION_TASKS)


def list_families(typed: str) -> Answer:
    from winml.modelkit.knowledge import catalog

    return _names({family.name: family.modality for family in catalog.load().families})


def list_presets(typed: str) -> Answer:
    from winml.modelkit.knowledge.presets import FOLDER

    return _names(sorted(path.stem for path in FOLDER.glob("*.json")))


def list_findings(typed: str) -> Answer:
    from winml.modelkit.core.location import knowledge_root
    from winml.modelkit.knowledge import files

    roots = (Path(files.__file__).parent, knowledge_root())
    return _names(sorted({path.stem for root in roots for path in files.json_files(root / "findings")}))


def list_levels(typed: str) -> Answer:
    from winml.modelkit.building.optimize import table

    return _names(table.LEVELS)


def list_passes(typed: str) -> Answer:
    from winml.modelkit.building.optimize import table

    return _names({row.name: row.what for row in table.PASSES})


def list_files(typed: str) -> Answer:
    return _list_paths(typed, lambda entry: True)


def list_folders(typed: str) -> Answer:
    return _list_paths(typed, lambda entry: False)


def list_models(typed: str) -> Answer:
    """ONNX files, and folders: builds, Hugging Face models, or the way to one."""
    return _list_paths(typed, lambda entry: entry.name.lower().endswith(".onnx"))


def list_runs(typed: str) -> Answer:
    """Folders of searches, matrices and builds; where none fits, all folders, for one may be further down."""
    folders = list_folders(typed)
    runs = [name for name in folders.values if _is_run(Path(_expand(name)))]
    return Answer("files", dict.fromkeys(runs, "")) if runs else folders


def _is_run(folder: Path) -> bool:
    try:
        return any((folder / name).is_file() for name in RUN_FILES)
    except OSError:
        return False


def _expand(typed: str) -> str:
    return os.path.expanduser(typed) if typed.startswith("~") else typed  # noqa: PTH111 - keeps the end as it is


def _list_paths(typed: str, is_wanted: Callable[[os.DirEntry[str]], bool]) -> Answer:
    """Files that are wanted and all folders, whose names start with what is typed; hidden ones by their dot."""
    separators = "/" if os.altsep is None else os.sep + os.altsep
    end = max(typed.rfind(character) for character in separators) + 1
    folder, start = typed[:end], typed[end:]
    separator = folder[-1:] or os.sep
    found: dict[str, str] = {}
    try:
        with os.scandir(_expand(folder) or ".") as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                if not entry.name.startswith(start) or (entry.name.startswith(".") and not start.startswith(".")):
                    continue
                if entry.is_dir():
                    found[f"{folder}{entry.name}{separator}"] = ""
                elif is_wanted(entry):
                    found[f"{folder}{entry.name}"] = ""
    except (OSError, ValueError):
        return Answer("files")  # no such folder, or one that may not be read
    return Answer("files", found)


def listed(values: Values) -> Values:
    """The same for a list with commas: what was typed before the last one stays."""

    def list_with_start(typed: str) -> Answer:
        start = typed[: typed.rfind(",") + 1]
        answer = values(typed[len(start) :])
        return Answer(answer.kind, {start + value: text for value, text in answer.values.items()})

    return list_with_start


OPTIONS: dict[str, Values] = {
    "--target": list_targets,
    "--targets": listed(list_targets),
    "--reference-target": list_targets,
    "--ep": list_eps,
    "--device": list_devices,
    "--precision": list_precisions,
    "--task": list_tasks,
    "--family": list_families,
    "--preset": list_presets,
    "--level": list_levels,
    "--enable": list_passes,
    "--disable": list_passes,
    "--reference": list_models,
    "--reuse": list_runs,
    "--data": list_files,
    "--calibration": list_files,
}
"""What the option of this name takes; other options are known by their metavar."""

METAVARS: dict[str, Values] = {
    "EP[/DEVICE]": list_targets,
    "FILE": list_files,
    "FILE.npz": list_files,
    "FILE.html": list_files,
    "FILE|NAME": list_files,
    "NAME|FILE.py:NAME": list_files,
    "PATH": list_files,
    "DATA": list_files,
    "DIR": list_folders,
    "DIR|FILE.zip": list_files,
    "[TARGET=]FILE": list_files,
    "KEY": list_files,
    "FOLDER": list_folders,
    "MODEL": list_models,
    "M": list_models,
}

ARGUMENTS: dict[str, Values] = {
    "model": list_models,
    "models": list_models,
    "first_argument": list_models,
    "first_arguments": list_models,
    "base": list_models,
    "candidates": list_models,
    "ep": list_eps,
    "builds": list_runs,
    "package": list_files,
    "reported": list_files,
    "finding": list_findings,
    "folder": list_runs,
    "run": list_runs,
    "directory": list_runs,
    "root": list_folders,
    "before": list_files,
    "after": list_files,
    "file": list_files,
    "path": list_files,
}
"""What the argument of this name takes."""

SPECIAL: dict[tuple[str, str], Values] = {
    ("compile", "--model"): list_models,
    ("eval", "--task"): list_evaluation_tasks,
    ("run", "--task"): list_evaluation_tasks,
    ("serve", "--task"): list_evaluation_tasks,
    ("node", "--device"): list_targets,
    ("matrix status", "--output"): list_runs,
    ("autoconfig", "--output"): list_runs,
    ("support produce", "--level"): lambda typed: Answer("words"),
}
"""Where an option of a command is not what its name says elsewhere."""
