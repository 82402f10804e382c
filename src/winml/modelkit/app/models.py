"""What `-m` may name, as a file that can be opened: Hugging Face models are exported on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winml.modelkit.core import model_ref, sections
from winml.modelkit.core.build_folder import CONFIG, MODEL
from winml.modelkit.core.config import EvalSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.measurement import SessionSection, section_from_json
from winml.modelkit.core.model_file import require_model_file
from winml.modelkit.core.model_ref import ModelRef

OnEvent = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class ModelArgument:
    """The file to open, and how its build says a session should be opened."""

    path: Path
    section: SessionSection
    evaluation: EvalSection | None = None
    """What its build says it is judged by."""


def _sections(config: Path) -> tuple[SessionSection, EvalSection | None]:
    try:
        value = json.loads(config.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RequestError(f"`{config}` is not a build config: {error}") from error
    try:
        if not isinstance(value, dict):
            raise RequestError(f"a build config must be an object but got {value!r:.80}")
        session, judged = section_from_json(value.get("session") or {}), value.get("eval")
        return session, None if judged is None else sections.read(EvalSection, judged, "eval")
    except RequestError as error:
        raise RequestError(f"`{config}`: {error.message}", hint=error.hint) from error


def model_argument(word: str, on_event: OnEvent = lambda _: None) -> ModelArgument:
    """The model behind a word: a path, or a model of the hub; an export that is not in the cache is told of."""
    ref = model_ref.parse(word)
    if ref.kind == "build":
        folder = Path(ref.source)
        config = folder / CONFIG
        section, judged = _sections(config) if config.is_file() else (SessionSection(), None)
        return ModelArgument(require_model_file(folder / MODEL), section, judged)
    return ModelArgument(_file(ref, on_event), SessionSection())


def _file(ref: ModelRef, on_event: OnEvent) -> Path:
    if ref.kind == "file":
        return require_model_file(ref.source)
    # Stages bring modules that an ONNX file does not need.
    from winml.modelkit.app import exported

    if ref.kind == "hub-file":
        return require_model_file(exported.fetched_file(ref))

    def tell(event: dict[str, Any]) -> None:
        if event["event"] == "stage" and not event["hit"]:
            on_event({"event": "needs-export", "model": str(ref)})

    return exported.exported_model(ref, exported.Exporting(on_event=tell)).path
