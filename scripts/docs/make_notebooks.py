"""Runs the notebooks of the docs from an empty folder and writes their outputs again.

    python scripts/docs/make_notebooks.py                          # all
    python scripts/docs/make_notebooks.py debug-accuracy-on-npu    # one
    python scripts/docs/make_notebooks.py --check                  # run them and change nothing

It needs `pip install -e ".[notebooks]"`, and the extra `qnn` for the notebook about the NPU. Numbers differ from run to
run: read the diff. Paths of this machine, times of execution and progress are left out of what is written.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "docs" / "notebooks"
TIMEOUT_S = 3600


def run_notebook(path: Path) -> Any:
    """The notebook with new outputs; raises `nbclient.exceptions.CellExecutionError` when a cell fails."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory(prefix="winml-notebook-") as name:
        folder = Path(name).resolve()
        # A cache of its own: what a reader sees who runs it for the first time.
        os.environ["WINML_CACHE"] = str(folder / "cache")
        work = folder / "work"
        work.mkdir()
        NotebookClient(notebook, timeout=TIMEOUT_S, resources={"metadata": {"path": str(work)}}).execute()
        return clean(notebook, work)


def clean(notebook: Any, work: Path) -> Any:
    """Outputs without progress, times of execution and paths of this machine."""
    names = {f"{work}{os.sep}": "", str(work): ".", f"{ROOT}{os.sep}": "", str(Path.home()): "~"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [_replace(output, names) for output in cell.outputs if not _is_progress(output)]
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def _is_progress(output: Any) -> bool:
    """Whether an output is a line of progress, which is empty at the end."""
    return output.output_type == "display_data" and not any(output.data.values())


def _replace(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        for old, new in names.items():
            value = value.replace(old, new)
        return value
    if isinstance(value, list):
        return [_replace(one, names) for one in value]
    if isinstance(value, dict):
        for key in value:
            value[key] = _replace(value[key], names)
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="without the ending (default: all)")
    parser.add_argument("--check", action="store_true", help="run them and change nothing")
    given = parser.parse_args()

    import nbformat

    for path in [NOTEBOOKS / f"{name}.ipynb" for name in given.names] or sorted(NOTEBOOKS.glob("*.ipynb")):
        made = run_notebook(path)
        if not given.check:
            nbformat.write(made, path)
        print(f"{'ran' if given.check else 'wrote'} {path.relative_to(ROOT)}", flush=True)


if __name__ == "__main__":
    main()
