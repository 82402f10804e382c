"""ONNX's own node tests through optimize and quantize, judged by the outputs that the tests expect.

    python benchmarks/robustness/node_tests.py -o results.jsonl [--every 7] [--only matmul] [--modes dynamic static]

A process judges the cases and is started again after the case that ends it: kernels may crash. What was judged is kept
in the file, so that an interrupted run goes on. At the end it prints counts by mode; the goal is 0 wrong without a
warning, 0 that cannot run after exit 0, and 0 tracebacks.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))


def rows(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def judge(path: Path, every: int, only: str, modes: tuple[str, ...]) -> None:
    """Judge what is not in the file yet; the case at hand is written down first, in case it ends the process."""
    import node_zoo

    done = {row["case"] for row in rows(path)}
    chosen = [case for case in node_zoo.cases()[::every] if only in case.name and case.name not in done]
    with tempfile.TemporaryDirectory() as folder, path.open("a", encoding="utf-8", buffering=1) as stream:
        judge = node_zoo.Judge(Path(folder))
        for number, case in enumerate(chosen):
            stream.write(json.dumps({"case": case.name}) + "\n")
            for mode, verdict in judge.judge(case, modes).items():
                stream.write(json.dumps({"case": case.name, "mode": mode, **asdict(verdict)}) + "\n")
            if number % 100 == 0:
                print(f"{number} of {len(chosen)}: {case.name}", file=sys.stderr, flush=True)
        judge.close()


def report(path: Path) -> int:
    """Print the counts and what must not be; the number of those."""
    found = rows(path)
    judged = {row["case"] for row in found if "mode" in row}
    ended = sorted({row["case"] for row in found if "mode" not in row} - judged)
    verdicts = [row for row in found if "mode" in row]
    kinds = sorted({row["verdict"] for row in verdicts})
    counts = Counter((row["mode"], row["verdict"]) for row in verdicts)
    modes = list(dict.fromkeys(row["mode"] for row in verdicts))
    print(f"{len(judged)} cases; changed: {sum(row['changed'] for row in verdicts)}; judging crashed: {len(ended)}")
    print("| mode | " + " | ".join(kinds) + " |\n|---" + "|---" * len(kinds) + "|")
    for mode in modes:
        print(f"| {mode} | " + " | ".join(str(counts[mode, kind]) for kind in kinds) + " |")
    print("| all | " + " | ".join(str(sum(counts[mode, kind] for mode in modes)) for kind in kinds) + " |")
    bad = [row for row in verdicts if row["verdict"] in ("wrong", "unrunnable", "traceback", "crashed")]
    for row in bad:
        print(f"{row['verdict']}  {row['mode']}  {row['case']}: {row['detail'][-200:]}")
    for name in ended:
        print(f"judging crashed  {name}")
    return len(bad) + len(ended)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--modes", nargs="+", default=["optimize", "dynamic", "static", "fp16"])
    parser.add_argument("--judge", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--report", action="store_true", help="only print the counts of the file")
    args = parser.parse_args()
    if args.judge:
        judge(args.output, args.every, args.only, tuple(args.modes))
        return
    while not args.report:
        before = len(rows(args.output))
        if subprocess.run([sys.executable, __file__, "--judge", *sys.argv[1:]], check=False).returncode == 0:
            break
        if len(rows(args.output)) == before:
            raise SystemExit("judging ends before the first case")
    raise SystemExit(5 if report(args.output) else 0)


if __name__ == "__main__":
    main()
