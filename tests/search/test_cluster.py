from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from search_world import make_result
from winml.modelkit.search.cluster import Search, make_row, move_paths


@pytest.mark.parametrize(("there", "sep"), [("/tmp/job-1/out", "/"), ("C:\\Temp\\job-1\\out", "\\")])
def test_a_result_of_a_node_of_any_system_leads_to_the_folder_it_was_brought_to(
    there: str, sep: str, tmp_path: Path
) -> None:
    champion = f"{there}{sep}champion"
    result = make_result(folder=there, champion_folder=champion, next_=f"winml perf -m {champion} --target cpu")
    assert result.champion is not None
    here = tmp_path / "sweep" / "m"
    search = Search(str(tmp_path / "m.onnx"), here)
    moved = move_paths(result, search)
    assert moved == replace(
        result,
        model=str(tmp_path / "m.onnx"),
        folder=str(here),
        champion=replace(result.champion, folder=str(here / "champion")),
        next=f"winml perf -m {here / 'champion'} --target cpu",
    )
    row = make_row(search, result, "node-1")
    assert (row.champion, row.node, row.trials) == (moved.champion, "node-1", len(result.trials))
    nothing = move_paths(replace(result, champion=None, next="the same"), search)
    assert (nothing.champion, nothing.next) == (None, "the same")
    model = f"{there.removesuffix('out')}staged.onnx"
    looked_at = replace(result, model=model, next=f"winml perf -m {model} --target cpu")
    assert move_paths(looked_at, search).next == f"winml perf -m {search.model} --target cpu"
