"""What `-m` may name, as a file that can be opened: Hugging Face models are exported on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from winml.modelkit.building.pipeline import identity
from winml.modelkit.core import model_ref, sections
from winml.modelkit.core.build_folder import CONFIG, MANIFEST, MODEL
from winml.modelkit.core.config import EvalSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.events import Event, ExportNeeded, OnEvent, ignore
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.measurement import SessionSection, check_session
from winml.modelkit.core.model_file import require_model_file
from winml.modelkit.core.model_ref import ModelRef
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.core.sections import text
from winml.modelkit.ep.trust import NOTHING, Trust


@dataclass(frozen=True)
class ModelArgument:
    """The file to open, and how its build says a session should be opened."""

    path: Path
    section: SessionSection
    evaluation: EvalSection | None = None
    """What its build says it is judged by."""
    target: str | None = None
    """What its build is for; None for a model that is no build."""


def _sections(config: Path, trust: Trust) -> tuple[SessionSection, EvalSection | None, str | None]:
    try:
        value = read_json(config)
    except ValueError as error:
        raise RequestError(f"`{config}` is not a build config: {error}") from error
    try:
        if not isinstance(value, dict):
            raise RequestError(f"a build config must be an object but got {value!r:.80}")
        session, judged = sections.read(SessionSection, value.get("session") or {}, "session"), value.get("eval")
        evaluation = None if judged is None else sections.read(EvalSection, judged, "eval")
        session = replace(session, ep_options=trust.untyped(session.ep_options))
        check_session(session, trust.gate(str(config)))
        target = None if value.get("target") is None else text(value["target"], "target")
    except RequestError as error:
        raise RequestError(f"`{config}`: {error.message}", hint=error.hint) from error
    _require_unchanged(config, value)
    return session, evaluation, target


def _require_unchanged(config: Path, value: Mapping[str, Any]) -> None:
    """Raise when the config of a build is another one than the build was made with."""
    if identity.matches(config.with_name(MANIFEST), value) is False:
        raise RequestError(
            f"`{config}` was changed after the build: it is not the config that {MANIFEST} was written with",
            hint=f"build it again with `winml build -c {shell_word(str(config))} -o DIR`",
        )


def model_argument(word: str, on_event: OnEvent = ignore, *, trust: Trust = NOTHING) -> ModelArgument:
    """The model behind a word, and how a build folder says that it is opened, as far as a document may say that.

    A word is a path or a model of the hub; an export that is not in the cache is told of.
    """
    ref = model_ref.parse(word)
    if ref.kind == "build":
        folder = Path(ref.source)
        config = folder / CONFIG
        section, judged, target = _sections(config, trust) if config.is_file() else (SessionSection(), None, None)
        return ModelArgument(_built_model(folder), section, judged, target)
    return ModelArgument(_file(ref, on_event), SessionSection())


def model_path(word: str, on_event: OnEvent = ignore) -> Path:
    """The model behind a word for who only reads it: how a build folder would have it opened is not asked."""
    ref = model_ref.parse(word)
    return _built_model(Path(ref.source)) if ref.kind == "build" else _file(ref, on_event)


def _built_model(folder: Path) -> Path:
    """The model of a build folder; raises when it is not what was built, which the manifest still vouches for."""
    model = require_model_file(folder / MODEL)
    changed = identity.changed_file(folder / MANIFEST)
    if changed is not None:
        raise RequestError(
            f"`{folder / changed}` was changed after the build: it is not the file that {MANIFEST} was written with",
            hint=f"build it again with `winml build -c {shell_word(str(folder / CONFIG))} -o DIR`, or name the file "
            f"itself: `-m {shell_word(str(model))}`",
        )
    return model


def _file(ref: ModelRef, on_event: OnEvent) -> Path:
    if ref.kind == "file":
        return require_model_file(ref.source)
    # Stages bring modules that an ONNX file does not need.
    from winml.modelkit.building import exported
    from winml.modelkit.building.events import StageStarted

    if ref.kind == "hub-file":
        return require_model_file(exported.fetched_file(ref))

    def tell(event: Event) -> None:
        if isinstance(event, StageStarted) and not event.hit:
            on_event(ExportNeeded(str(ref)))

    return exported.exported_model(ref, exported.Exporting(on_event=tell)).path
