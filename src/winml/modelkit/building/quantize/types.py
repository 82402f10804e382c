"""Element types of the values inside a model, as the runtime infers them: it knows its own operators, onnx does not."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto, TensorProto, helper

from winml.modelkit.building.quantize.finish import INFERRED
from winml.modelkit.building.quantize.runnable import Runnable
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.graph.inputs import InputSpec

_NAMES = {"float": "FLOAT", "double": "DOUBLE"}


def _element_type(type_name: str) -> int | None:
    """`tensor(float16)` as ONNX numbers it; None for what is no tensor."""
    inner = type_name.removeprefix("tensor(").removesuffix(")")
    name = _NAMES.get(inner, inner.upper())
    return int(TensorProto.DataType.Value(name)) if name in TensorProto.DataType.keys() else None  # noqa: SIM118


@dataclass(frozen=True)
class Values:
    """The values of the outer graph: what the model takes, and the element types of everything."""

    inputs: tuple[InputSpec, ...]
    types: Mapping[str, int]


def ask_types(model: ModelProto, runnable: Runnable) -> Values:
    """What the runtime knows of the values of a model; the model gets their types as value_info."""
    values = [name for node in model.graph.node for name in node.output if name]
    # A model that was folded away has no nodes; the runtime opens none without outputs.
    with runnable.open(values or [value.name for value in model.graph.output]) as session:
        declared = {value.name for value in model.graph.input}  # weights that are not in memory are inputs there
        inputs = tuple(spec for spec in session.inputs if spec.name in declared)
        outputs = session.outputs
    types = {spec.name: found for spec in (*inputs, *outputs) if (found := _element_type(spec.type)) is not None}
    note_types(model, types)
    return Values(inputs, types)


def note_types(model: ModelProto, types: Mapping[str, int]) -> None:
    """Write the types of values into a model, where quantizers look for them."""
    declared = {value.name for value in (*model.graph.input, *model.graph.output)}
    for name, found in types.items():
        if name not in declared:
            model.graph.value_info.append(helper.make_tensor_value_info(name, found, None))
    # Without this entry the quantizers infer types again, through a file and without the runtime's own operators.
    model.metadata_props.add(key=INFERRED, value="onnxruntime.quant")


def forget_types(model: ModelProto) -> None:
    """Take out what `note_types` wrote, of a model whose values have changed."""
    del model.graph.value_info[:]
    kept = [entry for entry in model.metadata_props if entry.key != INFERRED]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
