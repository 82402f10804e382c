from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from winml.modelkit.data.selection import choose, choose_stratified


@given(count=st.integers(0, 200), limit=st.one_of(st.none(), st.integers(1, 250)), seed=st.integers(0, 2**32))
def test_a_choice_has_the_size_asked_for_once_each_and_in_order(count: int, limit: int | None, seed: int) -> None:
    found = list(choose(count, limit, seed))
    assert found == sorted(set(found))
    assert len(found) == (count if limit is None else min(limit, count))
    assert all(0 <= index < count for index in found)
    assert found == list(choose(count, limit, seed))


def test_the_choice_of_a_seed_is_the_same_on_every_machine() -> None:
    assert choose(1000, 5, 0) == [40, 186, 402, 583, 993]
    assert choose(1000, 5, 1) != choose(1000, 5, 0)


@given(
    sizes=st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 30), min_size=1),
    share=st.floats(0.05, 1.0),
    seed=st.integers(0, 99),
)
def test_classes_keep_their_share_up_to_one_sample(sizes: dict[str, int], share: float, seed: int) -> None:
    classes = [name for name, size in sizes.items() for _ in range(size)]
    limit = max(1, round(share * len(classes)))
    taken = Counter(classes[i] for i in choose_stratified(classes, limit, seed))
    assert sum(taken.values()) == limit
    for name, size in sizes.items():
        assert abs(taken[name] - limit * size / len(classes)) <= 1.0 + 1e-9


def test_without_a_limit_everything_is_taken() -> None:
    assert list(choose_stratified(["a", "b"], None, 0)) == [0, 1]
    assert list(choose_stratified(["a", "b"], 9, 0)) == [0, 1]


def test_a_large_class_does_not_take_what_small_ones_leave() -> None:
    classes = [*"abc", *"dddddddd"]
    assert Counter(classes[i] for i in choose_stratified(classes, 4, 0))["d"] == 3
