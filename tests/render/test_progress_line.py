from __future__ import annotations

import pytest

from winml.modelkit.render.progress_line import AT_MOST, OF_BUDGET, Frame, bar_for, layout

SAMPLES = Frame("candidate: sample 120 of 1000", 12.9, share=0.12, left_s=94.6)
ROUND = Frame("round 4 of at most 16", 9.0, "resnet50-int8.onnx", share=3 / 16, left_s=43.2, left_form=AT_MOST)
TRIAL = Frame("h2 · h1 leads, 50.3 % saved · round 3", 61.0, "quantize.scheme=int8", 0.1, 540.0, OF_BUDGET)
STAGE = Frame("export (1 of 4): trace (2 of 3)", 3725.0)


@pytest.mark.parametrize(
    ("frame", "columns", "line"),
    [
        (SAMPLES, 80, "candidate: sample 120 of 1000  ██░░░░░░░░░░░░░░░░░░░░░░  0:12, about 2 min left"),
        (SAMPLES, 60, "candidate: sample 120 of 1000  0:12, about 2 min left"),
        (SAMPLES, 40, "candidate: sample 120 of 1000  0:12"),
        (ROUND, 80, "round 4 of at most 16 · resnet50-int8.onnx  █░░░░░░░░░  0:09, at most 43 s left"),
        (ROUND, 60, "round 4 of at most 16  █░░░░░░░░░  0:09, at most 43 s left"),
        (ROUND, 40, "round 4 of at most 16  0:09, 43 s left"),
        (TRIAL, 120, f"{TRIAL.doing} · quantize.scheme=int8  █░░░░░░░░░  1:01, 9 min of the budget left"),
        (TRIAL, 80, f"{TRIAL.doing}  1:01, 9 min of the budget left"),
        (TRIAL, 60, f"{TRIAL.doing}  1:01, 9 min left"),
        (TRIAL, 40, "h2 · h1 leads, 50.3 % saved · ro…  1:01"),
        (STAGE, 80, "export (1 of 4): trace (2 of 3)  1:02:05"),
        (STAGE, 40, "export (1 of 4): trace (2 of…  1:02:05"),
    ],
)
def test_a_line_fits_the_terminal(frame: Frame, columns: int, line: str) -> None:
    assert layout(frame, columns) == line
    assert len(line) < columns


@pytest.mark.parametrize("columns", range(1, 40))
def test_no_terminal_is_too_narrow(columns: int) -> None:
    assert len(layout(ROUND, columns)) <= max(1, columns - 1)


def test_the_bar_follows_the_share_and_stays_within_its_ends() -> None:
    bars = [layout(Frame("x", 0.0, share=share), 80).split()[1] for share in (-1.0, 0.0, 0.5, 1.0, 2.0)]
    assert bars == ["░" * 24, "░" * 24, "█" * 12 + "░" * 12, "█" * 24, "█" * 24]


def test_an_unknown_time_left_is_not_shown() -> None:
    assert layout(Frame("reading", 5.0), 80) == "reading  0:05"


def test_a_time_left_is_never_zero() -> None:
    assert layout(Frame("reading", 5.0, left_s=0.2), 80) == "reading  0:05, about 1 s left"


def test_names_that_are_not_ours_are_written_out() -> None:
    assert layout(Frame("building a\x1b[2Jb", 1.0, "c\nd\u202eefghij"), 80) == (
        "building a\\x1b[2Jb · c\\nd\\u202eefghij  0:01"
    )


def test_wide_characters_take_two_columns() -> None:
    assert layout(Frame("数字" * 10, 1.0), 21) == "数字数字数字…  0:01"


@pytest.mark.parametrize(("encoding", "bar"), [("utf-8", "█░"), ("ascii", "#-"), (None, "#-"), ("no-such", "#-")])
def test_a_bar_has_characters_that_the_stream_can_show(encoding: str | None, bar: str) -> None:
    assert bar_for(encoding) == bar
