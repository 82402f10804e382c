"""`winml support knowledge` as a user starts it."""

from __future__ import annotations

import json
from pathlib import Path

from program import failed, valid, winml

FINDING = {
    "id": "bart-900", "title": "A claim", "observation": "It was seen.", "status": "reported", "source": "a test",
    "added": "2026-11-16",
}  # fmt: skip


def test_findings_are_listed_shown_and_added(tmp_path: Path) -> None:
    listed = valid(winml("support", "knowledge", "list", "--family", "bart", "--json").stdout)
    assert [f["id"] for f in listed["findings"]] == ["bart-001", "bart-002", "bart-003", "bart-004"]
    file = tmp_path / "finding.json"
    file.write_text(json.dumps(FINDING), encoding="utf-8")
    own = ("--knowledge", tmp_path / "own", "--json")
    assert valid(winml("support", "knowledge", "add", file, *own).stdout)["finding"] == "bart-900"
    assert valid(winml("support", "knowledge", "show", "bart-900", *own).stdout)["finding"]["title"] == "A claim"
    assert "findings are added, never changed" in failed(winml("support", "knowledge", "add", file, *own), 2)
    assert valid(winml("support", "knowledge", "check", *own).stdout)["statuses"]["reported"] >= 34


def test_an_unknown_family_suggests_the_nearest() -> None:
    assert "did you mean `marian`?" in failed(winml("support", "knowledge", "list", "--family", "marion"), 2)
