"""What is known of a Hugging Face model without loading it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Literal

from winml.modelkit.building.export import families, resolve
from winml.modelkit.building.export.derivation import InputDerivation
from winml.modelkit.building.export.families import DECODER, WHOLE
from winml.modelkit.building.export.folder import ModelFolder, Weights
from winml.modelkit.building.export.resolve import ExportOptions
from winml.modelkit.core.config import InputSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.values import AtLeast


@dataclass(frozen=True, kw_only=True)
class PartInspection:
    """What a part of a model takes."""

    part: str
    inputs: tuple[InputSection, ...]
    npu_sizes: Mapping[str, Annotated[int, AtLeast(1)]]
    """Sizes of open axes where a device needs fixed shapes."""


@dataclass(frozen=True, kw_only=True, repr=False)
class FolderInspection(CommandResult):
    """What the files of a Hugging Face model show; what is unknown is null."""

    schema: Literal["winml/inspect-folder/1"] = "winml/inspect-folder/1"
    ok: Literal[True] = True
    model: str
    model_type: str | None
    architecture: str | None
    remote_code: tuple[str, ...]
    parameters: int | None
    weight_types: Mapping[str, int]
    weight_bytes: int | None
    files: tuple[str, ...]
    proven: bool
    """Whether tests export a model of its family and compare it with PyTorch."""
    task: str | None = None
    tasks: tuple[str, ...] = ()
    """The task first, then the others of its family."""
    inputs: tuple[InputSection, ...] | None = None
    parts: tuple[PartInspection, ...] = ()
    derived: tuple[str, ...] = ()
    """How its inputs were derived, for an architecture that is in no table."""
    reason: str | None = None
    """Why its task or its inputs are not known."""
    hint: str | None = None


def describe(
    folder: ModelFolder,
    weights: Weights | None = None,
    *,
    model: str | None = None,
    derive: Callable[[], InputDerivation | None] = lambda: None,
) -> FolderInspection:
    """Class, tasks, inputs, parts and weights, which the caller may pass; `model` is its name.

    `derive` is called for a model whose inputs are in no table.
    """
    weights = folder.weights() if weights is None else weights
    family = folder.family
    found = FolderInspection(
        model=str(folder.path) if model is None else model,
        model_type=folder.model_type,
        architecture=folder.architecture,
        remote_code=tuple(sorted(map(str, folder.remote_code.values()))),
        parameters=weights.parameters,
        weight_types=weights.types,
        weight_bytes=weights.bytes,
        files=tuple(path.name for path in folder.weight_files),
        proven=family is not None and family.proven,
    )
    try:
        task = resolve.task_of(folder, None)
        found = replace(found, task=task, tasks=(task,))
        options = ExportOptions(trust_remote_code=True)  # nothing is run here
        derived = derive() if resolve.is_derived(folder, options) else None
        if derived is None:
            known = folder.require_family()
            others = tuple(other for other in families.tasks_of(known) if other != task)
            found = replace(found, tasks=(task, *others))
        names = resolve.parts_of(folder, options, derived)
        if derived is not None and derived.has_decoder:
            names = (*names, DECODER)
        parts = [_part(folder, part, derived) for part in names]
        whole = _part(folder, WHOLE, derived)
    except ModelkitError as error:
        return replace(found, reason=error.message, hint=error.hint)
    return replace(
        found,
        derived=() if derived is None else (*derived.notes, *derived.find_part(names[-1]).notes),
        inputs=whole.inputs,
        parts=tuple(part for part in parts if part.part != WHOLE),
    )


def _part(folder: ModelFolder, part: str, derived: InputDerivation | None) -> PartInspection:
    section = resolve.resolve(folder, ExportOptions(trust_remote_code=True), part, derived)
    return PartInspection(part=part, inputs=section.inputs, npu_sizes=resolve.npu_sizes(folder, section))
