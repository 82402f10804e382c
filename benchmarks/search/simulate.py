"""Searches in worlds where the best config is known: ours, all of them, and Optuna's TPE where it is installed.

    python benchmarks/search/simulate.py [--worlds 40] [--optuna]

For each strategy: how often the chosen config is within 1 % of the best valid one, builds, measuring time, and whether
a config that crashes, hangs, is 50 times slower or computes something else was ever chosen.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2] / "tests"), str(Path(__file__).parents[2] / "src")]

from search_world import BUILD_S, Laboratory, World, chosen, random_world, search  # noqa: E402
from winml.modelkit.core.errors import RunFailedError  # noqa: E402
from winml.modelkit.search.guards import SLOWER_LIMIT  # noqa: E402
from winml.modelkit.search.space import Choice  # noqa: E402

SPACES = {
    "12 configs": {"scheme": 3, "fuse": 2},
    "48 configs": {"scheme": 3, "fuse": 2, "level": 1, "gelu": 1},
    "192 configs": {"scheme": 3, "fuse": 2, "level": 1, "gelu": 1, "norm": 1, "nchwc": 1},
    "5184 configs": {"scheme": 8, "fuse": 2, "level": 2, **{f"pass{i}": 1 for i in range(6)}},
}


@dataclass(frozen=True)
class Outcome:
    regret: float
    builds: int
    measuring_s: float
    valid: bool
    worst_hazard_s: float


def _outcome(world: World, choice: Choice, laboratory: Laboratory) -> Outcome:
    hazards = [seconds for kind, seconds in laboratory.spent if kind in ("hang", "crash", "slow")]
    return Outcome(
        regret=world.best() - world.speed(choice),
        builds=laboratory.builds,
        measuring_s=laboratory.now - BUILD_S * laboratory.builds,
        valid=world.valid(choice) and not world.slow.intersection(choice),
        worst_hazard_s=max(hazards, default=0.0),
    )


def ours(world: World, seed: int) -> Outcome:
    study, laboratory = search(world, seed=seed)
    return _outcome(world, chosen(study), laboratory)


def _try(laboratory: Laboratory, choice: Choice, rounds: int) -> float | None:
    """The mean of a few rounds, None for a config that does not pass the guards."""
    built = laboratory.build(dict(choice))
    try:
        if laboratory.probe(built).slowdown > SLOWER_LIMIT or not laboratory.check(built).passed:
            return None
    except RunFailedError:
        return None
    return statistics.fmean(laboratory.measure(built, rounds=rounds, first=0).deciding)


def _final(laboratory: Laboratory, scores: dict[Choice, float]) -> Choice:
    """The best of the four leaders after 16 more rounds each."""
    leaders = sorted(scores, key=lambda choice: -scores[choice])[:4]
    again = {c: _try(laboratory, c, 16) or -math.inf for c in leaders}
    laboratory.builds -= len(leaders)
    return max(again, key=lambda choice: again[choice])


def exhaustive(world: World, seed: int) -> Outcome:
    laboratory = Laboratory(world, seed)
    found = {choice: _try(laboratory, choice, 3) for choice in world.space.choices()}
    return _outcome(world, _final(laboratory, {c: s for c, s in found.items() if s is not None}), laboratory)


def tpe(trials: int) -> Callable[[World, int], Outcome]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def run(world: World, seed: int) -> Outcome:
        laboratory = Laboratory(world, seed)
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
        found: dict[Choice, float] = {}
        failed: set[Choice] = set()
        for _ in range(trials):
            trial = study.ask()
            names = {knob.name: trial.suggest_categorical(knob.name, knob.names) for knob in world.space.knobs}
            choice = world.space.canonical(tuple((k, v) for k, v in names.items() if v != "default"))
            if choice not in found and choice not in failed:
                score = _try(laboratory, choice, 3)
                if score is None:
                    failed.add(choice)
                else:
                    found[choice] = score
            study.tell(trial, found.get(choice, -1.0))
        return _outcome(world, _final(laboratory, found or {(): 0.0}), laboratory)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=40)
    parser.add_argument("--optuna", action="store_true", help="also Optuna's TPE, which has to be installed")
    parser.add_argument("-o", "--output", type=Path, help="also write the rows as JSON lines")
    given = parser.parse_args()
    strategies = {"ours": ours, "all of them": exhaustive}
    if given.optuna:
        strategies |= {f"TPE, {n} trials": tpe(n) for n in (20, 40)}
    rows = []
    for space, levels in SPACES.items():
        for name, spread, strong in (("quiet", 0.004, False), ("strong pairs", 0.004, True), ("noisy", 0.02, False)):
            for strategy, run in strategies.items():
                if strategy == "all of them" and space == "5184 configs":
                    continue
                found = [
                    run(random_world(levels, seed, spread=spread, strong=strong), seed) for seed in range(given.worlds)
                ]
                rows.append(_row(space, name, strategy, found))
                print(_text(rows[-1]), flush=True)
    if given.output:
        given.output.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _row(space: str, noise: str, strategy: str, found: list[Outcome]) -> dict[str, object]:
    return {
        "space": space,
        "world": noise,
        "strategy": strategy,
        "within_1_pct": sum(o.regret <= 0.01 for o in found) / len(found),
        "within_3_pct": sum(o.regret <= 0.03 for o in found) / len(found),
        "worst_regret_pct": 100 * max(o.regret for o in found),
        "builds": statistics.fmean(o.builds for o in found),
        "measuring_s": statistics.fmean(o.measuring_s for o in found),
        "invalid": sum(not o.valid for o in found),
        "worst_hazard_s": max(o.worst_hazard_s for o in found),
    }


def _text(row: dict[str, object]) -> str:
    return (
        f"{row['space']:>13} {row['world']:>13} {row['strategy']:>15}  within 1 % {row['within_1_pct']:.0%}  "
        f"3 % {row['within_3_pct']:.0%}  worst {row['worst_regret_pct']:.1f} %  builds {row['builds']:.0f}  "
        f"measuring {row['measuring_s']:.0f} s  invalid {row['invalid']}  hazard {row['worst_hazard_s']:.0f} s"
    )


if __name__ == "__main__":
    main()
