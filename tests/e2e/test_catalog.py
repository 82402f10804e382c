"""`winml catalog` as a user runs it."""

from __future__ import annotations

from test_commands import failed, valid, winml


def test_the_catalog_names_what_was_proven_of_a_family() -> None:
    value = valid(winml("catalog", "--family", "bert", "--json").stdout)
    assert [family["name"] for family in value["families"]] == ["bert"]
    assert "no family `bret`" in failed(winml("catalog", "--family", "bret", "--json"), 2)
