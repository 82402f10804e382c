"""Worker operations of a proof: what a source computes on the CPU, and what an artifact makes of the same inputs.

The first needs the data's packages, the second those of the target, which may be in another environment; between
them inputs and outputs are files of a folder.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.building.proof.links import Ran, link
from winml.modelkit.building.proof.proof import ArtifactRun, OutputDistance, Reference
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.core.measurement import UNTIMED, SessionSection
from winml.modelkit.core.statistics import sqnr_db
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import read
from winml.modelkit.graph.inputs import Arrays, Input, InputSpec, cast, input_spec, symbol_sizes
from winml.modelkit.session.distance import distance_of
from winml.modelkit.session.saturation import weights_at_risk
from winml.modelkit.session.session import WinMLSession

if TYPE_CHECKING:
    from winml.modelkit.core.config import DataSection

CPU = Target("cpu", "cpu")
SAMPLES = 4
"""Enough to see that a model is broken; `winml eval` measures how good it is."""
PATIENCE = 0.25
"""The part of the time after which no further sample is begun."""
NOISE = 1e-6
"""Outputs whose numbers are all smaller have no meaningful direction."""

Array = npt.NDArray[Any]


def read_inputs(path: Path) -> tuple[InputSpec, ...]:
    """The inputs of a model file, which need not open on the CPU."""
    from winml.modelkit.graph import files
    from winml.modelkit.graph.macs import runtime_inputs
    from winml.modelkit.graph.tensors import dtype_name

    found = []
    for value in runtime_inputs(files.load(path, weights=False).graph):
        kind = value.type.tensor_type
        # Paddle writes -1 for a size that is open; the runtime takes it so.
        dims = tuple(
            d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else d.dim_param or None for d in kind.shape.dim
        )
        found.append(input_spec(value.name, dtype_name(kind.elem_type), dims))
    return tuple(found)


def reference(args: dict[str, Any], context: object) -> Reference:
    """Make inputs for `artifact` from `data`, run `source` on them on the CPU, and save both in `folder`.

    A source that does not run is an answer with its reason.
    """
    from winml.modelkit.core.config import DataSection
    from winml.modelkit.data.trials import attempts

    specs = list(read_inputs(Path(args["artifact"])))
    names = {spec.name for spec in specs}
    specs += [spec for spec in read_inputs(Path(args["source"])) if spec.name not in names]
    data = read(DataSection, args["data"], "data")
    found = Reference(samples=0, dims={}, reason=None)
    for attempt in attempts(data, Path(args["source"]), specs):
        found = _reference(args, attempt, specs)
        if found.reason is None:
            break
    return found


def _reference(args: dict[str, Any], data: DataSection, specs: Sequence[InputSpec]) -> Reference:
    """The samples of one section of data that were run and saved, or the reason why there are none."""
    from winml.modelkit.data.dataset import open_dataset

    try:
        dataset = open_dataset(data, specs, model_folder=Path(args["model_folder"]), labels=False)
        feeds = [sample.inputs for sample in itertools.islice(dataset, SAMPLES)]
    except ModelkitError as error:
        return Reference(samples=0, dims={}, reason=f"no inputs can be made: {error.message}")
    feeds = [_link_inputs(args, feed, specs, index, "outputs") for index, feed in enumerate(feeds)]
    dims = symbol_sizes(specs, feeds[0])
    try:
        done = _save_reference(Path(args["source"]), feeds, Path(args["folder"]), args["seconds"])
    except ModelkitError as error:
        return Reference(samples=0, dims=dims, reason=f"the source does not run on the CPU: {error.message}")
    return Reference(samples=done, dims=dims, reason=None)


def ranges(args: dict[str, Any], context: object) -> dict[str, tuple[float, float]]:
    """Least and greatest value of every float output of `source` on inputs made from `data`.

    Two digits are kept, rounded outwards, so that another processor's last bits make no other calibration data.
    """
    from winml.modelkit.core.config import DataSection
    from winml.modelkit.data.dataset import open_dataset

    data = read(DataSection, args["data"], "data")
    found: dict[str, list[float]] = {}
    with WinMLSession(args["source"], target=CPU, section=replace(UNTIMED, optimization_level="basic")) as session:
        dataset = open_dataset(data, session.inputs, model_folder=Path(args["model_folder"]), labels=False)
        for sample in itertools.islice(dataset, SAMPLES):
            for name, value in session.run(sample.inputs).items():
                if isinstance(value, np.ndarray) and value.dtype.kind == "f" and np.isfinite(value).all():
                    found.setdefault(name, []).extend((float(value.min()), float(value.max())))
    return {name: (_outwards(min(ends), -1), _outwards(max(ends), 1)) for name, ends in found.items()}


def _outwards(value: float, sign: int) -> float:
    """The next number with two digits on the side of `sign`."""
    if value == 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    return float(f"{sign * math.ceil(sign * value / step) * step:.6g}")


def _link_inputs(args: dict[str, Any], feed: Arrays, specs: Sequence[Input], index: int, kind: str) -> Arrays:
    """The inputs of a part with what the parts before it gave for the same sample; others as they are.

    `kind` says whose: `outputs` of the sources, or those that the artifacts `made`.
    """
    earlier = {
        part: Ran(load(Path(folder) / f"inputs-{index}.npz"), load(Path(folder) / f"{kind}-{index}.npz"))
        for part, folder in args["earlier"].items()
        if (Path(folder) / f"{kind}-{index}.npz").is_file()
    }
    return link(args["part"], feed, specs, earlier) if earlier else feed


def _save_reference(source: Path, feeds: Iterable[Arrays], folder: Path, seconds: float) -> int:
    done, started = 0, time.monotonic()
    # `basic` changes nothing in the numbers; higher levels may.
    with WinMLSession(source, target=CPU, section=replace(UNTIMED, optimization_level="basic")) as session:
        for feed in feeds:
            outputs = session.run_arrays(cast_inputs(feed, session.inputs))
            save(folder / f"inputs-{done}.npz", feed)
            save(folder / f"outputs-{done}.npz", outputs)
            done += 1
            if time.monotonic() - started > PATIENCE * seconds:
                break
    return done


def cast_inputs(feed: Arrays, inputs: Iterable[InputSpec]) -> Arrays:
    """The inputs that a model has, in the types that it takes."""
    return cast(feed, tuple(inputs), source="the sample")


def save(path: Path, arrays: dict[str, Any]) -> None:
    """Arrays by position and name: a name may hold what a file in an archive may not; text is saved as such."""
    kept = {name: value for name, value in arrays.items() if isinstance(value, np.ndarray)}
    plain = [value.astype(str) if value.dtype == object else value for value in kept.values()]
    named: dict[str, Any] = {f"a{index}": value for index, value in enumerate(plain)}
    np.savez(path, names=np.array(list(kept), dtype=str), **named)


def load(path: Path) -> dict[str, Array]:
    with np.load(path, allow_pickle=False) as stored:
        return {str(name): stored[f"a{index}"] for index, name in enumerate(stored["names"])}


def prove(args: dict[str, Any], context: object) -> ArtifactRun:
    """Open an artifact on its target, run it on the saved inputs and measure how far it is from the saved outputs.

    Without saved samples it is only opened. What the target refuses is an error.
    """
    session = WinMLSession(
        args["model"],
        target=Target(args["ep"], args["device"], args["simulated"]),
        section=SessionSection(**args["session"]),
        distribution=args["distribution"],
    )
    started, folder = time.monotonic(), Path(args["folder"])
    pairs: dict[str, list[tuple[Array, Array | None]]] = {}
    done = 0
    with session:
        placement = session.placement
        at_risk = weights_at_risk(session.path, session.target)
        for index in range(args["samples"]):
            feed = _link_inputs(args, load(folder / f"inputs-{index}.npz"), session.inputs, index, "made")
            got = session.run_arrays(cast_inputs(feed, session.inputs))
            if args["part"] is not None:
                save(folder / f"made-{index}.npz", got)
            for name, expected in load(folder / f"outputs-{index}.npz").items():
                pairs.setdefault(name, []).append((expected, got.get(name)))
            done += 1
            if time.monotonic() - started > PATIENCE * args["seconds"]:
                break
    return ArtifactRun(samples=done, outputs=tuple(distances(pairs)), placement=placement, weights_at_risk=at_risk)


def distances(pairs: dict[str, list[tuple[Array, Array | None]]]) -> Iterator[OutputDistance]:
    """How far each output is from the source's, over the values of all samples; text has no distance."""
    for name, values in pairs.items():
        expected = [a for a, _ in values]
        found = [b for _, b in values]
        if expected[0].dtype.kind in "US":
            continue
        same = all(isinstance(b, np.ndarray) and a.shape == b.shape for a, b in values)
        if not same:
            yield OutputDistance(name=name, is_float=expected[0].dtype.kind == "f", same_shape=False)
        else:
            yield distance(name, _flat(expected), _flat([b for b in found if b is not None]))


def _flat(arrays: Sequence[Array]) -> Array:
    return np.concatenate([array.ravel() for array in arrays])


def distance(name: str, expected: Array, found: Array) -> OutputDistance:
    """How far an output is from the source's where the source has numbers."""
    is_float = expected.dtype.kind == "f"
    if is_float:
        known = np.isfinite(expected)
        expected, found = expected[known].astype(np.float64), found[known].astype(np.float64)
    finite = not is_float or bool(np.isfinite(found).all())
    near = distance_of(expected, found)
    signal = not is_float or bool(expected.size and np.abs(expected).max() > NOISE)
    directed = finite and signal and near.cosine is not None
    norm = float(np.linalg.norm(expected)) if is_float and directed else 0.0
    return OutputDistance(
        name=name,
        is_float=is_float,
        equal=near.equal or (not signal and bool(np.abs(found).max(initial=0.0) <= NOISE)),
        finite=finite,
        signal=signal,
        cosine=near.cosine if directed else None,
        scale=float(np.linalg.norm(found)) / norm if norm else None,
        max_abs=near.max_abs,
        sqnr_db=sqnr_db(near.relative) if is_float and near.relative else None,
    )
