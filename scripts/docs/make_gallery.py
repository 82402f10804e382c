"""Makes a report of every kind from real runs of this machine, and pictures of them for the documentation.

    python scripts/docs/make_gallery.py gallery                    runs, pages and an index in the folder `gallery`
    python scripts/docs/make_gallery.py gallery --pictures         also screenshots, light and dark (needs Chromium)
    python scripts/docs/make_gallery.py gallery --pictures --docs  also those of docs/images (light, small)

Runs that are in the folder already are used again. It takes about five minutes: measurements, a trace on the CPU and
one on the QNN simulator where that is installed, a comparison, an evaluation, a build, a search and a matrix.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from chromium import Chromium, chromium, find_chromium  # noqa: E402 - beside this folder

IMAGES = ROOT / "docs" / "images"
IN_DOCS = ("op-trace-npu", "compare", "search")
"""Pages whose screenshots are in the documentation."""
WIDTH = 960
PHONE = 360
HEIGHT = 1200
"""Pixels of a page that a screenshot for the documentation shows."""


def _winml(*words: str, folder: Path, may_fail: bool = False) -> None:
    print("winml", *words, flush=True)
    done = subprocess.run([sys.executable, "-m", "winml.modelkit", *words], cwd=folder)
    if done.returncode and not may_fail:
        sys.exit(f"winml {words[0]} ended with {done.returncode}")


def _runs(folder: Path) -> dict[str, tuple[str, ...]]:
    """Name of a page -> the runs it is about; each is made when it is not there."""
    from winml.modelkit import sample

    model, test, calibration = str(sample.MODEL), str(sample.TEST), str(sample.CALIBRATION)
    made: dict[str, tuple[str, ...]] = {}

    def need(name: str, path: str, *words: str) -> None:
        if not (folder / path).exists():
            _winml(*words, folder=folder, may_fail=True)
        if (folder / path).exists():
            made[name] = (path,)

    need("perf", "perf.json", "perf", "--sample", "--target", "cpu", "--sessions", "3", "-o", "perf.json")
    need("op-trace", "trace_op_trace.json", "perf", "--sample", "--target", "cpu", "--iterations", "20", "--op-tracing",
         "basic", "-o", "trace.json")  # fmt: skip
    need("build", "int8", "build", "--sample", "--target", "cpu", "-p", "w8a8", "-o", "int8")
    need("compare", "compare.json", "compare", model, "int8", "--target", "cpu", "-o", "compare.json")
    need("eval", "eval.json", "eval", "-m", "int8", "--reference", model, "--data", test, "--task",
         "image-classification", "--max-drop", "0.02", "-o", "eval.json")  # fmt: skip
    need("search", "search", "autoconfig", "--sample", "--target", "cpu", "--budget", "90s", "-o", "search")
    if importlib.util.find_spec("onnxruntime_qnn") is not None:
        need("build-npu", "npu", "build", "--sample", "--target", "qnn/npu", "-o", "npu")
        need("op-trace-npu", "npu_op_trace.json", "perf", "-m", "npu", "--target", "qnn/npu", "--op-tracing", "detail",
             "-o", "npu.json")  # fmt: skip
    models = folder / "models"
    models.mkdir(exist_ok=True)
    for name in ("digits", "digits-again", "digits-copy"):
        shutil.copy(sample.MODEL, models / f"{name}.onnx")
    listed = [word for path in sorted(models.iterdir()) for word in ("-m", f"models/{path.name}")]
    need("matrix", "matrix", "matrix", "run", *listed, "--targets", "cpu,qnn/npu,dml/gpu", "--calibration", calibration,
         "--run-stamp", "gallery", "--feed", "folder:feed", "-o", "matrix")  # fmt: skip
    contribution = ROOT / "tests/goldens/before/contribution"
    if contribution.is_dir():
        made["contribution"] = (str(contribution),)
    if "op-trace" in made and "op-trace-npu" in made:
        made["two-traces"] = (*made["op-trace"], *made["op-trace-npu"])
    return made


def _pages(folder: Path, runs: dict[str, tuple[str, ...]]) -> list[str]:
    names = []
    for name, paths in runs.items():
        _winml("report", *paths, "-o", f"{name}.html", folder=folder)
        names.append(name)
    _winml("kb", "report", "-o", "kb.html", "--overwrite", folder=folder)
    return [*names, "kb"]


def _shoot(folder: Path, names: list[str], *, docs: bool) -> None:
    with chromium() as browser:
        for name in names:
            for scheme in ("light", "dark"):
                _shot(browser, folder / f"{name}.html", folder / f"{name}-{scheme}.webp", scheme, WIDTH)
            _shot(browser, folder / f"{name}.html", folder / f"{name}-phone.webp", "light", PHONE)
            if docs and name in IN_DOCS:
                _shot(browser, folder / f"{name}.html", IMAGES / f"report-{name}.webp", "light", WIDTH, HEIGHT)


def _shot(browser: Chromium, page: Path, place: Path, scheme: str, width: int, height: int | None = None) -> None:
    with browser.page(page.absolute().as_uri(), scheme=scheme, width=width) as shown:
        shown.screenshot(place, height)
    print(f"{place} {place.stat().st_size:,} bytes", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pictures", action="store_true", help="also make screenshots")
    parser.add_argument("--docs", action="store_true", help="write those of the documentation")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    names = _pages(options.folder, _runs(options.folder))
    if options.pictures:
        if find_chromium() is None:
            sys.exit("no Chromium is installed (apt-get install chromium)")
        _shoot(options.folder, names, docs=options.docs)
    print(f"{len(names)} pages in {options.folder}")


if __name__ == "__main__":
    main()
