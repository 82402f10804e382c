"""Shipped experiments set nothing that a document may not."""

from __future__ import annotations

from winml.modelkit.core.measurement import section_from_json
from winml.modelkit.ep.trust import NOTHING
from winml.modelkit.knowledge.findings import Knowledge


def test_every_shipped_experiment_can_be_replayed_without_trusting_an_option() -> None:
    found = [entry.finding for entry in Knowledge() if entry.finding.experiment is not None]
    assert found
    for finding in found:
        assert finding.experiment is not None
        for arm in (finding.experiment.base, finding.experiment.candidate):
            section_from_json(arm.session, NOTHING.gate(finding.id))
