"""The space of a search for a model on its targets, and what is known about it before the first trial."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from winml.modelkit.accuracy.sensitivity_result import SensitivityResult
from winml.modelkit.building.compile import knobs as compile_knobs
from winml.modelkit.building.optimize import knobs as optimize_knobs
from winml.modelkit.building.optimize import table as passes
from winml.modelkit.building.optimize.result import Candidate
from winml.modelkit.building.optimize.support import find_unknown, find_unsupported
from winml.modelkit.building.quantize import knobs as quantize_knobs
from winml.modelkit.core.config import config_from_json
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.knob import Knob, Level
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.target import Target
from winml.modelkit.core.trust import OWN_REQUEST
from winml.modelkit.ep import knobs as ep_knobs
from winml.modelkit.graph.description import GraphFacts
from winml.modelkit.knowledge import rules
from winml.modelkit.knowledge.presets import Preset
from winml.modelkit.knowledge.rules import Advice
from winml.modelkit.search.insight import (
    Insight,
    advice_notes,
    make_insight,
    needs_notes,
    objective_notes,
    operator_notes,
    pass_effect_notes,
)
from winml.modelkit.search.mixed import SCHEME, add_levels
from winml.modelkit.search.space import HYPOTHESIS, ConfigJSON, Option, Space, restrict
from winml.modelkit.search.trial import Note
from winml.modelkit.session import knobs as session_knobs

POINTLESS = {
    "size": (("session.", "ep."), "it changes no file"),
    "placement": (("session.", "ep.", "compile"), "it changes neither the placement nor what is placed"),
}
"""Knobs that cannot change the objective, by objective."""
_X86_64 = ("x86_64", "amd64")
_NOTHING: Mapping[str, object] = {"passes": [], "opset": None, "fixed_dims": {}}
"""An optimize section that leaves a model as it is."""
NO_DATA = "no calibration data; give some with `--calibration`"


def knobs(targets: tuple[Target, ...]) -> tuple[Knob, ...]:
    """Every knob for the first target; other targets are levels of a separate knob."""
    first = targets[0]
    found = [
        *quantize_knobs.knobs(first),
        *optimize_knobs.knobs(first),
        *compile_knobs.knobs(first),
        *session_knobs.knobs(first),
    ]
    if len(targets) > 1:
        others = tuple(Level(str(target), {"target": str(target)}) for target in targets[1:])
        found.insert(0, Knob("target", others, prior=4.0))
    for target in targets:
        own = ep_knobs.knobs(target)
        found += [replace(knob, when={**knob.when, "target": (str(target),)}) for knob in own]
    return tuple(found)


def make_space(
    base: ConfigJSON, targets: tuple[Target, ...], file: str | None, sensitivity: SensitivityResult | None = None
) -> Space:
    """The space of all knobs, or of those in a space file; a sensitivity adds levels of mixed precision to either."""
    found = knobs(targets)
    space = _restrict_by(file, Space(found, base))
    return space if sensitivity is None else Space(add_levels(space.knobs, found, sensitivity), base)


def make_decoder_space(base: ConfigJSON, target: Target, file: str | None, *, fused: bool) -> Space:
    """The same of a model that generates text; `fused`: its exporter left nothing for passes to do."""
    passes = () if fused else optimize_knobs.knobs(target)
    found = (*quantize_knobs.decoder_knobs(target), *passes, *session_knobs.decoder_knobs(target))
    return _restrict_by(file, Space(found, base))


def _restrict_by(file: str | None, space: Space) -> Space:
    if file is None:
        return space
    path = Path(file)
    if not path.is_file():
        raise RequestError(f"space file not found: `{file}`", hint=near_path(file))
    try:
        value = read_json(path)
    except ValueError as error:
        raise RequestError(f"`{file}` is not JSON: {error}") from error
    return restrict(space, value, file)


def make_preset_space(base: ConfigJSON, preset: Preset, only: tuple[str, ...]) -> Space:
    """The hypotheses of a preset as one knob; `h0` is the baseline."""
    chosen = [preset.hypothesis(name) for name in only] if only else list(preset.hypotheses)
    levels = []
    for hypothesis in chosen:
        if hypothesis.id == "h0":
            continue
        sets: dict[str, Any] = {"optimize.opset": hypothesis.opset or preset.opset}
        if hypothesis.changes.analyze is False:
            sets["optimize.passes"] = []
        levels.append(Level(hypothesis.id, sets, adds={"optimize.passes": hypothesis.passes}))
    return Space((Knob(HYPOTHESIS, tuple(levels)),), base)


def _preset_notes(space: Space, preset: Preset, facts: GraphFacts) -> list[Note]:
    """Hypotheses that cannot affect a graph, and those for which that is unknown."""
    found = []
    for knob, level in space.options():
        failing, unknown = rules.find_unmet(preset.hypothesis(level).needs, facts)
        words = ", ".join(str(condition) for condition in (*failing, *unknown))
        if failing:
            found.append(Note(kind="skip", knob=knob, level=level, source="graph", reason=f"it needs {words}"))
        elif unknown:
            reason = f"it needs {words}, which is not known"
            found.append(Note(kind="blocked", knob=knob, level=level, source="graph", reason=reason))
    return found


def _quote(ops: Iterable[str]) -> str:
    return ", ".join(f"`{op}`" for op in ops)


def _pass_notes(space: Space, target: Target) -> list[Note]:
    """Levels with a pass that is unavailable, or that produces operators the target does not support.

    What nobody has asked the target about is tried, with a note that says so.
    """
    found = []
    for knob, level in space.options():
        for name in space.knob(knob).level(level).adds.get("optimize.passes", ()):
            row = passes.BY_NAME[name]
            unasked = find_unknown(target, row.produces)
            never = [op for op in find_unsupported(target, row.produces) if op not in unasked]
            if row.unavailable is not None:
                reason = f"pass `{name}`: {row.unavailable}"
                found.append(Note(kind="skip", knob=knob, level=level, source="graph", reason=reason))
            elif never and len(never) == len(row.produces):
                reason = f"pass `{name}` produces {_quote(never)}, which {target} does not support"
                found.append(Note(kind="skip", knob=knob, level=level, source="target", reason=reason))
            elif row.produces and not never and len(unasked) == len(row.produces):
                reason = f"pass `{name}` produces {_quote(unasked)}: whether {target} supports it is not known"
                found.append(Note(kind="order", knob=knob, level=level, source="target", reason=reason))
    return found


def collect_insight(
    space: Space,
    *,
    target: Target,
    facts: GraphFacts,
    effects: Mapping[str, Candidate],
    advice: Iterable[Advice],
    missing: Mapping[str, str],
    preset: Preset | None,
    objective: str,
    others: bool = False,
) -> Insight:
    """Every note on the levels of a space, and the remaining space; `others`: further targets are searched too."""
    advice = tuple(advice)

    def concerns(one: Advice, config: ConfigJSON) -> bool:
        return rules.concerns(one.what, config_from_json(config, OWN_REQUEST), opset=facts.opset)

    ops = None if facts.compiled else facts.ops
    notes = [
        *needs_notes(space, missing),
        *operator_notes(space, ops),
        *objective_notes(space, *POINTLESS.get(objective, ((), ""))),
        *pass_effect_notes(space, effects, optimize_knobs.single_pass),
        *([] if preset is None else _preset_notes(space, preset, facts)),
        *_opset_notes(space, facts.opset),
        *([] if others else kernel_notes(space, target, platform.machine())),
    ]
    bound = [*advice_notes(space, advice, concerns), *_pass_notes(space, target)]
    notes += [_weaken(note, target) for note in bound] if others else bound
    # A skipped level keeps only its first reason; the others keep all notes.
    out: dict[Option, Note] = {}
    for note in notes:
        if note.excludes:
            out.setdefault(note.option, note)
    kept = [*out.values(), *(note for note in notes if note.option not in out)]
    return make_insight(space, kept, advice, concerns)


def _opset_notes(space: Space, opset: int | None) -> list[Note]:
    """The opset that the model has already."""
    return [
        Note(kind="skip", knob=knob, level=level, source="graph", reason="the model has this opset")
        for knob, level in space.options()
        if knob == "optimize.opset" and level == str(opset) and space.base.get("optimize") in (None, _NOTHING)
    ]


def kernel_notes(space: Space, target: Target, machine: str) -> list[Note]:
    """Schemes that the CPU provider computes in float, because it has no kernels for their numbers: they come last."""
    found = []
    for knob, level in space.options():
        section = space.knob(knob).level(level).sets.get("quantize")
        if target.ep != "cpu" or knob != SCHEME or not isinstance(section, Mapping):
            continue
        reason = None
        if section.get("activation_type") in ("uint16", "int16"):
            reason = "ONNX Runtime's CPU provider has no kernels for 16-bit activations: it computes them in float"
        elif section.get("mode") == "fp16" and machine.lower() in _X86_64:
            reason = "ONNX Runtime's CPU provider has no float16 kernels for x86-64: it computes in float"
        if reason is not None:
            found.append(Note(kind="order", knob=knob, level=level, source="target", reason=reason, weight=-10.0))
    return found


def _weaken(note: Note, target: Target) -> Note:
    """A note on one of several targets: knowledge about one EP never skips a level on another."""
    if not note.excludes:
        return note
    return replace(note, kind="order", weight=-10.0, reason=f"{note.reason}; it applies only to {target}")
