"""Worker operations of `winml quantize --sensitivity`: variants of a model with some of its nodes quantized.

One process calibrates once and keeps the plan; a variant is made of it and written beside the file with the weights,
which all share. Another runs it on the target, sample by sample: nothing is kept of a sample but sums.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from winml.modelkit.accuracy.messages import (
    INPUTS,
    OUTPUTS,
    MadeVariant,
    PlanArguments,
    PlannedGroup,
    PlannedVariants,
    RunArguments,
    VariantArguments,
    VariantRan,
)
from winml.modelkit.accuracy.noise import NoiseSum
from winml.modelkit.building.proof.operations import CPU, cast_inputs, load, read_inputs, save
from winml.modelkit.core.errors import DataError, RunFailedError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import read
from winml.modelkit.session.session import WinMLSession

if TYPE_CHECKING:
    from winml.modelkit.worker.program import Context

_plans: dict[str, Any] = {}
"""Plans of this process by their folder: a calibration is made once for all variants."""


def plan(args: dict[str, Any], context: Context) -> PlannedVariants:
    """Calibrate a model, divide what can be quantized into groups, and write what the model gives for the samples."""
    from winml.modelkit.accuracy.groups import find_groups
    from winml.modelkit.building.quantize.stage import open_plan

    asked = read(PlanArguments, args)
    folder = Path(asked.folder)
    made = open_plan(asked.quantize, folder, context)
    _plans[asked.folder] = made
    groups = find_groups(made.structure, made.selection.chosen, asked.grouping)
    samples, outputs, others, sizes, notes = _write_samples(asked, folder)
    return PlannedVariants(
        groups=tuple(
            PlannedGroup(label=group.label, nodes=tuple((name, made.operators[name]) for name in group.nodes))
            for group in groups
        ),
        left=len(made.operators) - len(made.selection.chosen),
        samples=samples,
        outputs=outputs,
        not_compared=others,
        sizes=sizes,
        notes=notes,
    )


def _write_samples(
    asked: PlanArguments, folder: Path
) -> tuple[int, tuple[str, ...], tuple[str, ...], dict[str, int], tuple[str, ...]]:
    """Run the model on the CPU; how many samples there are, which outputs can be compared, sizes, and notes."""
    from winml.modelkit.data.dataset import open_dataset
    from winml.modelkit.graph.inputs import symbol_sizes

    given = asked.quantize
    specs = read_inputs(Path(given.model))
    model_folder = Path(given.model_folder or Path(given.model).parent)
    dataset = open_dataset(asked.data, specs, model_folder=model_folder, labels=False)
    done, feed, found = 0, {}, {}
    with WinMLSession(given.model, target=CPU, section=SessionSection(optimization_level="basic")) as session:
        for sample in itertools.islice(dataset, asked.samples):
            feed = cast_inputs(sample.inputs, session.inputs)
            found = session.run_arrays(feed)
            save(folder / f"{INPUTS}-{done}.npz", feed)
            save(folder / f"{OUTPUTS}-{done}.npz", found)
            done += 1
    if not done:
        raise DataError("the data has no sample", hint="name data with at least one sample")
    floats = tuple(name for name, value in found.items() if value.dtype.kind == "f")
    if not floats:
        raise DataError(
            "no output of the model is a float, so that nothing can be compared",
            hint="give the model before the operator that makes whole numbers, or a limit by `--max-drop` with data",
        )
    others = tuple(name for name in found if name not in floats)
    return done, floats, others, symbol_sizes(specs, feed), tuple(dataset.notes)


def make(args: dict[str, Any], context: object) -> MadeVariant:
    """Write the model with some nodes alone quantized."""
    asked = read(VariantArguments, args)
    made = _plans[asked.folder]
    path = Path(asked.folder) / asked.name
    try:
        selection = made.write_some(asked.nodes, path)
    except RunFailedError as error:
        return MadeVariant(path=str(path), quantized=(), reason=error.message)
    quantized = tuple(name for name in asked.nodes if name in selection.chosen)
    reasons = [selection.left[name] for name in asked.nodes if name in selection.left]
    return MadeVariant(path=str(path), quantized=quantized, reason=None if quantized or not reasons else reasons[0])


def run(args: dict[str, Any], context: object) -> VariantRan:
    """Run a variant on its target over all samples, and compare its outputs with what was written."""
    asked = read(RunArguments, args)
    folder = Path(asked.folder)
    session = WinMLSession(
        asked.model,
        target=Target(asked.ep, asked.device, asked.simulated),
        section=asked.session,
        distribution=asked.distribution,
    )
    totals: dict[str, NoiseSum] = {}
    with session:
        for index in range(asked.samples):
            feed = load(folder / f"{INPUTS}-{index}.npz")
            wanted = {spec.name: feed[spec.name] for spec in session.inputs}
            found = session.run_arrays(cast_inputs(wanted, session.inputs))
            for name, expected in load(folder / f"{OUTPUTS}-{index}.npz").items():
                value = found.get(name)
                if expected.dtype.kind == "f" and isinstance(value, np.ndarray) and value.shape == expected.shape:
                    totals.setdefault(name, NoiseSum()).add(expected, value)
        nodes = session.placement.nodes
    outputs = {name: noise for name, total in totals.items() if (noise := total.result()) is not None}
    return VariantRan(outputs=outputs, nodes=nodes)
