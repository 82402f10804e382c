"""How near a text is to one that was expected: BLEU, chrF2, ROUGE-L, equal texts (docs/decisions/0030-text-metrics.md).

What a text adds to a metric of the corpus is a record; `corpus.bleu` and `corpus.chrf` make numbers of many.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from winml.modelkit.evaluation.corpus import character_score

WORDS, CHARACTERS = 4, 6
"""The longest run of words that BLEU counts, and of characters that chrF does."""
_ENTITIES = {"&quot;": '"', "&amp;": "&", "&lt;": "<", "&gt;": ">"}
_MARKS = (
    (re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])"), r" \1 "),
    (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
"""Where mteval-v13a splits words: around marks, and around points and commas that are not inside a number."""
_WORD = re.compile(r"[^\W_]+")


def split_words(text: str) -> list[str]:
    """The words of a text as mteval-v13a splits them, which is what BLEU is usually counted in."""
    line = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for name, mark in _ENTITIES.items():
        line = line.replace(name, mark)
    line = f" {line} "
    for pattern, spaced in _MARKS:
        line = pattern.sub(spaced, line)
    return line.split()


def bleu_record(text: str, right: Sequence[str]) -> list[float]:
    """Hits and number of runs of 1 to 4 words, the length of the text, and that of the nearest right one."""
    mine, others = split_words(text), [split_words(one) for one in right]
    hits, wholes = [], []
    for order in range(1, WORDS + 1):
        found = _runs(mine, order)
        most: Counter[tuple[str, ...]] = Counter()
        for other in others:
            most |= _runs(other, order)
        hits.append(float((found & most).total()))
        wholes.append(float(found.total()))
    nearest = min((abs(len(other) - len(mine)), len(other)) for other in others)[1]
    return [*hits, *wholes, float(len(mine)), float(nearest)]


def chrf_record(text: str, right: Sequence[str]) -> list[float]:
    """For runs of 1 to 6 characters: those of the text, those of the right one that is nearest, and the shared."""
    mine = "".join(text.split())
    records = []
    for one in right:
        other, record = "".join(one.split()), list[float]()
        for order in range(1, CHARACTERS + 1):
            found, there = _runs(mine, order), _runs(other, order)
            record += [float(found.total() if there else 0), float(there.total()), float((found & there).total())]
        records.append(record)
    return max(records, key=character_score)


def rouge_l(text: str, right: Sequence[str]) -> float:
    """The F-score of the longest words in common that keep their order, with the right text that is nearest."""
    mine = _WORD.findall(text.lower())
    return max(_common_score(mine, _WORD.findall(one.lower())) for one in right)


def is_exact(text: str, right: Sequence[str]) -> bool:
    """Whether the text is one of the right ones; spaces around it and runs of spaces make no difference."""
    return " ".join(text.split()) in {" ".join(one.split()) for one in right}


def _runs(items: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(items[place : place + order]) for place in range(len(items) - order + 1))


def _common_score(mine: Sequence[str], other: Sequence[str]) -> float:
    common = _longest_common(mine, other)
    return 2.0 * common / (len(mine) + len(other)) if common else 0.0


def _longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    row = [0] * (len(second) + 1)
    for item in first:
        before = 0
        for place, other in enumerate(second, 1):
            before, row[place] = row[place], before + 1 if item == other else max(row[place], row[place - 1])
    return row[-1]
