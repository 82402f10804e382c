"""Which nodes stay in float when not all can be quantized."""

from __future__ import annotations

import pytest

from winml.modelkit.building.quantize import partial
from winml.modelkit.building.quantize.partial import UNDECIDED, as_many_as_work
from winml.modelkit.building.quantize.select import NodeSelection

OPERATORS = {**{f"conv{i}": "Conv" for i in range(8)}, **{f"add{i}": "Add" for i in range(4)}, "norm": "Norm"}
ALL = NodeSelection(frozenset(OPERATORS), {"other": "not able"})


class Attempts:
    """Fails with a reason for every selection that holds one of the bad nodes, or all of a set."""

    def __init__(self, *bad: str, together: frozenset[str] = frozenset()) -> None:
        self.bad, self.together = set(bad), together
        self.count = 0

    def __call__(self, selection: NodeSelection) -> str | None:
        self.count += 1
        assert selection.chosen.isdisjoint(selection.left)
        if self.bad & selection.chosen:
            return "it fails"
        return "they fail" if self.together and self.together <= selection.chosen else None


def test_one_node_is_left_and_all_others_are_kept() -> None:
    attempts = Attempts("conv3")
    found = as_many_as_work(ALL, OPERATORS, attempts)
    assert found.chosen == ALL.chosen - {"conv3"}
    assert found.left == {"other": "not able", "conv3": "it fails"}
    assert attempts.count <= 10


def test_nodes_of_several_operators_are_left() -> None:
    found = as_many_as_work(ALL, OPERATORS, Attempts("conv0", "conv7", "norm"))
    assert ALL.chosen - found.chosen == {"conv0", "conv7", "norm"}


def test_of_nodes_that_fail_only_together_one_is_left() -> None:
    found = as_many_as_work(ALL, OPERATORS, Attempts(together=frozenset({"conv1", "norm"})))
    assert ALL.chosen - found.chosen == {"norm"}
    assert found.left["norm"] == "they fail"


def test_an_operator_of_which_one_node_fails_keeps_the_others() -> None:
    attempts = Attempts(together=frozenset({"add1", "conv1"}))
    found = as_many_as_work(ALL, OPERATORS, attempts)
    assert ALL.chosen - found.chosen == {"add1"}
    assert attempts.count <= 6


def test_nothing_is_kept_when_everything_fails() -> None:
    found = as_many_as_work(ALL, OPERATORS, lambda selection: "always")
    assert not found.chosen


def test_attempts_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial, "MAX_ATTEMPTS", 3)
    attempts = Attempts("conv3")
    found = as_many_as_work(ALL, OPERATORS, attempts)
    assert attempts.count == 3
    assert UNDECIDED in found.left.values()
    assert "conv3" not in found.chosen
