"""What the models of experiments share: seeded weights, float inputs and outputs, one way to close a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

Array = npt.NDArray[Any]

IR_VERSION = 10
CONTRIB = "com.microsoft"


class Graph:
    """Nodes and constants as they are added; names are generated."""

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []

    def weights(self, *shape: int) -> Array:
        """Values whose products neither vanish nor grow through layers."""
        fan_in = max(1, int(np.prod(shape[1:])))
        values: Array = (self._random.standard_normal(shape) * np.sqrt(2.0 / fan_in)).astype(np.float32)
        return values

    def constant(self, value: Array | TensorProto) -> str:
        name = f"c{len(self._constants)}"
        tensor = value if isinstance(value, TensorProto) else numpy_helper.from_array(value)
        tensor.name = name
        self._constants.append(tensor)
        return name

    def add(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """A node; its one output."""
        output = f"v{len(self._nodes)}"
        name = f"{op}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, list(inputs), [output], name=name, domain=domain, **attributes))
        return output

    def model(
        self, inputs: Sequence[ValueInfoProto], output: str, shape: Sequence[int | str], *, opset: int
    ) -> ModelProto:
        self._nodes.append(helper.make_node("Identity", [output], ["y"], name="y"))
        graph = helper.make_graph(
            self._nodes, "experiment", list(inputs), [tensor("y", shape)], initializer=self._constants
        )
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid(CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="winml")


def tensor(name: str, shape: Sequence[int | str], kind: int = TensorProto.FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, list(shape))
