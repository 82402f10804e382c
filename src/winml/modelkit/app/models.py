"""What `-m` may name: a model file, or a build folder with its session section."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from winml.modelkit.core import sections
from winml.modelkit.core.build_folder import CONFIG, MODEL
from winml.modelkit.core.config import EvalSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.measurement import SessionSection, section_from_json
from winml.modelkit.core.model_file import require_model_file


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


def model_argument(path: str) -> ModelArgument:
    """The model behind a path."""
    folder = Path(path)
    if folder.is_dir() and (folder / MODEL).is_file():
        config = folder / CONFIG
        section, judged = _sections(config) if config.is_file() else (SessionSection(), None)
        return ModelArgument(require_model_file(folder / MODEL), section, judged)
    return ModelArgument(require_model_file(path), SessionSection())
