"""What the Python API costs on top of what it wraps, as ratios taken in one run with alternating processes.

    python benchmarks/api.py [--pairs 20] [--no-priority] [--json FILE]

Ratios and intervals as in `startup.py`: `import winml.modelkit` against `python -c pass` and `import onnxruntime` (CPU
time), and a script with one `wk.perf` of the sample against the bare onnxruntime script of as many runs (wall time, and
CPU time of all processes).
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import record
from intervals import interval_of_median
from startup import PLAIN_SCRIPT, cost, install, outrank_others, ratios

CALL = "import sys\nimport winml.modelkit as wk\nprint(wk.perf(sys.argv[1], target='cpu', sessions=1).latency_ms.p50)\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--no-priority", action="store_true", help="leave other programs alone")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()

    from winml.modelkit import sample

    alone = not options.no_priority and outrank_others()
    rows: list[tuple[str, list[float]]] = []
    with tempfile.TemporaryDirectory() as folder:
        python, _ = install(Path(folder) / "environment")
        call, plain = Path(folder) / "call.py", Path(folder) / "plain.py"
        call.write_text(CALL)
        plain.write_text(PLAIN_SCRIPT)
        ours, theirs = ([python, str(script), str(sample.MODEL)] for script in (call, plain))
        imported = [python, "-c", "import winml.modelkit"]
        for name, other in (("python -c pass", "pass"), ("import onnxruntime", "import onnxruntime")):
            bare = [python, "-c", other]
            found = ratios(lambda: cost(imported)["cpu"], lambda bare=bare: cost(bare)["cpu"], options.pairs)
            rows.append((f"import winml.modelkit / {name}, CPU", found))
        for clock in ("wall", "cpu"):
            found = ratios(
                lambda clock=clock: cost(ours)[clock], lambda clock=clock: cost(theirs)[clock], options.pairs
            )
            rows.append((f"wk.perf(sample, sessions=1) / plain script, {clock}", found))

    for name, values in rows:
        middle, low, high = interval_of_median(values)
        print(f"{name:52s} {middle:7.3f}  ({low:.3f} … {high:.3f}, n={len(values)})")
    order = "before other programs" if alone else "among other programs, which makes ratios of wall time too low"
    print(f"run {order}; load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    if options.json:
        command = f"python benchmarks/api.py --pairs {options.pairs}" + (
            " --no-priority" if options.no_priority else ""
        )
        record.write_results(options.json, command, rows, conditions={"priority": alone})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
