"""Trials of an earlier search that count in a new one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from winml.modelkit import __version__
from winml.modelkit.core.errors import RequestError
from winml.modelkit.search.knob_table import trial_name
from winml.modelkit.search.run_folder import JOURNAL
from winml.modelkit.search.space import Space
from winml.modelkit.search.study import FORMS
from winml.modelkit.store import journal

SAME = ("model", "targets", "objective", "baseline", "calibration", "gate", "inputs", "versions")
"""What two searches must have in common; their knobs may differ."""


def reused(folder: str | None, identity: dict[str, Any], space: Space) -> list[dict[str, Any]]:
    """Records of an earlier search whose choices this space has too, numbered anew."""
    if folder is None:
        return []
    path = Path(folder) / JOURNAL
    records = journal.read(path).records
    if not records or records[0].get("kind") != "study":
        raise RequestError(f"`{folder}` holds no search", hint="name the folder of an earlier `winml autoconfig`")
    if records[0].get("winml") != __version__:
        raise RequestError(f"the search in `{folder}` is of winml {records[0].get('winml')}, this is {__version__}")
    journal.check_forms(records, FORMS, source=str(path))
    differing = [key for key in SAME if records[0]["identity"].get(key) != identity[key]]
    if differing:
        raise RequestError(f"the search in `{folder}` cannot be reused: {', '.join(differing)} differ")
    return _renumbered(records, folder, set(space.options()))


def _renumbered(
    records: tuple[dict[str, Any], ...], folder: str, options: set[tuple[str, str]]
) -> list[dict[str, Any]]:
    names: dict[str, str] = {}
    found: list[dict[str, Any]] = []
    for record in records:
        if record["kind"] == "calibration":
            found.append({**record, "seconds": 0.0})
        elif record["kind"] == "trial":
            trial = record["trial"]
            unknown_twin = trial["same_as"] is not None and trial["same_as"] not in names
            if unknown_twin or not options.issuperset((knob, level) for knob, level in trial["choice"]):
                continue
            names[trial["id"]] = trial_name(tuple(map(tuple, trial["choice"])), len(names))
            facts = {**trial["facts"], "reused_from": folder}
            twin = None if trial["same_as"] is None else names[trial["same_as"]]
            renamed = {**trial, "id": names[trial["id"]], "same_as": twin, "facts": facts}
            found.append({"kind": "trial", "trial": renamed, "seconds": 0.0})
        elif record["kind"] == "rounds" and record["trial"] in names:
            found.append({**record, "trial": names[record["trial"]], "seconds": 0.0})
    return found
