"""Entities; what is expected of rows that are not by the book was made with seqeval 1.2.2."""

from __future__ import annotations

import pytest

from winml.modelkit.evaluation.entities import Entity, entities


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("B-PER I-PER O B-LOC", {("PER", 0, 1), ("LOC", 3, 3)}),
        ("B-PER B-PER I-PER", {("PER", 0, 0), ("PER", 1, 2)}),
        ("I-PER I-PER O I-LOC", {("PER", 0, 1), ("LOC", 3, 3)}),
        ("B-PER I-LOC I-LOC", {("PER", 0, 0), ("LOC", 1, 2)}),
        ("B-PER I-PER E-PER S-LOC S-LOC", {("PER", 0, 2), ("LOC", 3, 3), ("LOC", 4, 4)}),
        ("E-PER I-PER", {("PER", 0, 0), ("PER", 1, 1)}),
        ("S-PER I-PER E-PER", {("PER", 0, 0), ("PER", 1, 2)}),
        ("I-PER S-PER", {("PER", 0, 0), ("PER", 1, 1)}),
        ("O O", set()),
    ],
)
def test_entities_are_those_of_the_usual_script(tags: str, found: set[Entity]) -> None:
    assert entities(tags.split()) == found


def test_the_other_letters_for_single_and_last_mean_the_same() -> None:
    assert entities(["U-PER", "B-LOC", "I-LOC", "L-LOC"]) == entities(["S-PER", "B-LOC", "I-LOC", "E-LOC"])


def test_a_kind_may_hold_a_dash_and_a_tag_without_a_prefix_is_no_entity() -> None:
    assert entities(["B-work-of-art", "I-work-of-art", "NOUN", "X-PER"]) == {("work-of-art", 0, 1)}
