"""Calibrates the boundary of `bench.judge`: how often is a candidate kept that gains nothing?

    python benchmarks/verdicts/calibrate.py [--trials 200000] [--p 0.0005]

Simulates the whole rule (looks, pooled variance, F test, smallest gain) on normal round values with mean zero, over
spreads from 0.1 % to 8 %, with the calibration as quiet as the rounds, quieter, and noisier; and without calibration.
The largest rate over all spreads with a fair calibration has to stay below the design rate.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.measurement import CompareProtocol
from winml.modelkit.core.statistics import f_quantile, t_quantile
from winml.modelkit.measuring.judge import NOISIER_P
from winml.modelkit.measuring.protocols import DESIGN_RATE, PROTOCOLS

Array = npt.NDArray[np.float64]


def outcomes(values: Array, lent: Array, protocol: CompareProtocol, p: float) -> tuple[Array, Array, Array]:
    """Kept, discarded and rounds used for each row of `values`; `lent` are the rows' A/A rounds (may be empty)."""
    trials, k = len(values), lent.shape[1]
    kept = np.zeros(trials, bool)
    dropped = np.zeros(trials, bool)
    rounds = np.full(trials, protocol.max_rounds)
    lent_ss = (lent**2).sum(axis=1)
    for n in range(protocol.first_look, protocol.max_rounds + 1):
        part = values[:, :n]
        mean = part.mean(axis=1)
        own = ((part - mean[:, None]) ** 2).sum(axis=1)
        alone = np.full(trials, k == 0)
        variance = own / (n - 1)
        pooled = variance
        df_pooled = n - 1
        if k:
            alone |= variance / (lent_ss / k) > f_quantile(1 - NOISIER_P, n - 1, k)
            df_pooled = n - 1 + protocol.lent_df
            pooled = np.maximum(variance, (own + protocol.lent_df * lent_ss / k) / df_pooled)
        error = np.sqrt(np.where(alone, variance, pooled) / n)
        critical = np.where(alone, t_quantile(1 - p, n - 1), t_quantile(1 - p, df_pooled))
        half = np.where(alone, t_quantile(0.975, n - 1), t_quantile(0.975, df_pooled))
        open_ = ~kept & ~dropped & (~alone | (n >= protocol.first_look_alone))
        gain = 100 * (1 - np.exp(-mean))
        keep = open_ & (mean / error > critical) & (gain >= protocol.keep_pct)
        drop = open_ & ~keep & (100 * (1 - np.exp(-(mean + half * error))) < protocol.marginal_pct)
        rounds[keep | drop] = n
        kept |= keep
        dropped |= drop
    return kept, dropped, rounds


def rates(
    protocol: CompareProtocol,
    p: float,
    trials: int,
    *,
    gain_pct: float,
    spread: float,
    quieter: float,
    calibrated: bool,
) -> tuple[float, float, float]:
    """Share kept, share discarded, mean rounds."""
    rng = np.random.default_rng([int(1e4 * spread), int(100 * quieter), int(10 * gain_pct) + 1000, int(calibrated)])
    true = -math.log1p(-gain_pct / 100)
    values = rng.normal(true, spread, (trials, protocol.max_rounds))
    lent = rng.normal(0, spread / quieter, (trials, protocol.calibration_rounds if calibrated else 0))
    kept, dropped, rounds = outcomes(values, lent, protocol, p)
    return float(kept.mean()), float(dropped.mean()), float(rounds.mean())


SPREADS = (0.001, 0.003, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.08)


def worst(protocol: CompareProtocol, p: float, trials: int, *, calibrated: bool) -> float:
    return max(rates(protocol, p, trials, gain_pct=0, spread=s, quieter=1.0, calibrated=calibrated)[0] for s in SPREADS)


def search(protocol: CompareProtocol, trials: int, *, calibrated: bool) -> float:
    """The largest p value of a look that keeps the worst rate below the design rate, by bisection on its logarithm."""
    low, high = math.log(1e-5), math.log(5e-3)
    for _ in range(12):
        middle = 0.5 * (low + high)
        if worst(protocol, math.exp(middle), trials, calibrated=calibrated) < DESIGN_RATE:
            low = middle
        else:
            high = middle
    return math.exp(low)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200_000)
    parser.add_argument("--search", action="store_true", help="find the boundary anew instead of checking it")
    options = parser.parse_args()
    protocol = PROTOCOLS["cpu"]
    if options.search:
        for calibrated in (True, False):
            print(f"calibrated={calibrated}: p = {search(protocol, options.trials, calibrated=calibrated):.6f}")
        return
    print("false keeps in %, by spread of a round, calibration against rounds now")
    print("spread  fair   1.5x quieter  2x quieter  3x quieter  none")
    for spread in SPREADS:
        cells = [
            rates(protocol, protocol.boundary_p, options.trials, gain_pct=0, spread=spread, quieter=q, calibrated=True)[
                0
            ]
            for q in (1.0, 1.5, 2.0, 3.0)
        ]
        alone = rates(
            protocol,
            protocol.boundary_p_alone,
            options.trials,
            gain_pct=0,
            spread=spread,
            quieter=1.0,
            calibrated=False,
        )[0]
        print(f"{100 * spread:5.1f}  " + "  ".join(f"{100 * c:9.3f}" for c in (*cells, alone)))
    print("kept in %, mean rounds at a true gain, fair calibration")
    for spread in SPREADS:
        row = []
        for gain in (0, 1, 2, 3, 5):
            kept, _, rounds = rates(
                protocol, protocol.boundary_p, options.trials // 4, gain_pct=gain, spread=spread, quieter=1.0,
                calibrated=True,
            )  # fmt: skip
            row.append(f"{gain} %: {100 * kept:5.1f} in {rounds:4.1f}")
        print(f"{100 * spread:5.1f}  " + "   ".join(row))


if __name__ == "__main__":
    main()
