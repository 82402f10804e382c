"""A model that is saved once and opened as often as needed, each time with other nodes and outputs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onnx import ModelProto, ValueInfoProto, helper

from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.graph import files, walk
from winml.modelkit.graph.tensors import byte_count, is_external
from winml.modelkit.session.session import WinMLSession

if TYPE_CHECKING:
    from onnx import NodeProto

CPU = Target("cpu", "cpu")
SMALL_BYTES = 1024
"""Shapes, axes and single numbers, which the quantizers and the inference of shapes look into."""


class Runnable:
    """The weights stay in one file of a folder; every opened variant is a small file beside it.

    A model that has weights in files of its own is not written: they are inputs of its variants, which can be opened
    and asked about, but not run.
    """

    def __init__(self, model: ModelProto, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "model.onnx"
        self._given: ModelProto | None = None
        self._count = 0
        if any(map(is_external, model.graph.initializer)):
            self._given, self._structure = ModelProto(), ModelProto()
            self._given.CopyFrom(model)
            self._structure.CopyFrom(model)
            _make_inputs(self._structure)
        else:
            files.save(model, self._path, external_data="always")
            self._structure = files.load(self._path, weights=False)

    def load(self) -> ModelProto:
        """The model as it was given."""
        if self._given is None:
            return files.load(self._path)
        model = ModelProto()
        model.CopyFrom(self._given)
        return model

    @property
    def folder(self) -> Path:
        """Where the file with the weights is, and models that share it have to be."""
        return self._folder

    @property
    def structure(self) -> ModelProto:
        """The model without its large weights."""
        return self._structure

    def load_some(self, needed: Collection[str]) -> ModelProto:
        """The model with the data of these weights and of small ones; those of others stay in the file they are in.

        It can be saved beside that file as it is.
        """
        if self._given is not None:
            return self.load()
        model = files.load(self._path, weights=False)
        left = {t.name for t in model.graph.initializer if byte_count(t) > SMALL_BYTES and t.name not in needed}
        files.read_weights(model, self._path, besides=left)
        return model

    def open(self, outputs: Sequence[str], *, nodes: Sequence[NodeProto] = (), level: str = "disable") -> WinMLSession:
        """A session on the CPU that gives `outputs`, which may be any values of the graph or of the added nodes."""
        variant = ModelProto()
        variant.CopyFrom(self._structure)
        variant.graph.node.extend(nodes)
        known = {walk.domain_of(entry.domain) for entry in variant.opset_import}
        for domain in sorted({walk.domain_of(node.domain) for node in nodes} - known):
            variant.opset_import.add(domain=domain, version=1)
        declared = {value.name: value for value in self._structure.graph.output}
        del variant.graph.output[:]
        # The runtime finds out the type of an output that is declared without one.
        variant.graph.output.extend(declared.get(name, ValueInfoProto(name=name)) for name in outputs)
        self._count += 1
        path = self._folder / f"variant_{self._count}.onnx"
        path.write_bytes(variant.SerializeToString())
        return WinMLSession(path, target=CPU, section=SessionSection(optimization_level=level))


def _make_inputs(model: ModelProto) -> None:
    """Turn the initializers that are in other files into inputs."""
    graph = model.graph
    for index in reversed(range(len(graph.initializer))):
        tensor = graph.initializer[index]
        if is_external(tensor):
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
            del graph.initializer[index]
