from __future__ import annotations

from pathlib import Path

from winml.modelkit.ep.packages import Distribution, list_distributions


def test_distributions_are_read_off_metadata_folders_in_the_order_of_the_path(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for name in ("second/Foo_Bar.baz-1.2.dist-info", "first/onnxruntime-1.31.1.dist-info", "first/onnxruntime"):
        (tmp_path / name).mkdir(parents=True)
    (second / "legacy.egg-info").mkdir()
    path = [str(first), str(tmp_path / "missing"), str(second), str(first)]
    assert list_distributions(path) == (
        Distribution("onnxruntime", "1.31.1", str(first)),
        Distribution("foo-bar-baz", "1.2", str(second)),
    )
