"""`winml build` and `winml export` of composite models: every part in a build folder of its own, and a manifest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from winml.modelkit.app import config as configs
from winml.modelkit.app import exported
from winml.modelkit.app.build import BuildRequest, build
from winml.modelkit.app.config import ConfigRequest
from winml.modelkit.core import model_ref
from winml.modelkit.core.build_folder import CONFIG, PARTS
from winml.modelkit.core.config import OptimizeSection
from winml.modelkit.core.errors import PartlyDone, RequestError, RunFailedError
from winml.modelkit.graph.signature import read_signature
from winml.modelkit.graph.sizes import metadata_ranges, metadata_sizes
from winml.modelkit.pipeline import folder as folders
from winml.modelkit.stages.export import resolve
from winml.modelkit.stages.export.families import WHOLE

SCHEMA = "winml/build-parts/1"
MANIFEST_SCHEMA = "winml/parts/1"

OnEvent = Callable[[dict[str, Any]], None]


def build_model(request: BuildRequest, on_event: OnEvent) -> dict[str, Any]:
    """Build a model; a composite one part by part."""
    parts = parts_of(request)
    if parts == (WHOLE,):
        return build(request, on_event)
    return _build_parts(request, parts, on_event)


def parts_of(request: BuildRequest) -> tuple[str, ...]:
    """The parts that a request asks for; a config is for one."""
    if not isinstance(request.config, ConfigRequest):
        return (WHOLE,)
    ref = model_ref.parse(request.config.model)
    if not ref.is_exported or request.config.export.part is not None:
        return (WHOLE,)
    located = exported.locate(ref, weights=False)
    return resolve.parts_of(located.folder, request.config.export)


def _build_parts(request: BuildRequest, parts: tuple[str, ...], on_event: OnEvent) -> dict[str, Any]:
    assert isinstance(request.config, ConfigRequest)
    if request.output is None:
        raise RequestError("a composite model has several artifacts", hint="name a folder for them with `-o DIR`")
    folder = folders.place(request.output)
    _check(folder, parts, overwrite=request.overwrite)
    built: dict[str, dict[str, Any]] = {}
    for part in parts:
        options = replace(request.config.export, part=part)
        config = replace(request.config, export=options)
        one = replace(request, config=config, output=str(folder / part))
        try:
            folder.mkdir(exist_ok=True)
            built[part] = build(one, on_event)
        except RunFailedError as error:
            if not built:
                raise
            done = ", ".join(built)
            raise PartlyDone(
                f"part `{part}` was not built ({done} was): {error.message}", hint=error.hint, details=error.details
            ) from error
    first = next(iter(built.values()))
    value = _manifest(first, built)
    folders.write_json(folder / PARTS, value)
    return {
        "schema": SCHEMA,
        "ok": True,
        "model": first["model"],
        "target": first["target"],
        "simulated": first["simulated"],
        "precision": first["precision"],
        "folder": str(folder),
        "parts": [{"part": part, **result} for part, result in built.items()],
        "notes": _told(built, "notes"),
        "warnings": _told(built, "warnings"),
    }


def _check(folder: Path, parts: tuple[str, ...], *, overwrite: bool) -> None:
    """Refuse a folder that holds anything but an earlier build of the same parts."""
    if folder.exists() and not folder.is_dir():
        raise RequestError(f"output `{folder}` is a file", hint="name a folder")
    if not folder.exists():
        if not folder.parent.is_dir():
            raise RequestError(f"output folder's parent not found: `{folder.parent}`")
        return
    foreign = sorted(path.name for path in folder.iterdir() if path.name not in (*parts, PARTS))
    if foreign:
        raise RequestError(
            f"output folder `{folder}` holds files that are not of a build: `{foreign[0]}`", hint="name a new folder"
        )
    if (folder / PARTS).exists() and not overwrite:
        raise RequestError(f"output folder holds another build: `{folder}`", hint="add `--overwrite` to replace it")


def _manifest(first: dict[str, Any], built: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What the parts are, for whoever runs them together."""
    return {
        "schema": MANIFEST_SCHEMA,
        "model": first["model"],
        "target": first["target"],
        "parts": {
            part: {
                "folder": part,
                "file": Path(result["artifact"]["path"]).name,
                "digest": result["artifact"]["digest"],
                **_made_for(result),
            }
            for part, result in built.items()
        },
    }


def _made_for(result: dict[str, Any]) -> dict[str, Any]:
    """The sizes of open dimensions that a part is used with, those that are written into it, and its whole numbers."""
    path = Path(result["artifact"]["path"])
    metadata = read_signature(path).metadata
    fixed = (configs.load(str(path.parent / CONFIG)).optimize or OptimizeSection()).fixed_dims
    ranges = {name: list(ends) for name, ends in metadata_ranges(metadata).items()}
    return {"sizes": {**metadata_sizes(metadata), **fixed}, "ranges": ranges}


def _told(built: dict[str, dict[str, Any]], kind: str) -> list[str]:
    """What every part was told; what all of them were told once."""
    lines = [result[kind] for result in built.values()]
    common = [line for line in lines[0] if all(line in others for others in lines)]
    rest = [f"{part}: {line}" for part, result in built.items() for line in result[kind] if line not in common]
    return [*common, *rest]
