"""`winml support inputs`: inputs of a built model as a file that `winml perf` and `winml eval` take."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Literal

from winml.modelkit.building.model_argument import model_path
from winml.modelkit.core.build_folder import CONFIG
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.support import SupportResult
from winml.modelkit.core.values import key
from winml.modelkit.data import sizes
from winml.modelkit.store import atomic, digest
from winml.modelkit.support.inputs_order import InputsOrder, MadeInputs
from winml.modelkit.worker.client import Worker


@dataclass(frozen=True)
class InputsRequest:
    """Everything the user decided."""

    model: str
    output: str
    samples: int | None = None
    """Rows for `winml eval --data`; None writes one set for `winml perf --input-data`."""
    dims: dict[str, int] = field(default_factory=dict)
    int_ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class InputsResult(SupportResult):
    action: Literal["inputs"] = "inputs"
    model: str
    file: str
    digest: str
    samples: int | None
    seed: int
    made: MadeInputs = key(inline=True)


def make_inputs(request: InputsRequest) -> InputsResult:
    """Write the file and describe its content."""
    output = Path(request.output)
    if output.exists():
        raise RequestError(f"output file exists: `{output}`", hint="name another file")
    path = model_path(request.model)
    known = sizes.find(path, request.dims).require()
    config = path.parent / CONFIG
    atomic.make_folder(output.parent)
    order = InputsOrder(
        model=path.absolute(),
        config=config.absolute() if config.is_file() else None,
        output=output.absolute(),
        samples=request.samples,
        dims=known.dims,
        int_ranges={**known.ranges, **request.int_ranges},
        placeholders=known.placeholders,
        seed=request.seed,
    )
    with Worker() as worker:
        made = worker.ask(MadeInputs, "review.inputs", order, what=f"making inputs of `{path.name}`")
    return InputsResult(
        model=request.model,
        file=request.output,
        digest=digest.of_file(output),
        samples=request.samples,
        seed=request.seed,
        made=made,
    )
