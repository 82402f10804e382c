"""Metrics of all samples together, where a sample has no score of its own, and how certain they are."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from winml.modelkit.core.statistics import mean, t_quantile
from winml.modelkit.evaluation.average_precision import OVERLAPS, Ranking

GROUPS = 50
"""Parts that are left out in turn; each costs the metric once."""

Of = Callable[[Sequence[int]], float | None]
"""A metric of the samples with these numbers; None where they do not give one."""


def ratio(parts: Sequence[Any], wholes: Sequence[Sequence[float]]) -> Of:
    """The sum of the parts over the mean of the sums of the wholes; unknown where a part is, which is None."""

    def of(kept: Sequence[int]) -> float | None:
        if any(parts[i] is None for i in kept):
            return None
        whole = mean([math.fsum(series[i] for i in kept) for series in wholes])
        return math.fsum(parts[i] for i in kept) / whole if whole else None

    return of


def perplexity(losses: Sequence[float], wholes: Sequence[Sequence[float]]) -> Of:
    """How many words a model hesitates between: e to the power of the mean loss of a word."""
    of_loss = ratio(losses, wholes)

    def of(kept: Sequence[int]) -> float | None:
        loss = of_loss(kept)
        # A loss of 700 is a share of 1e-304; more has no number.
        return None if loss is None else math.exp(min(loss, 700.0))

    return of


def determination(records: Sequence[Sequence[Sequence[Any]]]) -> Of:
    """R squared, the mean over targets: 1 minus the squared errors over those of the mean of all samples.

    A record has [right, predicted] of each target, where None is no prediction; targets that do not vary are left out.
    """

    def of(kept: Sequence[int]) -> float | None:
        found = []
        if any(predicted is None for i in kept for _, predicted in records[i]):
            return None
        for target in zip(*(records[i] for i in kept), strict=True):
            centre = mean([right for right, _ in target])
            spread = math.fsum((right - centre) ** 2 for right, _ in target)
            if spread:
                found.append(1 - math.fsum((right - predicted) ** 2 for right, predicted in target) / spread)
        return mean(found) if found else None

    return of


def panoptic_quality(records: Sequence[Mapping[str, Sequence[float]]]) -> Of:
    """The mean over classes of the overlap of matched segments over matched ones and half of those that are not.

    A record has, per class, [sum of overlaps, matched, predicted alone, there alone].
    """

    def of(kept: Sequence[int]) -> float | None:
        sums: dict[str, list[float]] = {}
        for index in kept:
            for name, counts in records[index].items():
                total = sums.setdefault(name, [0.0] * 4)
                for place, count in enumerate(counts):
                    total[place] += count
        found = [o / (m + (p + t) / 2) for o, m, p, t in sums.values() if m + p + t]
        return mean(found) if found else None

    return of


def mean_overlap(records: Sequence[Mapping[str, Sequence[float]]]) -> Of:
    """The mean over classes of shared pixels over all pixels that either side gives the class."""

    def of(kept: Sequence[int]) -> float | None:
        sums: dict[str, list[float]] = {}
        for index in kept:
            for name, (shared, either) in records[index].items():
                total = sums.setdefault(name, [0.0, 0.0])
                total[0] += shared
                total[1] += either
        shares = [shared / either for shared, either in sums.values() if either]
        return mean(shares) if shares else None

    return of


def bleu(records: Sequence[Sequence[float]]) -> Of:
    """BLEU of a corpus: the geometric mean of the precisions of 1 to 4 words, less for texts that are too short.

    A record has the hits of each order, then how many there are of each, then both lengths. An order without a hit
    counts as half a hit, the next one as a quarter (mteval-v13a, as sacrebleu has it).
    """

    def of(kept: Sequence[int]) -> float | None:
        *counts, length, right = (math.fsum(column) for column in zip(*(records[i] for i in kept), strict=True))
        orders = len(counts) // 2
        hits, wholes = counts[:orders], counts[orders:]
        if not any(hits) or not all(wholes):
            return 0.0
        smooth, logs = 1.0, []
        for hit, whole in zip(hits, wholes, strict=True):
            smooth *= 1.0 if hit else 2.0
            logs.append(math.log(hit / whole if hit else 1.0 / (smooth * whole)))
        return min(1.0, math.exp(1.0 - right / length)) * math.exp(mean(logs))

    return of


BETA_SQUARED = 4.0
"""Of chrF2: recall counts twice as much as precision."""


def chrf(records: Sequence[Sequence[float]]) -> Of:
    """chrF2 of a corpus: the F-score of the mean precision and recall of 1 to 6 characters.

    A record has, for each order, how many the text has, how many the right one has, and how many they share.
    """

    def of(kept: Sequence[int]) -> float | None:
        return character_score([math.fsum(column) for column in zip(*(records[i] for i in kept), strict=True)])

    return of


def character_score(counts: Sequence[float]) -> float:
    """chrF2 of one record, or of the sum of many."""
    orders = [counts[place : place + 3] for place in range(0, len(counts), 3)]
    known = [(shared / mine, shared / right) for mine, right, shared in orders if mine and right]
    if not known:
        return 0.0
    precision, recall = (mean(values) for values in zip(*known, strict=True))
    below = BETA_SQUARED * precision + recall
    return (1.0 + BETA_SQUARED) * precision * recall / below if below else 0.0


def precision(records: Sequence[Any], *, loose: bool) -> Of:
    """COCO's average precision; `loose` for the least overlap alone."""
    ranking, overlaps = Ranking(records), range(1 if loose else len(OVERLAPS))
    return lambda kept: ranking.precision(kept, overlaps)


def ranked_right(scores: Sequence[Sequence[float]], labels: Sequence[Sequence[int]]) -> Of:
    """The area under the ROC curve: how often a 1 has a higher score than a 0, where equal scores count half."""
    # Ranked once, asked for many parts of the samples: each score with its sample and its label, in ascending order.
    ranked = sorted(
        (score, index, label)
        for index, (mine, theirs) in enumerate(zip(scores, labels, strict=True))
        for score, label in zip(mine, theirs, strict=True)
    )

    def of(kept: Sequence[int]) -> float | None:
        chosen, zeros, ones, right = set(kept), 0, 0, 0.0
        for _, equal in groupby(ranked, key=itemgetter(0)):
            mine = [label for _, index, label in equal if index in chosen]
            high = sum(mine)
            right += high * (zeros + (len(mine) - high) / 2.0)
            ones, zeros = ones + high, zeros + len(mine) - high
        return right / (ones * zeros) if ones and zeros else None

    return of


Totals = Callable[[Sequence[Any]], Mapping[str, float | None]]
"""Metrics by name, of what was noted about some samples."""


class Records(tuple[Any, ...]):
    """What a custom metric noted about each sample, with its function that makes numbers of many."""

    totals: Totals

    def __new__(cls, items: Iterable[Any], totals: Totals) -> Records:
        made = super().__new__(cls, items)
        made.totals = totals
        return made

    def first(self, count: int) -> Records:
        return Records(self[:count], self.totals)


def total(records: Sequence[Any], name: str) -> Of:
    """A metric of the user's own function."""
    assert isinstance(records, Records)
    return lambda kept: records.totals([records[index] for index in kept]).get(name)


def jackknife(of: Of, count: int, *, level: float) -> float | None:
    """Half the width of the interval of a metric, from what it is without each part of the samples in turn.

    None where some part decides whether there is a metric at all. The unit is the sample: words of a text, or boxes of
    an image, go wrong together.
    """
    groups = min(count, GROUPS)
    # An order that has nothing to do with the data's, which may repeat itself. `random()` is the one method that gives
    # the same numbers in every version of Python.
    draw = random.Random(0).random  # noqa: S311 - a choice, not a secret
    drawn = sorted(range(count), key=[draw() for _ in range(count)].__getitem__)
    found = [of(sorted(i for place, i in enumerate(drawn) if place % groups != group)) for group in range(groups)]
    known = [value for value in found if value is not None]
    if len(known) < len(found):
        return None
    centre = mean(known)
    spread = (groups - 1) / groups * math.fsum((value - centre) ** 2 for value in known)
    return t_quantile(0.5 + level / 2.0, groups - 1) * math.sqrt(spread)
