"""What `-m` may name: a model file, or a build folder with its session section."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.model_file import require_model_file
from winml.modelkit.core.suggest import did_you_mean

MODEL = "model.onnx"
CONFIG = "build_config.json"


@dataclass(frozen=True)
class ModelArgument:
    """The file to open, and how its build says a session should be opened."""

    path: Path
    section: SessionSection


def _section(config: Path) -> SessionSection:
    try:
        value = json.loads(config.read_text(encoding="utf-8")).get("session") or {}
        unknown = set(value) - {f.name for f in fields(SessionSection)}
    except (ValueError, AttributeError, TypeError) as error:
        raise RequestError(f"`{config}` is not a build config: {error}") from error
    if unknown:
        name = min(unknown)
        raise RequestError(
            f"`{config}` has an unknown key `session.{name}`",
            hint=did_you_mean(name, [f.name for f in fields(SessionSection)]),
        )
    return SessionSection(**value)


def model_argument(path: str) -> ModelArgument:
    """The model behind a path."""
    folder = Path(path)
    if folder.is_dir() and (folder / MODEL).is_file():
        config = folder / CONFIG
        section = _section(config) if config.is_file() else SessionSection()
        return ModelArgument(require_model_file(folder / MODEL), section)
    return ModelArgument(require_model_file(path), SessionSection())
