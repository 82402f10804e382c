"""Autoconfig against an exhaustive sweep of the same space, on real models on the CPU.

    python benchmarks/search/run.py -o DIR [--models cnn,vit,text]

For each model: builds and seconds of both, and what the champion of autoconfig loses to the best of the sweep, measured
in rounds of the two against each other. A search that was cut off goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "src")]

from models import save  # noqa: E402

from winml.modelkit.core.config import DataSection  # noqa: E402
from winml.modelkit.core.errors import ModelkitError  # noqa: E402
from winml.modelkit.measuring.compare import compare  # noqa: E402
from winml.modelkit.measuring.compare_arms import CompareRequest  # noqa: E402
from winml.modelkit.measuring.compare_result import CompareResult  # noqa: E402
from winml.modelkit.search.autoconfig import autoconfig  # noqa: E402
from winml.modelkit.search.events import TrialEnded  # noqa: E402
from winml.modelkit.search.prepare import AutoconfigRequest  # noqa: E402
from winml.modelkit.search.records import JOURNAL  # noqa: E402
from winml.modelkit.search.result import SearchResult  # noqa: E402

KNOBS = {
    "quantize.scheme": ["int8", "dynamic", "u8u8", "fp16"],
    "quantize.op_types": ["MatMul", "Conv"],
    "quantize.calibration_method": ["percentile"],
    "optimize.passes": ["basic", "extended"],
    "session.nchwc": ["off"],
}


def search(model: Path, data: Path, folder: Path, *, exhaustive: bool) -> SearchResult:
    space = folder.parent / "space.json"
    space.write_text(json.dumps({"schema": "winml/space/1", "knobs": KNOBS}))
    request = AutoconfigRequest(
        model=str(model),
        output=str(folder),
        targets=("cpu",),
        calibration=DataSection(str(data)),
        min_agreement=0.98,
        threads=1,
        space=str(space),
        resume=(folder / JOURNAL).is_file(),
        exhaustive=exhaustive,
    )
    return autoconfig(request, _tell)


def _tell(event: object) -> None:
    if isinstance(event, TrialEnded):
        trial = event.trial
        print(f"  {trial.id} {trial.label} {trial.outcome} {trial.seconds:.1f} s", file=sys.stderr, flush=True)


def regret_pct(best: Path, champion: Path) -> tuple[float | None, tuple[float, float] | None]:
    """How much less time the best of the sweep takes than the champion, in percent, with its interval."""
    request = CompareRequest(
        models=(str(champion), str(best)), targets=("cpu",), allow_different=True, max_seconds=120, confirm=False
    )
    try:
        result = compare(request, lambda event: None)
    except ModelkitError as error:
        if not isinstance(error.result, CompareResult):
            raise
        result = error.result
    verdict = result.candidates[0].verdict
    return verdict.gain_pct, verdict.interval_pct


def row(name: str, folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    model, data = save(name, folder)
    ours = search(model, data, folder / "autoconfig", exhaustive=False)
    sweep = search(model, data, folder / "sweep", exhaustive=True)
    assert ours.champion is not None
    assert sweep.champion is not None
    same = ours.champion.digest == sweep.champion.digest
    session = [
        json.loads((folder / n / "champion" / "build_config.json").read_text())["session"]
        for n in ("autoconfig", "sweep")
    ]
    lost, interval = (0.0, None) if same and session[0] == session[1] else regret_pct(
        folder / "sweep" / "champion", folder / "autoconfig" / "champion"
    )  # fmt: skip
    return {
        "model": name,
        "choices": sweep.choices,
        "builds": len(ours.trials),
        "builds_of_sweep": len(sweep.trials),
        "seconds": ours.seconds,
        "seconds_of_sweep": sweep.seconds,
        "champion": ours.champion.trial.label,
        "best": sweep.champion.trial.label,
        "speedup": ours.champion.speedup,
        "speedup_interval": ours.champion.speedup_interval,
        "regret_pct": lost,
        "regret_interval_pct": interval,
        "failed": sum(t.outcome in ("failed", "inaccurate", "slower") for t in sweep.trials),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--models", default="cnn,vit,text")
    given = parser.parse_args()
    for name in given.models.split(","):
        found = row(name, given.output.absolute() / name)
        print(json.dumps(found), flush=True)
        share = found["builds"] / found["builds_of_sweep"]
        kept = "kept" if share <= 0.25 and found["regret_pct"] <= 1.0 else "NOT kept"
        words = f"{name}: {share:.0%} of the builds, {found['regret_pct']:.2f} % behind the best"
        print(f"{words}: promise {kept}", flush=True)


if __name__ == "__main__":
    main()
