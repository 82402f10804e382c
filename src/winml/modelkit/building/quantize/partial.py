"""Finds the nodes to leave in float when with all of them the quantizer, or the runtime, refuses the model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from winml.modelkit.building.quantize.select import NodeSelection

MAX_ATTEMPTS = 48
"""Each quantizes the whole model; nodes that were not decided by then stay in float."""
UNDECIDED = f"nodes like it fail, and {MAX_ATTEMPTS} attempts did not find which"

Attempt = Callable[[NodeSelection], str | None]
"""Why a selection cannot be quantized; None when it can."""


class _Search:
    """Attempts with more and more nodes."""

    def __init__(self, selection: NodeSelection, attempt: Attempt) -> None:
        self._selection, self._attempt = selection, attempt
        self._left_attempts = MAX_ATTEMPTS
        self.left: dict[str, str] = {}

    def reason_against(self, kept: Collection[str]) -> str | None:
        """Why these nodes alone cannot be quantized."""
        if self._left_attempts == 0:
            return UNDECIDED
        self._left_attempts -= 1
        others = self._selection.chosen.difference(kept)
        return self._attempt(self._selection.without(dict.fromkeys(others, "not in this attempt")))

    def extend(self, kept: frozenset[str], groups: list[list[str]], *, failed: bool = False) -> frozenset[str]:
        """`kept` and as many nodes of further groups as can be quantized; with `failed`, whole groups fail."""
        waiting = [(group, failed) for group in reversed(groups)]
        while waiting:
            group, known = waiting.pop()
            reason = "" if known and len(group) > 1 else self.reason_against(kept.union(group))
            if reason is None:
                kept = kept.union(group)
            elif len(group) == 1 or reason == UNDECIDED:
                self.left.update(dict.fromkeys(group, reason))
            else:
                half = len(group) // 2
                waiting += [(group[half:], False), (group[:half], False)]
        return kept


def as_many_as_work(selection: NodeSelection, operators: Mapping[str, str], attempt: Attempt) -> NodeSelection:
    """As much of a selection as can be quantized, with the reason of each node that stays in float.

    All but one operator is tried first; of the operator that fails, halves are added back. Where that is not enough,
    operators are added one after the other.
    """
    search = _Search(selection, attempt)
    groups = _groups(selection.chosen, operators)
    for group in reversed(groups) if len(groups) > 1 else ():
        kept = selection.chosen.difference(group)
        if search.reason_against(kept) is None:
            search.extend(kept, [group], failed=True)
            return selection.without(search.left)
    search.extend(frozenset(), groups)
    return selection.without(search.left)


def _groups(names: Collection[str], operators: Mapping[str, str]) -> list[list[str]]:
    """Names by operator, those with the most nodes first."""
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        groups.setdefault(operators.get(name, ""), []).append(name)
    return sorted(groups.values(), key=lambda group: (-len(group), group))
