from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

from winml.modelkit.findings import kb_command
from winml.modelkit.findings.result import KbReport
from winml.modelkit.render.kb_page import page

VOID = {"meta", "br", "hr"}


class Balance(HTMLParser):
    """Checks that every element is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _report(tmp_path: Any) -> KbReport:
    return kb_command.report(str(tmp_path), "page.html")


def test_the_page_is_well_formed_and_needs_nothing_else(tmp_path: Any) -> None:
    text = page(_report(tmp_path))
    balance = Balance()
    balance.feed(text)
    assert balance.open == []
    assert "<script" not in text
    assert "<link" not in text


def test_findings_stand_by_target_and_single_models_are_folded(tmp_path: Any) -> None:
    text = page(_report(tmp_path))
    for target in ("cpu", "qnn/npu", "qnn/gpu", "dml/gpu"):
        assert f'<h2 id="{target}">' in text
    folded = text.index("findings on a single model")
    assert text.index('id="cpu-001"') < folded < text.index('id="cpu-007"')


def test_text_of_findings_is_escaped(tmp_path: Any) -> None:
    report = _report(tmp_path)
    entry = report.entries[0]
    titled = replace(entry, finding=replace(entry.finding, title="<b>&"))
    assert "&lt;b&gt;&amp;" in page(replace(report, entries=(titled,)))
