from __future__ import annotations

from pathlib import Path

import pytest

from winml.modelkit.search.cluster import Search, at_home


@pytest.mark.parametrize(("there", "sep"), [("/tmp/job-1/out", "/"), ("C:\\Temp\\job-1\\out", "\\")])
def test_a_result_of_a_node_of_any_system_leads_to_the_folder_it_was_brought_to(
    there: str, sep: str, tmp_path: Path
) -> None:
    champion = f"{there}{sep}champion"
    value = {
        "model": "elsewhere",
        "folder": there,
        "champion": {"folder": champion, "gain_pct": 3.0},
        "next": f"winml perf -m {champion} --target cpu",
        "finished": True,
    }
    here = tmp_path / "sweep" / "m"
    assert at_home(value, Search(tmp_path / "m.onnx", here)) == {
        "model": str(tmp_path / "m.onnx"),
        "folder": str(here),
        "champion": {"folder": str(here / "champion"), "gain_pct": 3.0},
        "next": f"winml perf -m {here / 'champion'} --target cpu",
        "finished": True,
    }
    nothing = at_home({**value, "champion": None, "next": "the same"}, Search(tmp_path / "m.onnx", here))
    assert (nothing["champion"], nothing["next"]) == (None, "the same")
