"""Worker operations of `winml debug`: values of the reference, runs on the target, and what they come to.

The first and the last need onnx and the packages of the data, a run on the target needs ONNX Runtime alone and may be
in another environment; between them values are files of a folder, one per sample, so that memory does not grow with
their number.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.accuracy.noise import Noise, NoiseSum
from winml.modelkit.building.proof.operations import cast_inputs, load, read_inputs, save
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, ModelkitError, RequestError
from winml.modelkit.core.json_text import read_object
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Device, Target
from winml.modelkit.core.values import Count, read
from winml.modelkit.session.session import WinMLSession

CPU = Target("cpu", "cpu")
REFERENCE, PLAIN, EXPOSED, SEEN, OWN, ON_CPU, AGAIN = "reference", "plain", "exposed", "seen", "own", "cpu", "again"
_EXPECTED = "expected"
"""Tags of files with values: `TAG-SAMPLE.npz`."""
_KINDS = "kinds.json"
EFFECT_SECONDS = 120.0
"""How long the reference may be run to ask for effects, if not for a number of layers that was asked for."""
SAME_DB = 60.0
"""Two runs of one model with so little noise between them are the same."""
_LAYER = re.compile(r"^winml-layer/(\d+)(/|$)")

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Work:
    """What the operations have in common."""

    model: str
    reference: str
    folder: str
    """For models and values of the run."""


@dataclass(frozen=True, kw_only=True)
class PrepareArguments:
    """What values are made of."""

    work: Work
    data: DataSection
    model_folder: str
    samples: Count


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What there is to be run."""

    samples: int
    layers: tuple[str, ...]
    """The value of each."""
    matched: int
    by_structure: int
    unmatched: tuple[str, ...]
    data_notes: tuple[str, ...]
    sizes: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class JoinArguments:
    """Layers to write into models of their own."""

    work: Work
    models: Mapping[str, tuple[int, ...]]
    """The layers of each file."""


@dataclass(frozen=True, kw_only=True)
class ExposeArguments:
    """Layers of the model whose values are outputs, too."""

    work: Work
    layers: tuple[int, ...]
    name: str


@dataclass(frozen=True, kw_only=True)
class DistanceArguments:
    """A run of the whole model, whose outputs are compared with the reference's."""

    work: Work
    tag: str
    samples: Count


@dataclass(frozen=True, kw_only=True)
class RunArguments:
    """A model to run on its target on values of files."""

    model: str
    ep: str
    device: Device
    simulated: bool
    session: SessionSection
    distribution: str | None
    folder: str
    samples: Count
    tag: str
    """Of the files that are written."""
    base: str = REFERENCE
    """The tag of the files that inputs come from."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Tags of other files that single inputs come from."""


@dataclass(frozen=True, kw_only=True)
class RanOnTarget:
    """Where the nodes of a run went."""

    nodes: Mapping[str, int]
    layers: Mapping[str, str]
    """The EP of a layer by itself, by its number; of several, the one with the most nodes."""


@dataclass(frozen=True, kw_only=True)
class JudgeArguments:
    """What was run."""

    work: Work
    samples: Count
    own: Mapping[str, str]
    """Tags of the runs by number of layer."""
    on_cpu: bool
    again: bool
    """Whether layers were run by themselves on what they read within the model."""
    accumulated: Mapping[str, str]
    """Tags of the files with a layer's value in the model, by number of layer."""
    effects: int
    """How many layers are asked what their noise does to the outputs."""


@dataclass(frozen=True, kw_only=True)
class RunDistance:
    """How far the worst output of a run is from the reference's; null where none can be compared."""

    noise: Noise | None


@dataclass(frozen=True, kw_only=True)
class JudgedLayer:
    """What was found of a layer."""

    value: str
    nodes: tuple[tuple[str, str], ...]
    operators: tuple[str, ...]
    own: Noise | None
    on_cpu: Noise | None
    accumulated: Noise | None
    within: Noise | None
    clipped: float | None
    effect: Noise | None
    comparable: bool


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What the runs come to."""

    layers: tuple[JudgedLayer, ...]
    outputs: Mapping[str, Noise]
    not_compared: tuple[str, ...]
    """Outputs of the reference that have no float counterpart of the same shape."""
    exposing: Noise | None
    """How far outputs are from what they are when nothing else is exposed; null where no value was exposed."""
    deterministic: bool
    """Whether the reference gives the same outputs again; effects are not known where it does not."""


class _Models:
    """Both models, their values matched, and their layers."""

    def __init__(self, work: Work) -> None:
        from winml.modelkit.accuracy.matching import match_values
        from winml.modelkit.accuracy.slices import Graph
        from winml.modelkit.graph import files

        self.folder = Path(work.folder)
        self.candidate = Graph(files.load(work.model))
        self.reference = Graph(files.load(work.reference))
        self.matched = match_values(self.reference, self.candidate)

    def layers(self, sample: Mapping[str, Array]) -> list[Any]:
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
        (self.folder / _KINDS).write_text(json.dumps(kinds), encoding="utf-8")

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


def prepare(args: dict[str, Any], context: object) -> Prepared:
    """Run the reference over samples of the data with all its values as outputs, and write what is run next."""
    from winml.modelkit.accuracy.layers import expose
    from winml.modelkit.data.dataset import open_dataset
    from winml.modelkit.graph import files
    from winml.modelkit.graph.inputs import symbol_sizes

    asked = read(PrepareArguments, args)
    models = _Models(asked.work)
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


def _check_pair(models: _Models) -> None:
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
    models = _Models(asked.work)
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
    models = _Models(asked.work)
    layers = models.layers(models.values(REFERENCE, 0))
    path = models.folder / asked.name
    files.save(expose(models.candidate.model, [layers[index].seen for index in asked.layers]), path, overwrite=True)
    return str(path)


def rename_exposed(args: dict[str, Any], context: object) -> int:
    """Write what layers read within the model by its names in the reference; how many samples there are."""
    asked = read(DistanceArguments, args)
    models = _Models(asked.work)
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
    models = _Models(asked.work)
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


def judge(args: dict[str, Any], context: object) -> Judged:
    """Compare what was run with the reference, sample by sample, and ask what the noise of layers does to outputs."""
    from winml.modelkit.accuracy.layers import describe_nodes, output_name

    asked = read(JudgeArguments, args)
    models = _Models(asked.work)
    sample = models.values(REFERENCE, 0)
    layers = models.layers(sample)
    sums = _Sums()
    expecting = _Expecting(models, layers, [index for index in range(len(layers)) if str(index) in asked.own])
    clipping = _Clipping(models, layers)
    for number in range(asked.samples):
        reference = models.values(REFERENCE, number)
        clipping.add(reference)
        expected = expecting.outputs(reference)
        save(models.folder / f"{_EXPECTED}-{number}.npz", expected)
        for tag in sorted(set(asked.own.values())):
            sums.add_layers(sums.own, expected, models.values(tag, number))
            if asked.on_cpu:
                sums.add_layers(sums.on_cpu, expected, models.values(f"{ON_CPU}-{tag}", number))
        for index, tag in asked.accumulated.items():
            layer = layers[int(index)]
            name = layer.seen if tag == EXPOSED else output_name(int(index))
            for value in models.pick(tag, number, [name]).values():
                sums.add(sums.accumulated, int(index), reference[layer.value], value)
        if asked.again:
            seen = models.pick(EXPOSED, number, [layer.seen for layer in layers])
            inside = {output_name(index): seen[layer.seen] for index, layer in enumerate(layers)}
            for tag in sorted(set(asked.own.values())):
                alone = models.values(f"{AGAIN}-{tag}", number)
                sums.add_layers(sums.within, alone, {name: inside[name] for name in alone})
        sums.add_outputs(models, reference, number, exposed=EXPOSED in asked.accumulated.values())
    own = {index: noise for index, found in sums.own.items() if (noise := found.result()) is not None}
    expecting.close()
    worst = sorted((index for index in own if not own[index].equal), key=lambda index: own[index].rank)
    effects = _Effects(models, layers, asked)
    found = effects.measure(worst)
    outputs = {name: noise for name, total in sums.outputs.items() if (noise := total.result()) is not None}
    return Judged(
        layers=tuple(
            JudgedLayer(
                value=layer.value,
                nodes=tuple(describe_nodes(models.reference, layer.reference)),
                operators=tuple(dict.fromkeys(op for _, op in describe_nodes(models.candidate, layer.own))),
                own=own.get(index),
                on_cpu=sums.result(sums.on_cpu, index),
                accumulated=sums.result(sums.accumulated, index),
                within=sums.result(sums.within, index),
                clipped=clipping.share(index),
                effect=found.get(index),
                comparable=index not in sums.other_shape,
            )
            for index, layer in enumerate(layers)
        ),
        outputs=outputs,
        not_compared=tuple(name for name in models.reference.outputs if name not in outputs),
        exposing=sums.worst(sums.exposing),
        deterministic=effects.deterministic,
    )


def worst_of(sums: Iterable[NoiseSum]) -> Noise | None:
    """The noise of the worst; None where nothing was compared."""
    found = [noise for one in sums if (noise := one.result()) is not None]
    return min(found, key=lambda noise: noise.rank, default=None)


class _Sums:
    """Sums by layer, and by output."""

    def __init__(self) -> None:
        self.own: dict[Any, NoiseSum] = {}
        self.on_cpu: dict[Any, NoiseSum] = {}
        self.accumulated: dict[Any, NoiseSum] = {}
        self.within: dict[Any, NoiseSum] = {}
        self.outputs: dict[Any, NoiseSum] = {}
        self.exposing: dict[Any, NoiseSum] = {}
        self.other_shape: set[Any] = set()

    def add_layers(self, sums: dict[Any, NoiseSum], expected: Mapping[str, Array], found: Mapping[str, Array]) -> None:
        """Outputs of layers by themselves."""
        for name, value in found.items():
            self.add(sums, int(name.rpartition("/")[2]), expected.get(name), value)

    def add_outputs(self, models: _Models, reference: Mapping[str, Array], number: int, *, exposed: bool) -> None:
        """Outputs of the model, and what exposing values changed in them."""
        plain = models.values(PLAIN, number)
        for name, other in models.output_pairs().items():
            if other in plain:
                self.add(self.outputs, name, reference.get(name), plain[other])
        if exposed:
            again = models.pick(EXPOSED, number, list(plain))
            for name, value in plain.items():
                self.add(self.exposing, name, value, again[name])

    def add(self, sums: dict[Any, NoiseSum], key: Any, expected: Array | None, found: Array) -> None:
        if expected is None or expected.dtype.kind != "f":
            return
        if expected.shape != found.shape:
            self.other_shape.add(key)
            return
        sums.setdefault(key, NoiseSum()).add(expected, found)

    def worst(self, sums: dict[Any, NoiseSum]) -> Noise | None:
        """The sum with the most noise: outputs differ by orders of magnitude, and each counts."""
        return worst_of(sums.values())

    def result(self, sums: dict[Any, NoiseSum], key: Any) -> Noise | None:
        found = sums.get(key)
        return None if found is None else found.result()


class _Clipping:
    """How many numbers of the reference lie beyond the ranges that layers quantize their values to."""

    def __init__(self, models: _Models, layers: list[Any]) -> None:
        from winml.modelkit.accuracy.layers import output_pair

        pairs = {index: output_pair(models.candidate, layer) for index, layer in enumerate(layers)}
        self._pairs = {index: (layers[index].value, pair) for index, pair in pairs.items() if pair is not None}
        self._counts = dict.fromkeys(self._pairs, 0)
        self._sizes = dict.fromkeys(self._pairs, 0)

    def add(self, reference: Mapping[str, Array]) -> None:
        for index, (name, pair) in self._pairs.items():
            self._counts[index] += pair.clipped(reference[name])
            self._sizes[index] += reference[name].size

    def share(self, index: int) -> float | None:
        return self._counts[index] / self._sizes[index] if self._sizes.get(index) else None


class _Expecting:
    """What layers would give without quantization, for inputs as they quantize them."""

    def __init__(self, models: _Models, layers: list[Any], chosen: list[int]) -> None:
        from winml.modelkit.accuracy.layers import input_pairs, join_references
        from winml.modelkit.graph import files

        self._chosen = [(index, layers[index]) for index in chosen]
        self._session: WinMLSession | None = None
        if not chosen:
            return
        self._pairs = {index: input_pairs(models.candidate, layer) for index, layer in self._chosen}
        sample = models.values(REFERENCE, 0)
        path = models.folder / "expected.onnx"
        files.save(join_references(models.reference, self._chosen, sample), path, overwrite=True)
        self._session = WinMLSession(path, target=CPU, section=SessionSection(optimization_level="disable"))

    def outputs(self, reference: Mapping[str, Array]) -> dict[str, Array]:
        from winml.modelkit.accuracy.layers import expected_name

        if self._session is None:
            return {}
        feed = {}
        for index, layer in self._chosen:
            pairs = self._pairs[index]
            for name in layer.reference.inputs:
                pair = pairs.get(name)
                value = reference[name]
                feed[expected_name(index, name)] = value if pair is None else pair.apply(value)
        known = {spec.name for spec in self._session.inputs}
        return self._session.run_arrays({name: value for name, value in feed.items() if name in known})

    def close(self) -> None:
        if self._session is not None:
            self._session.close()


class _Effects:
    """What the noise of one layer does to the outputs of the reference, in one session with an input for each."""

    def __init__(self, models: _Models, layers: list[Any], asked: JudgeArguments) -> None:
        self._models, self._layers, self._asked = models, layers, asked
        self._outputs = [name for name in models.reference.outputs if name]
        self.deterministic = True

    def measure(self, worst: Sequence[int]) -> dict[int, Noise]:
        """The worst output for each layer, those with the most noise first, as far as the time reaches."""
        from onnx import helper

        from winml.modelkit.accuracy.layers import add_noise, noise_name
        from winml.modelkit.graph import files

        if not worst:
            return {}
        models = self._models
        values = [self._layers[index].value for index in worst]
        dtypes = {name: value.dtype for name, value in models.pick(REFERENCE, 0, values).items()}
        kinds = {name: helper.np_dtype_to_tensor_dtype(dtype) for name, dtype in dtypes.items()}
        path = models.folder / "effects.onnx"
        files.save(add_noise(models.reference.model, kinds), path, overwrite=True)
        zeros = {noise_name(name): np.zeros((), dtype) for name, dtype in dtypes.items()}
        totals: dict[int, dict[str, NoiseSum]] = {}
        with WinMLSession(path, target=CPU, section=SessionSection(optimization_level="basic")) as session:
            inputs = [spec.name for spec in session.inputs if spec.name not in zeros]
            for number in range(self._asked.samples):
                reference = models.pick(REFERENCE, number, [*inputs, *self._outputs])
                feed = {**zeros, **{name: reference[name] for name in inputs}}
                started = time.monotonic()
                self._check(session.run_arrays(feed), reference)
                if not self.deterministic:
                    return {}
                seconds = max(time.monotonic() - started, 1e-6)
                if not number:
                    reach = int(EFFECT_SECONDS / (seconds * self._asked.samples))
                    worst = worst[: max(self._asked.effects, reach)]
                for index in worst:
                    noise = self._noise(index, number).astype(dtypes[self._layers[index].value])
                    made = session.run_arrays({**feed, noise_name(self._layers[index].value): noise})
                    for name, value in made.items():
                        wanted = reference.get(name)
                        if wanted is not None and value.dtype.kind == "f" and value.shape == wanted.shape:
                            totals.setdefault(index, {}).setdefault(name, NoiseSum()).add(wanted, value)
        found = {index: worst_of(sums.values()) for index, sums in totals.items()}
        return {index: noise for index, noise in found.items() if noise is not None}

    def _noise(self, index: int, number: int) -> Array:
        """What a layer by itself adds to its value in a sample; nothing where it is no number, which is said apart."""
        from winml.modelkit.accuracy.layers import output_name

        name = output_name(index)
        (expected,) = self._models.pick(_EXPECTED, number, [name]).values()
        (found,) = self._models.pick(self._asked.own[str(index)], number, [name]).values()
        return np.nan_to_num(found.astype(np.float64) - expected, nan=0.0, posinf=0.0, neginf=0.0)

    def _check(self, made: Mapping[str, Array], reference: Mapping[str, Array]) -> None:
        """Note a reference that gives other outputs for the same inputs."""
        for name, value in made.items():
            wanted = reference.get(name)
            if wanted is None or wanted.dtype.kind != "f" or wanted.shape != value.shape:
                continue
            total = NoiseSum()
            total.add(wanted, value)
            noise = total.result()
            if noise is not None and noise.rank < SAME_DB:
                self.deterministic = False
