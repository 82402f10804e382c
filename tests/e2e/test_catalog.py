"""`winml catalog` as a user runs it."""

from __future__ import annotations

import re

from program import failed, valid, winml


def test_the_catalog_names_what_was_proven_of_a_family() -> None:
    value = valid(winml("catalog", "--family", "bert", "--json").stdout)
    assert [family["name"] for family in value["families"]] == ["bert"]
    assert "no family `bret`" in failed(winml("catalog", "--family", "bret", "--json"), 2)


def test_recipes_stand_beside_their_families_with_what_was_proven() -> None:
    value = valid(winml("catalog", "--family", "bart", "--json").stdout)
    recipe = next(r for r in value["families"][0]["recipes"] if r["name"] == "encoder-decoder")
    assert recipe["levels"] == [{"target": "cpu", "simulated": False, "outcome": "proven", "goal": "L2"}]
    assert {proof["family"] for proof in recipe["proven"]} == {"bart"}


def test_rungs_are_told_by_target_and_what_failed_is_said() -> None:
    text = winml("catalog", "--family", "swin").stdout
    listed = text.partition("\nfamily ")[0].splitlines()
    assert max(map(len, listed)) <= 120
    assert "qnn/npu (simulated)" in listed[0]
    (row,) = [re.split(" {2,}", line) for line in listed if line.startswith("image-encoder-w8a16")]
    assert row == ["image-encoder-w8a16", "swin", "L2", "failed after L1"]
