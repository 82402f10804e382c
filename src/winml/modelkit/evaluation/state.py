"""Models with state: inputs that take over an output of the step before, run over a sequence from zeros."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.data.samples import Sample
from winml.modelkit.graph.inputs import Arrays, InputRequest, InputSpec, resolve_dims, symbol_sizes
from winml.modelkit.graph.sizes import name_dims

OPTION = "--state INPUT=OUTPUT"
_DIRECTIONS = frozenset(
    ("in", "out", "input", "output", "new", "next", "prev", "previous", "old", "past", "present", "current", "cur", "n")
)
"""Words of a name that say only on which side of a step it is."""


class Runs(Protocol):
    def run(self, inputs: Arrays) -> dict[str, Any]: ...


@dataclass(frozen=True)
class State:
    """Which input takes over which output; nothing for a model without state."""

    pairs: Mapping[str, str]
    notes: tuple[str, ...] = ()
    zeros: Mapping[str, Any] | None = None
    """What the inputs hold in the first step."""

    def run(self, session: Runs, sample: Sample) -> list[dict[str, Any]]:
        """The outputs of every run of a sample; each step gets the state that the one before left."""
        runs: list[dict[str, Any]] = []
        state = dict(self.zeros or {})
        for inputs in (sample.inputs, *sample.more):
            runs.append(session.run({**inputs, **state}))
            state = {name: runs[-1][output] for name, output in self.pairs.items()}
        return runs


def _stems(name: str) -> set[str]:
    """What is left of a name without the words that say on which side of a step it is: `state` of `stateN`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    words = [word for word in re.split(r"[^a-z0-9]+", spaced) if word and word not in _DIRECTIONS]
    stem = "".join(words)
    return {stem, *([stem[:-1]] if len(stem) > 1 and stem[-1] in "n0" else [])} - {""}


def _fits(state: InputSpec, output: InputSpec) -> bool:
    return (
        state.type == output.type
        and len(state.shape) == len(output.shape)
        and all(
            mine == theirs or not isinstance(mine, int) or not isinstance(theirs, int)
            for mine, theirs in zip(state.shape, output.shape, strict=True)
        )
    )


def find_state(missing: Sequence[InputSpec], outputs: Sequence[InputSpec]) -> State:
    """The output that each input without data takes over: by its name, or as the only one of its type and shape.

    An input for which that is not clear is left to the data, which names it as missing.
    """
    pairs: dict[str, str] = {}
    notes = []
    for spec in missing:
        fitting = [output for output in outputs if _fits(spec, output) and output.name not in pairs.values()]
        named = [output for output in fitting if _stems(output.name) & _stems(spec.name)]
        # The only output of a model is what is judged.
        alone = fitting if len(missing) == 1 and len(outputs) > 1 and len(spec.shape) > 1 else []
        chosen, why = (named, "by its name") if len(named) == 1 else (alone, "by its shape")
        if len(chosen) != 1 or len(outputs) < 2:
            continue
        pairs[spec.name] = chosen[0].name
        notes.append(
            f"input `{spec.name}` takes over output `{chosen[0].name}` of the step before, zeros in the first "
            f"(found {why}; `{OPTION}` decides)"
        )
    return State(pairs, tuple(notes))


def given_state(pairs: Mapping[str, str], inputs: Sequence[InputSpec]) -> State:
    """The state as the user named it."""
    names = [spec.name for spec in inputs]
    for name in pairs:
        if name not in names:
            raise RequestError(f"`--state` names input `{name}`, which the model lacks", hint=did_you_mean(name, names))
    if len(pairs) == len(names):
        raise RequestError("`--state` names every input, so nothing is left for the data")
    return State(dict(pairs))


def check_outputs(pairs: Mapping[str, str], inputs: Sequence[InputSpec], outputs: Sequence[InputSpec]) -> None:
    """Raise for an output that is missing or cannot be the next value of its input."""
    for name, output in pairs.items():
        found = next((one for one in outputs if one.name == output), None)
        if found is None:
            raise RequestError(
                f"`--state` names output `{output}`, which the model lacks",
                hint=did_you_mean(output, [one.name for one in outputs]),
            )
        spec = next(one for one in inputs if one.name == name)
        if not _fits(spec, found):
            raise RequestError(
                f"output `{output}` ({found.type} {list(found.shape)}) cannot be the next value of input `{name}` "
                f"({spec.type} {list(spec.shape)})"
            )


def zero_state(
    pairs: Mapping[str, str], inputs: Sequence[InputSpec], first: Arrays, given: Mapping[str, int]
) -> Arrays:
    """Zeros for the inputs of a state.

    Open dimensions have the size that the user or the other inputs give them; the only one of an input that is left is
    its batch, wherever it stands.
    """
    others = [spec for spec in inputs if spec.name not in pairs]
    held = [spec for spec in inputs if spec.name in pairs]
    known = {**symbol_sizes(others, first), **given}
    for spec in held:
        left = {dim for dim in name_dims(spec.name, spec.shape) if isinstance(dim, str) and dim not in known}
        known.update(dict.fromkeys(left, 1) if len(left) == 1 else {})
    sizes = resolve_dims(held, InputRequest(dims={n: s for n, s in known.items() if n in _symbols(held)}))
    return {
        spec.name: np.zeros(
            [dim if isinstance(dim, int) else sizes[str(dim)] for dim in name_dims(spec.name, spec.shape)], spec.dtype
        )
        for spec in held
    }


def _symbols(specs: Sequence[InputSpec]) -> set[str]:
    return {dim for spec in specs for dim in name_dims(spec.name, spec.shape) if isinstance(dim, str)}
