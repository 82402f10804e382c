"""`winml inspect`: what a model file holds, or what the files of a Hugging Face model show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from winml.modelkit.building.inspect_generation import GenerationInspection, find_generation
from winml.modelkit.building.model_argument import model_path
from winml.modelkit.core import model_ref
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.events import OnEvent, ignore
from winml.modelkit.core.generation import is_decoder_folder, read_decoder_folder
from winml.modelkit.core.model_ref import ModelRef
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.values import key
from winml.modelkit.graph.description import ModelDescription
from winml.modelkit.worker.client import Worker

if TYPE_CHECKING:
    from winml.modelkit.building.export.describe import FolderInspection


@dataclass(frozen=True, kw_only=True, repr=False)
class Inspection(CommandResult):
    """What a model file holds."""

    schema: Literal["winml/inspect/1"] = "winml/inspect/1"
    ok: Literal[True] = True
    model: str
    description: ModelDescription = key(inline=True)
    generation: GenerationInspection | None = key(omit=True)
    """How its folder generates text; only of a folder with `genai_config.json`."""
    generation_problem: str | None = key(omit=True)
    """Why such a folder does not generate text."""


def inspect(
    model: str, *, dims: Mapping[str, int], timeout_s: float | None = None, on_event: OnEvent = ignore
) -> Inspection | FolderInspection:
    """Read the model in a worker, where a file that breaks the parser breaks nothing else.

    Without `timeout_s` it may take 20 s and a second for every 10 MB.
    """
    ref = model_ref.parse(model)
    if ref.is_exported:
        return _inspect_folder(ref, dims, on_event, timeout_s)
    folder = Path(model) if is_decoder_folder(Path(model)) else None
    found, problem = (None, None) if folder is None else find_generation(folder)
    # Other programs call the model as they like; its build is checked against its manifest.
    named = None if found is None or ref.kind == "build" else read_decoder_folder(Path(model)).model
    path = named or model_path(model, on_event)
    with Worker(preload=("winml.modelkit.graph.describe",)) as worker:
        args = {"path": str(path), "dims": dims}
        what = f"reading `{path.name}`"
        described = worker.ask(ModelDescription, "graph.describe", args, timeout_s=timeout_s, what=what)
    return Inspection(model=model, description=described, generation=found, generation_problem=problem)


def _inspect_folder(
    ref: ModelRef, dims: Mapping[str, int], on_event: OnEvent, timeout_s: float | None
) -> FolderInspection:
    """What config.json and the headers of the weights hold.

    Nothing is imported or loaded, unless the architecture is in no table: then its class is asked.
    """
    if dims:
        raise RequestError("`--dim` is for ONNX models", hint="drop it, or export the model first")
    from winml.modelkit.building.export.describe import describe
    from winml.modelkit.building.export.resolve import ExportOptions
    from winml.modelkit.building.exported import find_derivation, hub_weights, locate

    located = locate(ref, weights=False, on_event=on_event)
    weights = None if ref.kind == "folder" or located.folder.weight_files else hub_weights(ref)
    return describe(
        located.folder,
        weights,
        model=located.reference,
        derive=lambda: find_derivation(located, ExportOptions(), on_event=on_event, timeout_s=timeout_s),
    )
