"""What a list of 10,000 runs costs, against the least that any list of files costs: `os.walk` and a `stat` of each.

    python benchmarks/dashboard.py [--runs 10000] [--rounds 15] [--json FILE]

Three ratios of CPU time, each the median over alternating rounds with the 95 % interval of that median:

- first: everything is new, so that the first bytes of each file are read (limit 50x);
- again: nothing has changed (limit 4x);
- page: a page of 100 rows of the list as HTML, filtered and sorted, with a walk before it (limit 6x).

Besides, what a page that follows a run costs while nothing happens: the answer to a conditional request, in
microseconds of CPU time, which is what such a page asks once a second.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import record
from intervals import interval_of_median

from winml.modelkit.reporting import dashboard as dashboards
from winml.modelkit.reporting.dashboard import Dashboard
from winml.modelkit.reporting.index import Index
from winml.modelkit.reporting.web_server import Request

BEFORE = Path(__file__).parents[1] / "tests" / "goldens" / "before"
LIMITS = {"first": 50.0, "again": 4.0, "page": 6.0}
FOLDERS = 100


def fill(folder: Path, runs: int) -> None:
    """Real results of `winml perf`, 21 KB each, in a hundred folders, and a search that has not ended."""
    text = (BEFORE / "perf.json").read_text(encoding="utf-8")
    for number in range(FOLDERS):
        (folder / f"{number:03}").mkdir()
    for number in range(runs):
        changed = text.replace('"tiny.onnx"', f'"model-{number % 40}.onnx"', 1)
        (folder / f"{number % FOLDERS:03}" / f"run-{number:05}.json").write_text(changed, encoding="utf-8")
    shutil.copytree(BEFORE / "stopped-search", folder / "search")


def cpu_seconds(act: Callable[[], object]) -> float:
    started = time.process_time()
    act()
    return time.process_time() - started


def walk(folder: Path) -> int:
    """The bytes below a folder; paths are joined as text, which is quicker than with `pathlib`."""
    names = (f"{place}/{name}" for place, _, files in os.walk(folder) for name in files)
    return sum(os.stat(name).st_size for name in names)  # noqa: PTH116


def measure(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Ratios to the plain walk of the same round."""
    dashboards._ANSWERS_S = 0.0  # the answers of a hundred runs are read once, whatever is below the root
    known = Index(folder, pause_s=0)
    shown = Dashboard(folder)
    shown.index = Index(folder, pause_s=0)
    asked = Request("/", {"q": ("model-7",), "sort": ("name",)})
    known.find_runs()
    shown.answer(asked)
    found: dict[str, list[float]] = {name: [] for name in LIMITS}
    for _ in range(rounds):
        plain = cpu_seconds(lambda: walk(folder))
        found["first"].append(cpu_seconds(Index(folder).find_runs) / plain)
        found["again"].append(cpu_seconds(known.find_runs) / plain)
        found["page"].append(cpu_seconds(lambda: shown.answer(asked)) / plain)
    return found


def measure_following(folder: Path, times: int = 2000) -> float:
    """Microseconds of CPU time of the answer that nothing has changed."""
    shown = Dashboard(folder)
    (run,) = [one for one in shown.index.find_runs().runs if one.name == "search"]
    etag = dashboards._make_etag(run.stamp)
    asked = Request(f"/live/{run.id}", {}, etag)
    assert shown.answer(asked).status == 304
    return cpu_seconds(lambda: [shown.answer(asked) for _ in range(times)]) / times * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", metavar="FILE")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder, given.runs)
        ratios = measure(folder, given.rounds)
        following = measure_following(folder)
    failed = 0
    for what, limit in LIMITS.items():
        middle, low, high = interval_of_median(ratios[what])
        failed += middle > limit
        print(f"{what:6} {middle:5.2f}x ({low:.2f} … {high:.2f}) of os.walk and stat, limit {limit:g}x")
    print(f"a page that follows a run: {following:.0f} µs of CPU time per second while nothing happens")
    if given.json:
        rows = [*ratios.items(), ("following_us", [following])]
        record.write_results(Path(given.json), "benchmarks/dashboard.py", rows, conditions={"runs": given.runs})
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
