"""Worker operations of `winml debug`: values of the reference, models of layers, runs on the target.

The first need onnx and the packages of the data, a run on the target needs ONNX Runtime alone and may be in another
environment; between them values are files of a folder, one per sample, so that memory does not grow with their number.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from winml.modelkit.accuracy.messages import (
    REFERENCE,
    SEEN,
    DistanceArguments,
    ExposeArguments,
    JoinArguments,
    PrepareArguments,
    Prepared,
    RanOnTarget,
    RunArguments,
    RunDistance,
)
from winml.modelkit.accuracy.model_pair import CPU, Array, ModelPair, open_pair
from winml.modelkit.accuracy.noise import NoiseSum, worst_of
from winml.modelkit.building.proof.operations import cast_inputs, load, read_inputs, save
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import read
from winml.modelkit.session.session import WinMLSession

_LAYER = re.compile(r"^winml-layer/(\d+)(/|$)")


def prepare(args: dict[str, Any], context: object) -> Prepared:
    """Run the reference over samples of the data with all its values as outputs, and write what is run next."""
    from winml.modelkit.accuracy.layers import expose
    from winml.modelkit.data.dataset import open_dataset
    from winml.modelkit.graph import files
    from winml.modelkit.graph.inputs import symbol_sizes

    asked = read(PrepareArguments, args)
    models = open_pair(asked.work)
    _check_pair(models)
    if not models.matched.values:
        raise DataError(
            "the two models share no value: neither names nor the order of operators match",
            hint="give the model that was quantized as `--reference`",
        )
    files.save(expose(models.reference.model, models.matched.values), models.folder / "reference.onnx")
    specs = read_inputs(Path(asked.work.reference))
    dataset = open_dataset(asked.data, specs, model_folder=Path(asked.model_folder), labels=False)
    done = 0
    found: dict[str, Array] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    section = SessionSection(optimization_level="disable")
    with WinMLSession(models.folder / "reference.onnx", target=CPU, section=section) as session:
        for sample in itertools.islice(dataset, asked.samples):
            feed = cast_inputs(sample.inputs, session.inputs)
            values = {name: value for name, value in session.run(feed).items() if isinstance(value, np.ndarray)}
            if found and {name: value.shape for name, value in values.items()} != shapes:
                raise DataError(
                    "samples have different shapes, and layers by themselves are run at one",
                    hint="take samples of one size, give texts one length with `--length N`, or use `--samples 1`",
                )
            found, shapes = {**feed, **values}, {name: value.shape for name, value in values.items()}
            save(models.folder / f"{REFERENCE}-{done}.npz", found)
            done += 1
    if not done:
        raise DataError("the data has no sample", hint="name data with at least one sample")
    models.note_kinds(found)
    layers = models.layers(found)
    exposed = expose(models.candidate.model, [layer.seen for layer in layers])
    files.save(exposed, models.folder / "exposed.onnx")
    return Prepared(
        samples=done,
        layers=tuple(layer.value for layer in layers),
        matched=len(models.matched.values),
        by_structure=len(models.matched.by_structure),
        unmatched=models.matched.unmatched,
        data_notes=dataset.notes,
        sizes=symbol_sizes(specs, feed),
    )


def _check_pair(models: ModelPair) -> None:
    """Raise for a reference that is quantized itself, and for inputs that it does not have."""
    from winml.modelkit.graph.quantization import quantization_of

    if quantization_of(models.reference.model).kind != "none":
        raise RequestError(
            "the reference is a quantized model", hint="`-m` is the quantized model, `--reference` the one before"
        )
    known = set(models.reference.inputs)
    missing = [name for name in models.candidate.inputs if name not in known]
    if missing:
        raise DataError(
            f"the model reads `{missing[0]}`, which the reference does not have",
            hint="give the model that was quantized as `--reference`",
        )


def join(args: dict[str, Any], context: object) -> tuple[str, ...]:
    """Write layers, each by itself, as models; the paths of their files."""
    from winml.modelkit.accuracy.layers import join_candidates
    from winml.modelkit.graph import files

    asked = read(JoinArguments, args)
    models = open_pair(asked.work)
    sample = models.values(REFERENCE, 0)
    layers, types = models.layers(sample), models.types()
    for name, chosen in asked.models.items():
        picked = [(index, layers[index]) for index in chosen]
        files.save(join_candidates(models.candidate, picked, sample, types), models.folder / name, overwrite=True)
    return tuple(str(models.folder / name) for name in asked.models)


def expose_some(args: dict[str, Any], context: object) -> str:
    """Write the model with the values of some layers as outputs; the path of its file."""
    from winml.modelkit.accuracy.layers import expose
    from winml.modelkit.graph import files

    asked = read(ExposeArguments, args)
    models = open_pair(asked.work)
    layers = models.layers(models.values(REFERENCE, 0))
    path = models.folder / asked.name
    files.save(expose(models.candidate.model, [layers[index].seen for index in asked.layers]), path, overwrite=True)
    return str(path)


def rename_exposed(args: dict[str, Any], context: object) -> int:
    """Write what layers read within the model by its names in the reference; how many samples there are."""
    asked = read(DistanceArguments, args)
    models = open_pair(asked.work)
    layers = models.layers(models.values(REFERENCE, 0))
    inputs = [value.name for value in models.reference.model.graph.input]
    for number in range(asked.samples):
        found = models.pick(asked.tag, number, [layer.seen for layer in layers])
        values = {layer.value: found[layer.seen] for layer in layers}
        save(models.folder / f"{SEEN}-{number}.npz", {**models.pick(REFERENCE, number, inputs), **values})
    return asked.samples


def name_all_nodes(args: dict[str, Any], context: object) -> str:
    """Write `path` with a name for every node into `folder`; its path, or that of the model where all have one."""
    from winml.modelkit.building.quantize.prepare import name_nodes
    from winml.modelkit.graph import files

    path = Path(args["path"])
    model = files.load(path)
    if not name_nodes(model):
        return str(path)
    named = Path(args["folder"]) / path.name
    files.save(model, named)
    return str(named)


def distance(args: dict[str, Any], context: object) -> RunDistance:
    """How far the worst output of a run is from the reference's; None where none can be compared."""
    asked = read(DistanceArguments, args)
    models = open_pair(asked.work)
    totals: dict[str, NoiseSum] = {}
    for number in range(asked.samples):
        for name, wanted, value in models.outputs(asked.tag, number):
            totals.setdefault(name, NoiseSum()).add(wanted, value)
    return RunDistance(noise=worst_of(totals.values()))


def run(args: dict[str, Any], context: object) -> RanOnTarget:
    """Run a model on its target on saved values, and save its outputs."""
    asked = read(RunArguments, args)
    folder = Path(asked.folder)
    session = WinMLSession(
        asked.model,
        target=Target(asked.ep, asked.device, asked.simulated),
        section=asked.session,
        distribution=asked.distribution,
    )
    with session:
        for index in range(asked.samples):
            feed = load(folder / f"{asked.base}-{index}.npz")
            for name, tag in asked.sources.items():
                (feed[name],) = load(folder / f"{tag}-{index}.npz").values()
            wanted = {spec.name: feed[spec.name] for spec in session.inputs}
            save(folder / f"{asked.tag}-{index}.npz", session.run_arrays(cast_inputs(wanted, session.inputs)))
        placed = session.list_nodes()
        nodes = session.placement.nodes
    counts: dict[str, Counter[str]] = {}
    for node in placed:
        found = _LAYER.match(node.name)
        if found and node.op not in ("Identity", "QuantizeLinear", "DequantizeLinear"):
            counts.setdefault(found[1], Counter())[node.ep] += 1
    return RanOnTarget(nodes=nodes, layers={index: found.most_common(1)[0][0] for index, found in counts.items()})
