"""`winml catalog` as a user runs it."""

from __future__ import annotations

from test_commands import failed, valid, winml


def test_the_catalog_names_what_was_proven_of_a_family() -> None:
    value = valid(winml("catalog", "--family", "bert", "--json").stdout)
    assert [family["name"] for family in value["families"]] == ["bert"]
    assert "no family `bret`" in failed(winml("catalog", "--family", "bret", "--json"), 2)


def test_recipes_stand_beside_their_families_with_what_was_proven() -> None:
    value = valid(winml("catalog", "--family", "bart", "--json").stdout)
    recipe = next(r for r in value["families"][0]["recipes"] if r["name"] == "encoder-decoder")
    assert {(proof["target"], proof["goal"]) for proof in recipe["proven"]} == {("cpu", "L2")}
    assert "encoder-decoder L2 on cpu" in winml("catalog", "--family", "bart").stdout
