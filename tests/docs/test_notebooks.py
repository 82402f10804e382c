"""The notebooks of the docs: they hold the outputs of a run, nothing of the machine that ran them, and they run."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
LARGEST_BYTES = 150_000

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_notebooks", ROOT / "scripts" / "docs" / "make_notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["debug-accuracy-on-npu", "from-model-to-verdict"]


@every_notebook
def test_every_cell_was_run_in_order_and_none_failed(path: Path) -> None:
    cells = [cell for cell in _read(path)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert not [output for cell in cells for output in cell["outputs"] if output["output_type"] == "error"]


@every_notebook
def test_outputs_are_small_and_name_nothing_of_the_machine_that_ran_them(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text) < LARGEST_BYTES
    for cell in _read(path)["cells"]:
        for output in cell.get("outputs", ()):
            shown = json.dumps(output)
            assert not re.search(r"/(tmp|home|root|Users|work|var|usr|opt)/|[A-Z]:\\\\", shown), shown[:300]


def test_paths_and_progress_are_left_out_of_outputs(tmp_path: Path) -> None:
    script = _script()
    progress = SimpleNamespace(output_type="display_data", data={"text/plain": ""})
    shown = {"output_type": "display_data", "data": {"text/plain": [f"wrote {tmp_path}/out", f"in {tmp_path}"]}}
    said = SimpleNamespace(output_type="stream", name="stdout", text="")
    cell = SimpleNamespace(cell_type="code", metadata={"execution": {}}, outputs=[progress, said])
    notebook = SimpleNamespace(cells=[cell], metadata={"language_info": {"version": "3.11.7"}})
    cleaned = script.clean(notebook, tmp_path)
    assert cleaned.cells[0].outputs == [said]
    assert cleaned.cells[0].metadata == {}
    assert "version" not in cleaned.metadata["language_info"]
    assert script._replace(shown, {f"{tmp_path}/": "", str(tmp_path): "."})["data"]["text/plain"] == [
        "wrote out",
        "in .",
    ]


@pytest.mark.slow
@pytest.mark.notebooks
@pytest.mark.qnn
@pytest.mark.timeout(3600)
@pytest.mark.posix("the kernel of Jupyter wants another event loop there, which nobody has tried")
@every_notebook
def test_a_notebook_runs_from_an_empty_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINML_CACHE", "")  # the script sets its own, which must not stay
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{Path('/usr/bin')}:{Path('/bin')}")
    made = _script().run_notebook(path)
    assert [len(cell.outputs) > 0 for cell in made.cells if cell.cell_type == "code"].count(True) > 3
