"""The page of a measurement with a trace: its operators, and what changed against a baseline."""

from __future__ import annotations

from measured import perf_result
from pictures import check_page
from traces import chain, trace
from winml.modelkit.measuring.perf_parts import PartPerf, PerfParts
from winml.modelkit.measuring.trace_diff import diff
from winml.modelkit.render.pages.page import Facts
from winml.modelkit.render.pages.perf import parts_page, perf_page

TRACE = trace(*chain([500.0, 300.0, 200.0]))


def test_a_trace_and_its_baseline_are_part_of_the_page() -> None:
    changed = diff(trace(*chain([100.0, 300.0, 200.0])), TRACE)
    page = perf_page(perf_result(op_trace=TRACE, trace_diff=changed))
    texts = check_page(page)
    assert list(texts) == ["latency", "placement", "operators", "changes"]
    assert {"/block.0/Conv", "50.0 %"} <= set(texts["operators"])
    assert {"100", "500", "▲ 5.00 ×"} <= set(texts["changes"])
    assert {"Trace", "Totals"} <= {one.title for one in page.blocks if isinstance(one, Facts)}


def test_a_trace_without_operators_and_no_trace_show_nothing_of_it() -> None:
    for nothing in (None, trace()):
        assert list(check_page(perf_page(perf_result(op_trace=nothing)))) == ["latency", "placement"]


def test_parts_have_pictures_with_names_of_their_own() -> None:
    parts = tuple(PartPerf(part=name, result=perf_result(op_trace=TRACE)) for name in ("encoder", "decoder"))
    whole = perf_result()
    page = parts_page(PerfParts(model="m", target=whole.target, parts=parts, warnings=()))
    assert {"encoder-operators", "decoder-operators"} <= set(check_page(page))
