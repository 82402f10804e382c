"""The picture of a result, with the style that it needs, for a notebook or a slide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.core.measurement import NS_PER_MS
from winml.modelkit.render.autoconfig import quality_name
from winml.modelkit.render.figures.distribution import latency_figure
from winml.modelkit.render.figures.effects import effect_figure
from winml.modelkit.render.figures.gains import GAINS, is_less_better, is_timed, quality_points
from winml.modelkit.render.figures.pareto import pareto_figure
from winml.modelkit.render.figures.positions import courses_of, position_figure
from winml.modelkit.render.figures.speedups import rows_of_compare, speedup_figure
from winml.modelkit.render.figures.style import FIGURE_STYLE

if TYPE_CHECKING:
    from winml.modelkit.accuracy.sensitivity_result import SensitivityResult
    from winml.modelkit.measuring.compare_result import CompareResult
    from winml.modelkit.measuring.generation import GenerationPerf
    from winml.modelkit.measuring.perf import PerfResult
    from winml.modelkit.search.result import SearchResult

_WIDTH = 720.0


def with_style(svg: str) -> str:
    """A picture that needs nothing of the page around it; nothing for no picture."""
    return svg and svg.replace(">", f"><style>{FIGURE_STYLE}</style>", 1)


def perf_picture(result: PerfResult) -> str:
    """How the runs are distributed."""
    samples = [ns / NS_PER_MS for one in result.measurement.rounds for ns in one.wall_ns]
    known = result.latency_ms
    return latency_figure(samples, {"p50": known.p50, "p90": known.p90, "p99": known.p99})


def generation_picture(result: GenerationPerf) -> str:
    """The time of every token over the tokens before it."""
    return position_figure(courses_of(result), ("tokens before it", "ms per token"), "Time of every token")


def compare_picture(result: CompareResult) -> str:
    """How many times as fast every candidate is as the base; of memory there is no picture."""
    if any(one.memory is not None for one in result.candidates):
        return ""
    return speedup_figure(rows_of_compare(result), result.base.label)


def search_picture(result: SearchResult) -> str:
    """Gain, and accuracy or agreement, of every config that works."""
    return pareto_figure(
        quality_points(result),
        GAINS[result.objective],
        quality_name(result),
        log=is_timed(result),
        less_is_better=is_less_better(result),
    )


def sensitivity_picture(result: SensitivityResult) -> str:
    """Noise of the outputs with each group alone quantized; nothing where none was measured."""
    return effect_figure(result, _WIDTH) if any(group.effect.worst for group in result.groups) else ""
