"""The text of `winml perf` of a decoder folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.core.latency import Latency, Spread
from winml.modelkit.render.op_trace import op_trace_text
from winml.modelkit.render.perf import utilization_words
from winml.modelkit.render.table import table
from winml.modelkit.render.units import counted, ms, size

if TYPE_CHECKING:
    from winml.modelkit.measuring.generation import GenerationPerf


def generation_text(result: GenerationPerf, *, top_k: int = 5) -> str:
    """The result without its warnings."""
    simulated = " (simulated)" if result.target.simulated else ""
    texts = max(len(prompt.texts) for session in result.sessions for prompt in session.prompts)
    sequences = "" if result.batch == 1 else f" of {result.batch} sequences"
    lines = [
        f"{Path(result.model).name} on {result.target}{simulated} ({result.runtime.version}) · "
        f"{counted(len(result.sessions), 'session')} x {counted(texts, 'text')}{sequences}, "
        f"{counted(result.new_tokens, 'new token')}",
        table(_rows(result), indent="  ", head=True, drop=(3,)),
        f"  runtime  {result.runtime.name}, because {result.runtime.reason}",
        f"  opening the model  {spread_text(result.open_ms, ms)}",
    ]
    if result.memory is not None:
        peak, model = (spread_text(one, whole_size) for one in (result.memory.peak_bytes, result.memory.model_bytes))
        lines.append(f"  memory  peak {peak}, of which the open model and its texts take {model}")
    reason = result.prompts[0].first_token_ms.interval_reason
    if reason is not None:
        lines.append(f"  no intervals: {reason}")
    if result.utilization is not None:
        means = utilization_words({name: usage.mean for name, usage in result.utilization.sources.items()})
        lines.append(f"  during the runs  {means or 'nothing was sampled'} ({result.utilization.samples} samples)")
    for phase, trace in (result.op_traces or {}).items():
        if trace.operators:
            lines += [f"{phase}:", op_trace_text(trace, top_k)]
    return "\n".join(lines)


def _rows(result: GenerationPerf) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("prompt", "first token", "tokens per second", "one token", "last quarter to first")]
    for one in result.prompts:
        rows.append(
            (
                str(one.prompt_tokens),
                _latency(one.first_token_ms),
                "-" if one.tokens_per_s is None else spread_text(one.tokens_per_s, rate),
                "-" if one.step_ms is None else ms(one.step_ms.p50),
                "-" if one.last_to_first_quarter is None else spread_text(one.last_to_first_quarter, "{:.2f}x".format),
            )
        )
    return rows


def _latency(taken: Latency) -> str:
    spread = Spread(median=taken.p50, interval=taken.interval, interval_reason=taken.interval_reason, rounds=0)
    return spread_text(spread, ms)


def spread_text(spread: Spread, unit: Callable[[float], str]) -> str:
    """A value with its interval, where there is one: `12.1 ms (11.8 ms … 12.5 ms)`."""
    if spread.median is None:
        return "unknown"
    interval = spread.interval
    return unit(spread.median) + ("" if interval is None else f" ({unit(interval.low)} … {unit(interval.high)})")


def rate(value: float) -> str:
    """Tokens per second with about three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def whole_size(count: float) -> str:
    return size(round(count))
