"""The report of `winml perf` of a decoder folder."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from winml.modelkit.core.measurement import NS_PER_MS
from winml.modelkit.render.figures.dots import DotRow, dot_figure
from winml.modelkit.render.figures.positions import courses_of, position_figure, slowdown
from winml.modelkit.render.generation import rate, spread_text, whole_size
from winml.modelkit.render.pages.common import environment_facts, model_name, notices, placement_figure
from winml.modelkit.render.pages.op_trace import op_trace_blocks
from winml.modelkit.render.pages.page import Block, Facts, Figure, Group, Page, table
from winml.modelkit.render.units import counted, ms

if TYPE_CHECKING:
    from winml.modelkit.measuring.generation import GenerationPerf


def generation_page(result: GenerationPerf) -> Page:
    """How long until the first token, how many follow in a second and whether they slow down."""
    blocks: list[Block] = [*notices(result.warnings), _first_tokens(result), *_steps(result), _lengths(result)]
    if result.placement is not None:
        blocks += placement_figure(result.placement)
    for phase, trace in (result.op_traces or {}).items():
        if trace.operators:
            named = (
                replace(b, name=f"{phase}-{b.name}") if isinstance(b, Figure) else b for b in op_trace_blocks(trace)
            )
            blocks.append(Group(f"Operators of the {phase}", tuple(named)))
    return Page(
        "perf",
        f"{model_name(result.model)} on {result.target}",
        _answer(result),
        (*blocks, _facts(result), environment_facts(result.environment)),
        "simulated" if result.target.simulated else None,
    )


def _answer(result: GenerationPerf) -> str:
    one = result.prompts[0]
    rest = "" if one.tokens_per_s is None else f", then {spread_text(one.tokens_per_s, rate)} follow in a second"
    where = " of the simulator" if result.target.simulated else ""
    return (
        f"After a prompt of {one.prompt_tokens} tokens the first token takes {ms(one.first_token_ms.p50)}{where}{rest} "
        f"({result.runtime.version}, {counted(len(result.sessions), 'session')})."
    )


def _first_tokens(result: GenerationPerf) -> Figure:
    rows = []
    for index, one in enumerate(result.prompts):
        known = one.first_token_ms
        values = tuple(text.first_token_ns / NS_PER_MS for s in result.sessions for text in s.prompts[index].texts)
        interval = None if known.interval is None else (known.interval.low, known.interval.high)
        label = f"{one.prompt_tokens} tokens"
        rows.append(DotRow(label, f"prompt of {label}: {ms(known.p50)}", known.p50, ms(known.p50), interval, values))
    said = "Time to the first token by the length of the prompt: every text, their median and its interval."
    return Figure("first-token", "First token", said, lambda width: dot_figure(rows, "ms", said, width))


def _steps(result: GenerationPerf) -> tuple[Figure, ...]:
    if result.new_tokens < 3:
        return ()
    last = result.prompts[-1]
    said = (
        f"With a prompt of {last.prompt_tokens} tokens the last quarter of steps takes {slowdown(last)} as long as "
        "the first."
        if last.last_to_first_quarter is not None
        else "Time of every token after the first."
    )
    lines = courses_of(result)
    return (
        Figure(
            "steps",
            "Every token after the first",
            said + " The band reaches from the fastest session to the slowest.",
            lambda width: position_figure(lines, ("tokens before it", "ms per token"), said, width),
        ),
    )


def _lengths(result: GenerationPerf) -> Block:
    rows = [
        (
            str(one.prompt_tokens),
            ms(one.first_token_ms.p50),
            ms(one.first_token_ms.p90),
            "" if one.tokens_per_s is None else spread_text(one.tokens_per_s, rate),
            "" if one.step_ms is None else ms(one.step_ms.p50),
            "" if one.step_ms is None else ms(one.step_ms.p99),
            "" if one.last_to_first_quarter is None else slowdown(one),
        )
        for one in result.prompts
    ]
    head = ("prompt", "first token p50", "p90", "tokens per second", "step p50", "step p99", "last quarter to first")
    return table("Lengths", head, rows, numeric=(0, 1, 2, 3, 4, 5, 6))


def _facts(result: GenerationPerf) -> Facts:
    pairs = [
        ("model", result.model),
        ("target", f"{result.target}{' (simulated)' if result.target.simulated else ''}"),
        ("runtime", f"{result.runtime.version}, because {result.runtime.reason}"),
        ("context", "unknown" if result.context_length is None else counted(result.context_length, "token")),
        ("batch", counted(result.batch, "sequence")),
        ("opening the model", spread_text(result.open_ms, ms)),
    ]
    if result.memory is not None:
        pairs.append(("peak memory", spread_text(result.memory.peak_bytes, whole_size)))
        pairs.append(("of which the model and its texts", spread_text(result.memory.model_bytes, whole_size)))
    if result.built_for is not None:
        pairs.append(("built for", result.built_for))
    if result.utilization is not None:
        for name, usage in result.utilization.sources.items():
            pairs.append((name.replace("_", " "), f"{usage.mean:.1f} ({usage.min:.1f} to {usage.max:.1f})"))
    return Facts("Run", tuple(pairs))
