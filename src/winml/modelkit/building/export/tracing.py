"""The two exporters behind one function: a part of a model and sample inputs in, an ONNX model out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from onnx import ModelProto
from torch import Tensor, nn

from winml.modelkit.building.export.masks import plain_padding
from winml.modelkit.building.export.noise import mean_noise
from winml.modelkit.building.export.parts import Part
from winml.modelkit.core.config import ExportSection
from winml.modelkit.core.errors import RequestError, RunFailedError
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.graph import files, walk

Tensors = dict[str, Tensor]
_OLDEST_OF_TORCH = 18
_SPECIALIZED = ("specialized", "Constraints violated", "ConstraintViolation", "marked as dynamic")


def trace_part(part: Part, inputs: Tensors, section: ExportSection) -> ModelProto:
    """The part in ONNX, as its exporter leaves it; an error names the axis or operator that caused it."""
    for axis, size in section.sizes.items():
        if size < 2 and section.exporter == "transformers":
            raise RequestError(
                f"axis `{axis}` is open and has size {size} in the sample, which torch takes for a constant",
                hint=f"trace with at least 2, or fix the axis with `--shape {shell_word(f'{axis}={size}')}`",
            )
    try:
        with plain_padding(), mean_noise(active=section.mean_noise), torch.no_grad():
            return _EXPORTERS[section.exporter](part, inputs, section)
    except (RequestError, RunFailedError):
        raise
    except Exception as error:  # an exporter raises whatever the code of a model raises
        raise _explain_failure(error, section) from error


def _with_transformers(part: Part, inputs: Tensors, section: ExportSection) -> ModelProto:
    from torch.export import Dim
    from transformers.exporters import OnnxConfig, OnnxExporter

    shapes = {
        # An axis that is the sum of others cannot be declared; torch infers it.
        _plain_name(entry.name): {
            index: Dim.AUTO if axis == "total" else Dim.DYNAMIC
            for index, axis in enumerate(entry.shape)
            if isinstance(axis, str)
        }
        for entry in section.inputs
    }
    config = OnnxConfig(dynamic_shapes=shapes, opset_version=max(section.opset, _OLDEST_OF_TORCH))
    named = {_plain_name(name): name for name in inputs}
    made = list(part(**inputs))  # outputs may be nested, as `text_model_output.last_hidden_state`
    traced = _PlainNames(part, named).eval()
    traced.config = part.config
    program = OnnxExporter().export(traced, {_plain_name(name): value for name, value in inputs.items()}, config=config)
    model = _save_and_load(lambda path: program.save(path, external_data=True))
    _rename_values(model, {**named, **{_plain_name(name): name for name in made}})
    return model


class _PlainNames(nn.Module):
    """A part whose inputs and outputs have names that Python takes for parameters."""

    def __init__(self, part: Part, names: dict[str, str]) -> None:
        super().__init__()
        self.part = part
        self.names = names

    def forward(self, **inputs: Tensor) -> Tensors:
        made = self.part(**{self.names[name]: value for name, value in inputs.items()})
        return {_plain_name(name): value for name, value in made.items()}


def _plain_name(name: str) -> str:
    return name.replace(".", "_")


def _rename_values(model: ModelProto, names: dict[str, str]) -> None:
    """Give inputs and outputs of a graph their names again; torch puts a prefix before a name that it uses itself."""
    changed = {plain: name for plain, name in names.items() if plain != name}
    for value in model.graph.input:
        prefixed = value.name.rpartition(".")[2]
        if value.name not in names and prefixed in names:
            changed[value.name] = names[prefixed]
    if not changed:
        return
    for value in (*model.graph.input, *model.graph.output):
        value.name = changed.get(value.name, value.name)
    for node in walk.nodes(model):
        for values in (node.input, node.output):
            for index, name in enumerate(values):
                values[index] = changed.get(name, name)


def _with_legacy(part: Part, inputs: Tensors, section: ExportSection) -> ModelProto:
    names = list(inputs)
    outputs = list(part(**inputs))
    axes = {
        entry.name: {index: axis for index, axis in enumerate(entry.shape) if isinstance(axis, str)}
        for entry in section.inputs
    }
    wrapped = _Positional(part, names).eval()  # torch puts a module back into the mode it had, also what is inside
    return _save_and_load(
        lambda path: torch.onnx.export(
            wrapped,
            tuple(inputs.values()),
            path,
            dynamo=False,
            input_names=names,
            output_names=outputs,
            dynamic_axes=axes,
            opset_version=section.opset,
        )
    )


class _Positional(nn.Module):
    """A part by position, as the tracer of torch calls it."""

    def __init__(self, part: Part, names: list[str]) -> None:
        super().__init__()
        self.part = part
        self.names = names

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.part(**dict(zip(self.names, values, strict=True))).values())


_EXPORTERS: dict[str, Callable[[Part, Tensors, ExportSection], ModelProto]] = {
    "transformers": _with_transformers,
    "legacy": _with_legacy,
}


def _save_and_load(save: Callable[[str], Any]) -> ModelProto:
    """The model that an exporter writes to a file, which may be past what protobuf holds."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="export-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "traced.onnx"
        save(str(path))
        return files.load(path)


def _explain_failure(error: Exception, section: ExportSection) -> RunFailedError:
    """The error of an exporter in one line, with what a user can do about it."""
    root: BaseException = error
    while root.__cause__ is not None:
        root = root.__cause__
    lines = [line.strip() for line in str(root).splitlines() if line.strip()]
    reason = (lines[0] if lines else type(root).__name__)[:300]
    if any(word in str(error) + str(root) for word in _SPECIALIZED):
        axes = ", ".join(f"`{axis}`" for axis in section.sizes)
        return RunFailedError(
            f"the model cannot be exported with {axes} open: {reason}",
            hint="leave fewer axes open with `--dynamic-axes`, or fix one with `--shape AXIS=N`",
        )
    other = "legacy" if section.exporter == "transformers" else "transformers"
    return RunFailedError(
        f"exporter `{section.exporter}` raised {type(root).__name__}: {reason}",
        hint=f"try `--exporter {other}`; `winml support probe` shows what a model of this kind would need",
    )
