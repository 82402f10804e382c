from winml.modelkit.search.pareto import front


def test_points_that_nothing_beats_in_everything() -> None:
    points = {"slow": (0.0, 0.99), "fast": (1.0, 0.90), "worse": (0.9, 0.80), "middle": (0.5, 0.95)}
    assert front(points) == ["slow", "fast", "middle"]


def test_equal_points_are_all_on_the_front() -> None:
    assert front({"a": (1.0, 1.0), "b": (1.0, 1.0)}) == ["a", "b"]


def test_no_points() -> None:
    assert front({}) == []
