"""Glyphs, colours, bars and lines of rounds."""

from __future__ import annotations

from typing import get_args

import pytest

from winml.modelkit.build_matrix.state import BuildStatus, UploadStatus
from winml.modelkit.building.analysis.result import OpStatus
from winml.modelkit.building.proof.proof import Status as ProofStatus
from winml.modelkit.core import finding, support, verdict
from winml.modelkit.ep.sys_command import TargetStatus
from winml.modelkit.render.marks import STATES, mark, sparkline, with_bar
from winml.modelkit.render.screen import END, JOINT, STYLES, Screen, made_for
from winml.modelkit.search.trial import TrialOutcome

SETS = {
    "verdict": verdict.Outcome,
    "trial": TrialOutcome,
    "target": TargetStatus,
    "operator": OpStatus,
    "proof": ProofStatus,
    "rung": support.RungVerdict,
    "review": support.Verdict,
    "build": BuildStatus,
    "upload": UploadStatus,
    "finding": finding.Status,
}


@pytest.mark.parametrize("name", SETS)
def test_every_state_of_a_closed_set_has_a_mark(name: str) -> None:
    states = set(get_args(SETS[name])) - {"measured"}  # says that there is a verdict, which has one
    assert not states - STATES.keys()


def test_a_terminal_shows_a_glyph_in_colour() -> None:
    with made_for(Screen(80, decorated=True)):
        assert mark("KEEP") == f"{STYLES['good']}✓ KEEP{END}"
        assert mark("DISCARD", "DISCARD (slower)") == f"{STYLES['bad']}✗ DISCARD (slower){END}"
        assert mark("something new") == "something new"


def test_a_terminal_without_these_characters_shows_ascii() -> None:
    with made_for(Screen(80, decorated=True, unicode=False)):
        assert mark("KEEP") == f"{STYLES['good']}+ KEEP{END}"
        assert with_bar("50 %", 0.5) == f"50 %{JOINT}{STYLES['bar']}#####{END}     "
        assert sparkline([1.0, 2.0]) == ""


def test_a_narrow_terminal_has_no_room_for_bars() -> None:
    with made_for(Screen(60, decorated=True)):
        assert with_bar("50 %", 0.5) == "50 %"


def test_elsewhere_only_the_words_are_shown() -> None:
    assert mark("KEEP") == "KEEP"
    assert with_bar("50 %", 0.5) == "50 %"
    assert sparkline([1.0, 2.0]) == ""


def test_a_bar_has_the_length_of_its_share() -> None:
    with made_for(Screen(80, decorated=True)):
        bars = [with_bar("", share).strip(f" {JOINT}{STYLES['bar']}{END}") for share in (0.0, 0.5, 0.55, 1.0, 1.3)]
    assert bars == ["", "█████", "█████▌", "██████████", "██████████"]


def test_a_line_of_rounds_goes_from_the_lowest_to_the_highest() -> None:
    with made_for(Screen(80, decorated=True)):
        assert sparkline([1.0, 2.0, 8.0]).strip(f"{STYLES['bar']}{END}") == "▁▂█"
        assert sparkline([2.0, 2.0]).strip(f"{STYLES['bar']}{END}") == "▄▄"
        assert sparkline([1.0]) == ""
        assert len(sparkline([float(i) for i in range(100)], limit=10)) == 12
