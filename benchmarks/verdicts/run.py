"""How often is `winml compare` right? Real models of known truth, quiet and under load.

    python benchmarks/verdicts/run.py prepare    build the models and measure the true gains
    python benchmarks/verdicts/run.py aa         the pre-registered A/A verdicts
    python benchmarks/verdicts/run.py power      true gains of 3 and 5 %, and candidates 3 % slower
    python benchmarks/verdicts/run.py quiet      A/A verdicts beside the registered run, on a quiet machine
    python benchmarks/verdicts/run.py threads    A/A with two spinning threads
    python benchmarks/verdicts/run.py seed       the sequential policy of the earlier project on the same models
    python benchmarks/verdicts/run.py report     the table, with Clopper-Pearson limits

Numbers, seed and promises stand in `registration.json`, which is committed before a run. Every verdict is appended to
`results/*.jsonl` when it is made; a run that is stopped goes on where it was. Everything on one thread.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
WORK = Path(os.environ.get("WINML_BENCH_WORK", HERE / "work"))
os.environ["WINML_CACHE"] = str(WORK / "cache")

import models  # noqa: E402
from intervals import clopper_pearson  # noqa: E402

from winml.modelkit.core.errors import ModelkitError  # noqa: E402
from winml.modelkit.core.statistics import median, std  # noqa: E402
from winml.modelkit.core.values import to_json  # noqa: E402
from winml.modelkit.core.verdict import gain_pct  # noqa: E402
from winml.modelkit.measuring.compare import compare  # noqa: E402
from winml.modelkit.measuring.compare_arms import CompareRequest  # noqa: E402
from winml.modelkit.measuring.compare_result import Candidate, CompareResult  # noqa: E402
from winml.modelkit.measuring.judge import estimate  # noqa: E402

REGISTERED: dict[str, Any] = json.loads((HERE / "registration.json").read_text())
RESULTS = HERE / "results"


# Ends with its parent: an aborted run must not leave load behind.
BUSY = "import os\np = os.getppid()\nwhile os.getppid() == p: pass"


@contextlib.contextmanager
def machine(condition: str) -> Iterator[None]:
    """The machine as it is, or with busy processes beside us."""
    count = REGISTERED["load_processes"] if condition.startswith("loaded") else 0
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def verdict(base: Path, candidate: Path, *, seed: int, raised: bool, **changes: Any) -> dict[str, Any]:
    """One verdict through the whole program, with the seconds it took apart from the A/A calibration."""
    settings = {"threads": 1, "force": True, "seed": seed, "raise_priority": raised, **changes}
    request = CompareRequest(models=(str(base), str(candidate)), **settings)
    started = time.monotonic()
    try:
        result = compare(request, lambda event: None)
    except ModelkitError as error:
        if not isinstance(error.result, CompareResult):
            raise
        result = error.result
    total = time.monotonic() - started
    spent = sum(c.seconds for c in result.calibrations.values() if not c.cached)
    found = result.candidates[0]
    return {
        **to_json(found.verdict),
        "total_s": total - spent,
        "calibration_s": spent,
        "load": os.getloadavg()[0],
        "rounds_raw": _values(found),
    }


def _values(found: Candidate) -> dict[str, list[float]]:
    """Round values on both clocks, enough to judge the verdict again."""
    if found.measurement is None:
        return {}
    rounds = found.measurement.rounds
    values: dict[str, list[float]] = {"cpu": [], "wall": []}
    for clock, kept in values.items():
        for base, candidate in zip(rounds[::2], rounds[1::2], strict=True):
            pairs = zip(getattr(base, f"{clock}_ns"), getattr(candidate, f"{clock}_ns"), strict=False)
            kept.append(median([math.log(a / b) for a, b in pairs]))
    return values


def prepare() -> None:
    """Find side chains that cost about 3 and 5 %, and what they really cost."""
    WORK.mkdir(parents=True, exist_ok=True)
    folder = WORK / "models"
    folder.mkdir(exist_ok=True)
    found: dict[str, dict[str, Any]] = {}
    for kind in REGISTERED["kinds"]:
        plain = models.saved(kind, 0, folder)
        # The cost of a chain is a constant and a part per step: two chains tell both.
        short, long = (_truth(models.saved(kind, k, folder), plain, rounds=8)[0] for k in (4, 64))
        step = (long - short) / 60
        found[kind] = {}
        for wanted in (3, 5):
            chain = max(1, round(4 + (wanted - short) / step))
            truth, error = _truth(models.saved(kind, chain, folder), plain, rounds=24)
            found[kind][str(wanted)] = {"chain": chain, "truth_pct": truth, "error_pct": error}
            print(kind, wanted, found[kind][str(wanted)], flush=True)
    (WORK / "truth.json").write_text(json.dumps(found, indent=2))


def _truth(base: Path, candidate: Path, *, rounds: int) -> tuple[float, float]:
    """Gain in percent over a fixed number of rounds, with its standard error."""
    from dataclasses import replace

    from winml.modelkit.measuring.protocols import PROTOCOLS

    # A protocol that may not look before its last round measures all of them.
    protocol = replace(PROTOCOLS["cpu"], first_look=rounds, first_look_alone=rounds, max_rounds=rounds)
    made = verdict(base, candidate, seed=1, raised=True, protocol=protocol, calibrate=False, max_seconds=600)
    values = made["rounds_raw"]["cpu"]
    found = estimate(values, ())
    assert found is not None
    return gain_pct(found.mean), 100 * found.error


def _append(name: str, row: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{name}.jsonl").open("a") as stream:
        stream.write(json.dumps(row) + "\n")


def _commit() -> str:
    found = subprocess.run(["git", "-C", str(HERE), "rev-parse", "HEAD"], capture_output=True, text=True)
    return found.stdout.strip()


def _rows(name: str) -> list[dict[str, Any]]:
    path = RESULTS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _cells(count: int) -> list[tuple[str, str, int]]:
    """(kind, condition, seed) for each verdict, fixed by the registration."""
    rng = random.Random(REGISTERED["seed"])
    cells = []
    for number in range(count):
        kind = REGISTERED["kinds"][number % 3]
        condition = REGISTERED["conditions"][number // 3 % 3]
        cells.append((kind, condition, rng.randrange(10**6)))
    return sorted(cells, key=lambda c: REGISTERED["conditions"].index(c[1]))


def _run(name: str, cells: list[tuple[str, str, int, str]]) -> None:
    """Make the verdicts that are not there yet; `cells` are (kind, condition, seed, what)."""
    truth = json.loads((WORK / "truth.json").read_text())
    folder = WORK / "models"
    done = len(_rows(name))
    for number, (kind, condition, seed, what) in enumerate(cells):
        if number < done:
            continue
        plain = models.saved(kind, 0, folder)
        gain = abs(int(what))
        chained = plain if gain == 0 else models.saved(kind, truth[kind][str(gain)]["chain"], folder)
        base, candidate = (plain, chained) if what.startswith("-") else (chained, plain)
        with machine(condition):
            made = verdict(base, candidate, seed=seed, raised="without" not in condition)
        _append(
            name,
            {
                "commit": _commit(),
                "number": number,
                "kind": kind,
                "condition": condition,
                "what": what,
                "seed": seed,
                **made,
            },
        )
        shown = f"{made['gain_pct']:+.2f} %" if made["gain_pct"] is not None else ""
        print(number, kind, condition, what, made["verdict"], shown, f"{made['total_s']:.1f} s", flush=True)


def aa() -> None:
    _run("aa", [(*cell, "0") for cell in _cells(REGISTERED["aa_verdicts"])])


def power() -> None:
    for what, count in REGISTERED["power_verdicts"].items():
        _run(f"power_{what}", [(*cell, what) for cell in _cells(count)])


def quiet() -> None:
    """A/A verdicts on a quiet machine, beside the registered run."""
    cells = [(REGISTERED["kinds"][n % 3], "quiet", 900_000 + n, "0") for n in range(45)]
    _run("quiet", cells)


def threads() -> None:
    """A/A with two threads as the runtime opens them by default, spinning: the pair that differs by 48 % untreated."""
    folder = WORK / "models"
    for number in range(len(_rows("threads")), 16):
        kind = ("cnn", "encoder")[number % 2]
        model = models.saved(kind, 0, folder)
        made = verdict(model, model, seed=REGISTERED["seed"] + number, raised=True, threads=2)
        _append("threads", {"kind": kind, "condition": "quiet", **made})
        print(number, kind, made["verdict"], made["gain_pct"], f"{made['total_s']:.1f} s", flush=True)


def _sessions_ms(model: Path, count: int, warmup: int, iterations: int) -> list[dict[str, float]]:
    """Wall medians and spreads of sequential sessions, as the earlier project measures them."""
    from winml.modelkit.measuring.perf import PerfRequest, perf
    from winml.modelkit.measuring.sessions import AskedProtocol

    protocol = AskedProtocol(iterations=iterations, warmup=warmup, sessions=count, timeout_s=120)
    result = perf(PerfRequest(str(model), target="cpu", threads=1, protocol=protocol), lambda e: None)
    found = []
    for r in result.measurement.rounds:
        wall = [ns / 1e6 for ns in r.wall_ns]
        found.append({"p50": median(wall), "cv": (std(wall) or 0.0) / median(wall)})
    return found


def _seed_policy(base: Path, candidate: Path) -> str:
    """ThroughputOnly with its CV gate off: base once, screen, three sessions, two more to confirm.

    It keeps above max(1 %, twice the CV of the screen), marginally below one and a half times that.
    """
    reference = median([s["p50"] for s in _sessions_ms(base, 3, 10, 300)])
    screen = _sessions_ms(candidate, 1, 20, 200)[0]
    if 100 * (1 - screen["p50"] / reference) < 1:
        return "DISCARD"
    full = [s["p50"] for s in _sessions_ms(candidate, 3, 10, 300)]
    threshold = max(1.0, 2 * 100 * screen["cv"])
    if 100 * (1 - median(full) / reference) < threshold:
        return "DISCARD"
    full += [s["p50"] for s in _sessions_ms(candidate, 2, 10, 300)]  # two more sessions confirm
    gain = 100 * (1 - median(full) / reference)
    return "DISCARD" if gain < threshold else "MARGINAL_KEEP" if gain < 1.5 * threshold else "KEEP"


def seed() -> None:
    truth = json.loads((WORK / "truth.json").read_text())
    folder = WORK / "models"
    plan = [(kind, condition, what) for condition in ("quiet", "loaded") for what in ("0", "3") for kind in
            REGISTERED["kinds"] for _ in range(2)]  # fmt: skip
    for number, (kind, condition, what) in enumerate(plan):
        if number < len(_rows("seed")):
            continue
        plain = models.saved(kind, 0, folder)
        base = plain if what == "0" else models.saved(kind, truth[kind][what]["chain"], folder)
        started = time.monotonic()
        with machine(condition):
            made = _seed_policy(base, plain)
        row = {
            "kind": kind,
            "condition": condition,
            "what": what,
            "verdict": made,
            "total_s": time.monotonic() - started,
        }
        _append("seed", row)
        print(number, *row.values(), flush=True)


KEPT = ("KEEP", "MARGINAL_KEEP")


def _line(label: str, rows: list[dict[str, Any]]) -> str:
    kept = sum(r["verdict"] in KEPT for r in rows)
    low, high = clopper_pearson(kept, len(rows))
    seconds = sum(r["total_s"] for r in rows) / len(rows)
    unclear = sum(r["verdict"] == "INCONCLUSIVE" for r in rows)
    gains = [r["gain_pct"] for r in rows if r.get("gain_pct") is not None]
    spread = f"{sum(gains) / len(gains):+.2f}" if gains else ""
    share = f"{100 * kept / len(rows):.1f} % ({100 * low:.1f} … {100 * high:.1f})"
    return f"| {label} | {kept} of {len(rows)} | {share} | {unclear} | {spread} | {seconds:.1f} |"


def report() -> None:
    truth = json.loads((WORK / "truth.json").read_text())
    print("True gains, 24 rounds each: " + "; ".join(
        f"{kind} {t['truth_pct']:.2f} ± {t['error_pct']:.2f} %" for kind, per in truth.items() for t in per.values()
    ))  # fmt: skip
    print("\n| case | kept | share (95 %) | inconclusive | mean gain % | mean s |")
    print("|---|---|---|---|---|---|")
    for name, title in (("aa", "A/A"), ("power_3", "true 3 %"), ("power_5", "true 5 %"), ("power_-3", "3 % slower")):
        rows = _rows(name)
        if not rows:
            continue
        print(_line(f"**{title}**", rows))
        for key in ("kind", "condition"):
            for value in dict.fromkeys(r[key] for r in rows):
                print(_line(f"{title}, {value}", [r for r in rows if r[key] == value]))
    if _rows("quiet"):
        print(_line("A/A, quiet supplement", _rows("quiet")))
    if _rows("threads"):
        print(_line("A/A, 2 spinning threads", _rows("threads")))
    rows = _rows("seed")
    for what, title in (("0", "earlier policy, A/A"), ("3", "earlier policy, true 3 %")):
        for condition in ("quiet", "loaded"):
            some = [r for r in rows if (r["what"], r["condition"]) == (what, condition)]
            if some:
                print(_line(f"{title}, {condition}", some))
    measured = [r for name in ("aa", "power_3", "power_5", "power_-3") for r in _rows(name)]
    print(f"\nA/A calibrations took {sum(r['calibration_s'] for r in measured):.0f} s in all.")


if __name__ == "__main__":
    {"prepare": prepare, "aa": aa, "power": power, "quiet": quiet, "threads": threads, "seed": seed, "report": report}[
        sys.argv[1]
    ]()
