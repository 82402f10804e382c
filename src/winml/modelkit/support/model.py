"""The model to support: its content and its config."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from winml.modelkit.building import exported
from winml.modelkit.building.model_argument import model_path
from winml.modelkit.building.pipeline.artifact import hash_source, read_source
from winml.modelkit.core import model_ref
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.file_names import fit_name
from winml.modelkit.core.json_text import read_object
from winml.modelkit.worker.client import Worker


@dataclass(frozen=True)
class SupportModel:
    """A model by content."""

    reference: str
    exported: bool
    digest: str
    config: Mapping[str, Any]
    """Its config.json; empty for an ONNX model."""
    places: tuple[Path, ...] = ()
    """Files and folders that commands read it from."""

    @property
    def family(self) -> str | None:
        found = self.config.get("model_type")
        return found if isinstance(found, str) else None

    @property
    def name(self) -> str:
        """A name for recipes and folders."""
        plain = self.reference.partition("@")[0].rstrip("/\\").replace("\\", "/")
        word = Path(plain).stem if not self.exported else plain.rpartition("/")[2]
        kept = "".join(c if c.isalnum() else "-" for c in word.casefold())
        return fit_name("-".join(filter(None, kept.split("-"))))


def read_model(word: str) -> SupportModel:
    """The model of a `-m` value, hashed as builds hash it."""
    ref = model_ref.parse(word)
    if ref.is_exported:
        located = exported.locate(ref)
        files = located.folder.content_files(code=bool(located.folder.remote_code))
        config = read_object(located.folder.path / model_ref.CONFIG, lenient=True)
        digest = hash_source(files, main=model_ref.CONFIG).artifact.digest
        return SupportModel(word, True, digest, config, _places(located.folder.path))
    path = model_path(word)
    with Worker(preload=("winml.modelkit.graph.source",)) as worker:
        others = worker.ask(tuple[Path, ...], "graph.external_files", {"path": path}, what="reading the model")
    source = read_source(path, others)
    found = (Path(word),) if ref.kind == "build" else (path, *others)
    return SupportModel(word, False, source.artifact.digest, {}, tuple(p for file in found for p in _places(file)))


def _places(path: Path) -> tuple[Path, ...]:
    """The path to read a model from; in the hub's cache the whole repository, because files there are links."""
    cached = next((p for p in path.absolute().parents if p.name.startswith("models--")), None)
    return (path.absolute(),) if cached is None else (cached,)


def hub_cache(places: tuple[Path, ...]) -> Path | None:
    """The hub's cache that contains a model; None for a model elsewhere."""
    return next((path.parent for path in places if path.name.startswith("models--")), None)
