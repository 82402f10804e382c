"""What a build records about its data before anything runs on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from winml.modelkit.core.config import DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.values import read
from winml.modelkit.data.answers import DataDescription
from winml.modelkit.data.dataset import open_dataset
from winml.modelkit.graph import files
from winml.modelkit.graph.facts import runtime_values
from winml.modelkit.graph.inputs import Dim, Input, InputSpec, input_spec


@dataclass(frozen=True)
class _Input:
    name: str
    dtype: str
    shape: tuple[Dim, ...]


def _inputs(path: str) -> list[InputSpec]:
    found = []
    for value in runtime_values(files.load(path, weights=False)):
        spec = input_spec(value.name, value.dtype, value.shape or ())
        if value.shape is None and spec.form == "tensor":
            raise DataError(f"input `{value.name}` has no shape, so that no sample can be checked against it")
        found.append(spec)
    return found


def describe(args: dict[str, Any], context: Any) -> DataDescription:
    """Worker operation: digest, number and columns of the samples that `data` gives a model.

    The model is the file `model`, or one that is still to be exported, with `inputs`; `folder` has its processor.
    """
    section = read(DataSection, args["data"], "data")
    declared = None if args.get("inputs") is None else read(tuple[_Input, ...], args["inputs"], "inputs")
    inputs: Sequence[Input] = _inputs(args["model"]) if declared is None else declared
    dataset = open_dataset(section, inputs, model_folder=Path(args["folder"]), labels=False)
    return DataDescription(
        digest=dataset.digest, samples=len(dataset), columns=dataset.columns, notes=tuple(dataset.notes)
    )
