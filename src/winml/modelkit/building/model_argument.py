"""What `-m` may name, as a file that can be opened: Hugging Face models are exported on the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from winml.modelkit.core import model_ref
from winml.modelkit.core.build_folder import CONFIG, MANIFEST, MODEL, PARTS, load_parts
from winml.modelkit.core.config import BuildConfig, EvalSection, read_config
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.events import Event, ExportNeeded, HubWaiting, OnEvent, ignore
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.measurement import SessionSection, check_session
from winml.modelkit.core.model_file import require_model_file
from winml.modelkit.core.model_ref import ModelRef
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.ep.trust import NOTHING, Trust


@dataclass(frozen=True)
class ModelArgument:
    """The file to open, and the session options of its build."""

    path: Path
    section: SessionSection
    evaluation: EvalSection | None = None
    """The evaluation section of its build."""
    target: str | None = None
    """What its build is for; None for a model that is no build."""
    build: str | None = None
    """The identity of its build."""


def _load_config(file: Path, trust: Trust) -> BuildConfig:
    """The config of a build folder, with the session as far as a document may set it."""
    try:
        value = read_json(file)
    except ValueError as error:
        raise RequestError(f"`{file}` is not a build config: {error}") from error
    # Only build folders need the classes of a manifest.
    from winml.modelkit.building.pipeline.identity import matches

    if matches(file.with_name(MANIFEST), value) is False:
        raise RequestError(
            f"`{file}` was changed after the build: it is not the config that {MANIFEST} was written with",
            hint=f"build it again with `winml build -c {shell_word(str(file))} -o DIR`",
        )
    try:
        config = read_config(value)
        session = replace(config.session, ep_options=trust.without_typed(config.session.ep_options))
        check_session(session, trust.gate(str(file)))
    except RequestError as error:
        raise RequestError(f"`{file}`: {error.message}", hint=error.hint) from error
    return replace(config, session=session)


def _read_identity(manifest: Path) -> str | None:
    from winml.modelkit.building.manifest import load_manifest

    stated = load_manifest(manifest)
    return None if stated is None else stated.identity


def model_argument(argument: str, on_event: OnEvent = ignore, *, trust: Trust = NOTHING) -> ModelArgument:
    """The model behind an argument, and the session options of its build folder, as far as a document may set them.

    The argument is a path or a model of the hub; an export that is not in the cache is reported as an event.
    """
    ref = model_ref.parse(argument)
    if ref.kind == "build":
        folder = Path(ref.source)
        # First what a manifest that does not fit is told with; then its identity can be read.
        path, build = _find_built_model(folder), _read_identity(folder / MANIFEST)
        if not (folder / CONFIG).is_file():
            return ModelArgument(path, SessionSection(), build=build)
        config = _load_config(folder / CONFIG, trust)
        return ModelArgument(path, config.session, config.eval, config.target, build)
    return ModelArgument(_file(ref, on_event), SessionSection())


def parts_argument(folder: Path, on_event: OnEvent = ignore, *, trust: Trust = NOTHING) -> ModelArgument:
    """The file that lists parts, with the session of their builds, which is the same in all, and their target."""
    listed = load_parts(folder)
    section = SessionSection()
    for part in listed.parts.values():
        if (folder / part.folder / CONFIG).is_file():
            section = model_argument(str(folder / part.folder), on_event, trust=trust).section
    return ModelArgument(folder / PARTS, section, target=listed.target)


def model_path(argument: str, on_event: OnEvent = ignore) -> Path:
    """The model behind an argument, for commands that only read it: session options of a build are ignored."""
    ref = model_ref.parse(argument)
    return _find_built_model(Path(ref.source)) if ref.kind == "build" else _file(ref, on_event)


def _find_built_model(folder: Path) -> Path:
    """The model of a build folder; raises when a file differs from the one in the manifest."""
    from winml.modelkit.building.pipeline.identity import find_changed_file

    model = require_model_file(folder / MODEL)
    changed = find_changed_file(folder / MANIFEST)
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
        return require_model_file(exported.fetch_file(ref, on_event))

    def tell(event: Event) -> None:
        if isinstance(event, StageStarted) and not event.hit:
            on_event(ExportNeeded(str(ref)))
        elif isinstance(event, HubWaiting):
            on_event(event)

    return exported.export_whole(ref, exported.Exporting(on_event=tell)).path
