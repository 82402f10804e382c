"""Compares an exported model with PyTorch: named outputs, two shapes, with and without padding, a model loaded again.

The model that was traced is not used: tracing may change it, and then both would be wrong in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.building.export import samples
from winml.modelkit.building.export.noise import mean_noise
from winml.modelkit.building.export.parts import Part, evaluate_part
from winml.modelkit.building.export.result import FailedParity, OutputParity, ParityFailed, ParityPassed
from winml.modelkit.core.config import ExportSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import CheckFailed, DataError, RunFailedError
from winml.modelkit.core.measurement import UNTIMED
from winml.modelkit.core.target import Target
from winml.modelkit.session.session import WinMLSession

TOLERANCE = 1e-3
"""Largest difference relative to the largest number of an output: what reordered float32 sums come to in practice."""
SEEDS = (1, 2)
SEED_WITHOUT_PADDING = 3
_NOT_A_NUMBER = 1e9
"""The difference where one side is not a number; JSON has no infinity."""


@dataclass(frozen=True)
class Answer:
    """What PyTorch gives for inputs of one shape."""

    sizes: Mapping[str, int]
    inputs: samples.Arrays
    outputs: samples.Arrays
    padded: bool | None = None
    """Whether the masks have padding; None where no input is a mask."""
    warning: str | None = None


def answer(reference: Part, section: ExportSection) -> tuple[Answer, ...]:
    """The outputs of PyTorch at two shapes and without padding.

    They are asked for first, so that the model can go before the other is opened.
    """
    shapes = [section.sizes] if not section.sizes else [section.sizes, samples.other_sizes(section)]
    padded = True if any(samples.is_mask(entry) for entry in section.inputs) else None
    found = []
    for seed, sizes in zip(SEEDS, shapes, strict=False):
        inputs = samples.make_samples(section, sizes, seed=section.seed + seed)
        found.append(Answer(sizes, inputs, _answer(reference, inputs, noiseless=section.mean_noise), padded))
    if padded:
        found.append(_answer_without_padding(reference, section))
    return tuple(found)


def _answer_without_padding(reference: Part, section: ExportSection) -> Answer:
    """The outputs of PyTorch for masks of ones, for which transformers takes another way through its attention.

    Classes that do not say that they are causal are so only with padding, in the attention `sdpa`. What they give
    without padding depends on the attention then, and the one that does not depend on the mask decides.
    """
    inputs = samples.make_samples(section, section.sizes, seed=section.seed + SEED_WITHOUT_PADDING, padded=False)
    outputs, warning = _answer(reference, inputs, noiseless=section.mean_noise), None
    if getattr(reference.config, "_attn_implementation", None) == "sdpa" and hasattr(
        reference.model, "set_attn_implementation"
    ):
        reference.model.set_attn_implementation("eager")
        eager = _answer(reference, inputs, noiseless=section.mean_noise)
        reference.model.set_attn_implementation("sdpa")
        different = [name for name, value in outputs.items() if _difference(name, value, eager)[0] > TOLERANCE]
        if different:
            outputs = eager
            warning = (
                f"without padding, the attentions `sdpa` and `eager` of PyTorch give different `{different[0]}` for "
                f"{type(reference.model).__name__}; the export was compared with `eager`"
            )
    return Answer(section.sizes, inputs, outputs, padded=False, warning=warning)


def check_parity(model: Path, answers: Sequence[Answer], section: ExportSection) -> ParityPassed:
    """How every output compares with PyTorch's answers; raises when one does not."""
    found = tuple(_compare(model, answers))
    worst = max(found, key=lambda row: row.difference)
    if worst.difference <= TOLERANCE:
        return ParityPassed(tolerance=TOLERANCE, difference=worst.difference, outputs=found)
    sizes = ", ".join(f"{axis} {size}" for axis, size in worst.sizes.items())
    raise CheckFailed(
        f"output `{worst.output}` differs from PyTorch by {worst.difference:.2g} of its largest number "
        f"at {sizes or 'its fixed shape'}{' without padding' if worst.padded is False else ''}; "
        f"{TOLERANCE:g} is allowed",
        hint="try `--exporter legacy` or another `--opset`; `--no-parity` exports without comparing",
        result=FailedParity(parity=ParityFailed(tolerance=TOLERANCE, difference=worst.difference, outputs=found)),
    )


def _compare(model: Path, answers: Sequence[Answer]) -> Iterator[OutputParity]:
    with WinMLSession(model, target=Target("cpu", "cpu"), section=UNTIMED) as session:
        names = {spec.name for spec in session.inputs}  # the graph has no input that changes nothing
        for asked in answers:
            try:
                made = session.run({name: array for name, array in asked.inputs.items() if name in names})
            except (DataError, RunFailedError) as error:
                at = ", ".join(f"{axis} {size}" for axis, size in asked.sizes.items()) or "its fixed shape"
                raise CheckFailed(
                    f"the exported model does not run where PyTorch does, at {at}: {error.message}",
                    hint="leave fewer axes open with `--dynamic-axes`, or try `--exporter legacy`",
                ) from error
            for name, value in asked.outputs.items():
                difference, largest = _difference(name, value, made)
                yield OutputParity(
                    output=name, sizes=dict(asked.sizes), difference=difference, largest=largest, padded=asked.padded
                )


def _answer(reference: Part, inputs: samples.Arrays, *, noiseless: bool) -> samples.Arrays:
    """The outputs of PyTorch; a model may need more of its inputs than shapes and ranges, as one end token per text."""
    try:
        with mean_noise(active=noiseless):
            return evaluate_part(reference, inputs)
    except Exception as error:  # whatever the code of a model raises
        reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise RunFailedError(
            f"the model refuses its sample inputs: {reason[0][:300]}",
            hint="give the values it accepts with `--input-specs FILE`; `winml support probe` looks for them",
        ) from error


def _difference(name: str, wanted: npt.NDArray[Any], made: Mapping[str, npt.NDArray[Any]]) -> tuple[float, float]:
    """The largest difference, relative to the largest number, and that number."""
    if name not in made:
        raise CheckFailed(f"the exported model has no output `{name}`", hint="try `--exporter legacy`")
    value = made[name]
    if value.shape != wanted.shape:
        raise CheckFailed(
            f"output `{name}` has shape {list(value.shape)} but PyTorch gives {list(wanted.shape)}",
            hint="leave fewer axes open with `--dynamic-axes`",
        )
    largest = float(np.abs(wanted).max(initial=0.0))
    absolute = float(np.abs(wanted.astype(np.float64) - value).max(initial=0.0))
    if not np.isfinite(absolute):
        return _NOT_A_NUMBER, largest if np.isfinite(largest) else 0.0
    return absolute / max(largest, 1e-6), largest
