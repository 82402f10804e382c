"""Worker operation of `winml debug`: what runs on the target come to against the reference."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from winml.modelkit.accuracy.messages import (
    AGAIN,
    EXPECTED,
    EXPOSED,
    ON_CPU,
    PLAIN,
    REFERENCE,
    JudgeArguments,
    Judged,
    JudgedLayer,
)
from winml.modelkit.accuracy.model_pair import CPU, Array, ModelPair, open_pair
from winml.modelkit.accuracy.noise import Noise, NoiseSum, worst_of
from winml.modelkit.building.proof.operations import save
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.values import read
from winml.modelkit.session.session import WinMLSession

EFFECT_SECONDS = 120.0
"""How long the reference may be run to ask for effects, if not for a number of layers that was asked for."""
SAME_DB = 60.0
"""Two runs of one model with so little noise between them are the same."""


def judge(args: dict[str, Any], context: object) -> Judged:
    """Compare what was run with the reference, sample by sample, and ask what the noise of layers does to outputs."""
    from winml.modelkit.accuracy.layers import describe_nodes, output_name

    asked = read(JudgeArguments, args)
    models = open_pair(asked.work)
    sample = models.values(REFERENCE, 0)
    layers = models.layers(sample)
    sums = _Sums()
    expecting = _Expecting(models, layers, [index for index in range(len(layers)) if str(index) in asked.own])
    clipping = _Clipping(models, layers)
    for number in range(asked.samples):
        reference = models.values(REFERENCE, number)
        clipping.add(reference)
        expected = expecting.outputs(reference)
        save(models.folder / f"{EXPECTED}-{number}.npz", expected)
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

    def add_outputs(self, models: ModelPair, reference: Mapping[str, Array], number: int, *, exposed: bool) -> None:
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

    def __init__(self, models: ModelPair, layers: list[Any]) -> None:
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

    def __init__(self, models: ModelPair, layers: list[Any], chosen: list[int]) -> None:
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

    def __init__(self, models: ModelPair, layers: list[Any], asked: JudgeArguments) -> None:
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
        (expected,) = self._models.pick(EXPECTED, number, [name]).values()
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
