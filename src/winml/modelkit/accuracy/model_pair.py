"""Both models of a run of `winml debug`: their values matched, their layers, and the files that values are in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.accuracy.messages import REFERENCE, Work
from winml.modelkit.building.proof.operations import load
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.core.json_text import read_object
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.session.session import WinMLSession

CPU = Target("cpu", "cpu")
_KINDS = "kinds.json"

Array = npt.NDArray[Any]


@lru_cache(maxsize=1)
def open_pair(work: Work) -> ModelPair:
    """Both models of a run, which a worker reads once for all of its operations."""
    return ModelPair(work)


class ModelPair:
    """Both models, their values matched, and their layers."""

    def __init__(self, work: Work) -> None:
        from winml.modelkit.accuracy.matching import match_values
        from winml.modelkit.accuracy.slices import Graph
        from winml.modelkit.graph import files

        self.folder = Path(work.folder)
        self.candidate = Graph(files.load(work.model))
        self.reference = Graph(files.load(work.reference))
        self.matched = match_values(self.reference, self.candidate)
        self._layers: list[Any] | None = None

    def layers(self, sample: Mapping[str, Array]) -> list[Any]:
        """Layers of both models; kinds of values are known before they are asked for."""
        if self._layers is None:
            self._layers = self._find_layers(sample)
        return self._layers

    def _find_layers(self, sample: Mapping[str, Array]) -> list[Any]:
        from winml.modelkit.accuracy.layers import find_layers

        known = read_object(self.folder / _KINDS)
        floats = [
            name
            for name, other in self.matched.values.items()
            if name in sample and sample[name].dtype.kind == "f" and known.get(other, "f") == "f"
        ]
        return find_layers(self.reference, self.candidate, self.matched, floats)

    def note_kinds(self, feed: Mapping[str, Array]) -> None:
        """Write which values of the candidate are floats: one of the same name may hold whole numbers there.

        Asked of the runtime on the CPU; of a model that does not run there, as far as its graph says.
        """
        from winml.modelkit.accuracy.layers import expose
        from winml.modelkit.graph import files

        path = self.folder / "kinds.onnx"
        try:
            files.save(expose(self.candidate.model, self.matched.values.values()), path)
            with WinMLSession(path, target=CPU, section=SessionSection(optimization_level="disable")) as session:
                found = session.run({spec.name: feed[spec.name] for spec in session.inputs})
            kinds = {name: value.dtype.kind for name, value in found.items() if isinstance(value, np.ndarray)}
        except ModelkitError:
            floats = (1, 10, 11, 16)  # float, float16, double, bfloat16 of ONNX
            kinds = {name: "f" if kind in floats else "i" for name, kind in self.types().items()}
        (self.folder / _KINDS).write_bytes(json.dumps(kinds).encode())

    def values(self, tag: str, index: int) -> dict[str, Array]:
        return load(self.folder / f"{tag}-{index}.npz")

    def pick(self, tag: str, index: int, names: Sequence[str]) -> dict[str, Array]:
        """Some values of a file."""
        with np.load(self.folder / f"{tag}-{index}.npz", allow_pickle=False) as stored:
            places = {str(name): place for place, name in enumerate(stored["names"])}
            return {name: stored[f"a{places[name]}"] for name in names if name in places}

    def output_pairs(self) -> dict[str, str]:
        """Outputs of the reference with those of the candidate: by name, else by place where there are as many."""
        ours, theirs = self.reference.outputs, self.candidate.outputs
        if not set(ours) & set(theirs) and len(ours) == len(theirs):
            return dict(zip(ours, theirs, strict=True))
        return {name: name for name in ours if name in theirs}

    def outputs(self, tag: str, index: int) -> Iterator[tuple[str, Array, Array]]:
        """Outputs of the reference, and what a run of the model gave for them."""
        names = self.output_pairs()
        reference = self.pick(REFERENCE, index, list(names))
        found = self.pick(tag, index, list(names.values()))
        for name, other in names.items():
            wanted, value = reference.get(name), found.get(other)
            if wanted is None or value is None or wanted.shape != value.shape or wanted.dtype.kind != "f":
                continue
            yield name, wanted, value

    def types(self) -> dict[str, int]:
        """Types of the candidate's values, as far as they follow from the graph."""
        from winml.modelkit.graph.shapes import infer_shapes

        inferred = infer_shapes(self.candidate.model).graph
        values = (*inferred.value_info, *inferred.input, *inferred.output)
        return {value.name: value.type.tensor_type.elem_type for value in values if value.type.HasField("tensor_type")}
