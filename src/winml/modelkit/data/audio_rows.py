"""Texts with the recording that a model should make of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from winml.modelkit.data.audio import read_wave
from winml.modelkit.data.row_plans import Columns, RowPlan, by_input, by_text, content_of
from winml.modelkit.data.samples import SampleRequest
from winml.modelkit.data.sources import Row


def by_spoken(wanted: SampleRequest, columns: Columns) -> RowPlan:
    """Texts, or inputs that are ready, with a recording: its rate and its samples from -1 to 1."""
    ready = {spec.name: columns.find(spec.name) for spec in wanted.inputs}
    named = {name: column for name, column in ready.items() if column is not None}
    plan = by_input(wanted, named) if len(named) == len(ready) else by_text(replace(wanted, form="joined"), columns)
    column, folder = columns.label(), wanted.path.parent
    if column is None:
        return plan

    def label(row: Row, where: str) -> dict[str, Any]:
        rate_hz, samples = read_wave(*content_of(folder, row, column, where))
        return {"rate_hz": rate_hz, "samples": samples}

    return replace(plan, named=(*plan.named, column), label=label)
