"""What an export tries when a model cannot be traced as asked; every step that was needed is in its warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from winml.modelkit.building.export import genai, resolve
from winml.modelkit.building.export.derivation import IMAGE_WORDS
from winml.modelkit.building.export.families import DECODER
from winml.modelkit.building.export.folder import ModelFolder
from winml.modelkit.core.config import ExportSection
from winml.modelkit.core.errors import ModelkitError

_LEGACY = "legacy"
_OF_IMAGES = ("pixel_", "spatial_")


def list_attempts(section: ExportSection, folder: ModelFolder) -> Iterator[ExportSection]:
    """The section, then what asks for less: the batch open alone, every axis fixed, the legacy exporter, text alone.

    A decoder that onnxruntime-genai's builder does not build, or builds otherwise than PyTorch computes it, is traced.
    """
    yield section
    if not section.fall_back:
        return
    if section.exporter == genai.EXPORTER:
        options = resolve.ExportOptions(task=section.task, exporter="transformers", seed=section.seed)
        yield replace(resolve.resolve(folder, options, section.part), verify=section.verify)
        return
    if section.part == DECODER:  # a text cannot grow where an axis is fixed
        yield replace(section, exporter=_LEGACY)
        return
    sizes = resolve.npu_sizes(folder, section)
    others = [axis for axis in section.sizes if not axis.endswith("batch")]
    fixed = _fix(section, sizes, list(section.sizes))
    if others and len(others) < len(section.sizes):
        yield _fix(section, sizes, others)
    if section.sizes:
        yield fixed
    yield replace(section, exporter=_LEGACY)
    if section.sizes:
        yield replace(fixed, exporter=_LEGACY)
    if any(entry.placeholders is not None for entry in section.inputs):
        yield _leave_out_images(section)


def describe_fallback(section: ExportSection, failed: Sequence[tuple[ExportSection, ModelkitError]]) -> tuple[str, ...]:
    """What an attempt does otherwise than asked, and the error that made it necessary."""
    if not failed:
        return ()
    asked, error = failed[0]
    said = []
    closed = [axis for axis in asked.sizes if axis not in section.sizes]
    if closed:
        shapes = {entry.name: entry.shape for entry in section.inputs}
        sizes = {
            axis: size
            for entry in asked.inputs
            for axis, size in zip(entry.shape, shapes.get(entry.name, entry.shape), strict=True)
            if axis in closed
        }
        said.append("fixed axes: " + ", ".join(f"{axis} at {size}" for axis, size in sizes.items()))
    names = {entry.name for entry in section.inputs}
    left_out = [entry.name for entry in asked.inputs if entry.name not in names]
    if left_out:
        said.append(f"exported with its text alone, without {', '.join(left_out)}")
    if section.exporter != asked.exporter:
        said.append(f"exporter: {section.exporter}")
    return (f"{'; '.join(said)}; as asked it failed: {error.message}",)


def _fix(section: ExportSection, sizes: dict[str, int], axes: list[str]) -> ExportSection:
    """The section with axes at the sizes that a device with fixed shapes would get."""
    fixed: dict[int | str, int] = {axis: sizes[axis] for axis in axes}
    inputs = tuple(
        replace(entry, shape=tuple(fixed.get(axis, axis) for axis in entry.shape)) for entry in section.inputs
    )
    return replace(section, inputs=inputs, sizes={a: size for a, size in section.sizes.items() if a not in axes})


def _leave_out_images(section: ExportSection) -> ExportSection:
    """The section of a model that reads images within a text, with its text alone."""
    inputs = tuple(
        replace(entry, placeholders=None) for entry in section.inputs if not entry.name.startswith(_OF_IMAGES)
    )
    axes = {axis for entry in inputs for axis in entry.shape}
    return replace(
        section,
        inputs=inputs,
        sizes={axis: size for axis, size in section.sizes.items() if axis in axes},
        derived=tuple(note for note in section.derived if not note.startswith(IMAGE_WORDS)),
    )
