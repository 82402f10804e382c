"""A precision of a pair against float32, without labels: `pair_agreement.py FP32 OTHER`.

Both builds answer the same inputs, and say how likely the same texts of random tokens are: the share of equal tokens,
the ratio of perplexities and the divergence of the next token. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from winml.modelkit.core.target import Target
from winml.modelkit.evaluation.generation.scoring import log_softmax
from winml.modelkit.graph.inputs import Arrays
from winml.modelkit.session.composite import Composite
from winml.modelkit.session.generation.parts_loop import PairGenerator
from winml.modelkit.session.part_texts import PairText

TEXTS, LENGTH, TOKENS = 8, 12, 32
CPU = Target("cpu", "cpu")


def score(composite: Composite, inputs: Arrays, text: np.ndarray, first: int) -> np.ndarray:
    """Logarithms of the shares of every next token, along a text that is given."""
    reader = PairText(composite)
    logits = [reader.read(inputs, first)]
    logits += [reader.step(text[:, place : place + 1]) for place in range(text.shape[1] - 1)]
    found: np.ndarray = log_softmax(np.concatenate(logits, axis=1)[0].astype(np.float32))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reference")
    parser.add_argument("candidate")
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    equal, ratios, lost, same = [], [], [], []
    with PairGenerator(asked.reference, target=CPU) as right, PairGenerator(asked.candidate, target=CPU) as other:
        tokens = min(TOKENS, (right.context_length or TOKENS) - 1)
        for seed in range(TEXTS):
            inputs = right.draw_inputs(batch=1, length=LENGTH, seed=seed)
            answers = [one.composite.generate(inputs, new_tokens=tokens) for one in (right, other)]
            longest = max(answer.shape[1] for answer in answers)
            shortest = min(answer.shape[1] for answer in answers)
            equal.append(float((answers[0][:, :shortest] == answers[1][:, :shortest]).sum()) / longest)
            text = rng.integers(5, right.require_vocabulary(), (1, tokens))
            first = right.composite.check_pair(inputs, tokens)
            theirs, mine = (score(one.composite, inputs, text, first) for one in (right, other))
            places = np.arange(tokens)
            ratios.append(float((theirs[places, text[0]] - mine[places, text[0]]).mean()))
            lost.append(float((np.exp(theirs) * (theirs - mine)).sum(axis=-1).mean()))
            same.append(float((theirs.argmax(axis=-1) == mine.argmax(axis=-1)).mean()))
    found = {
        "perplexity_ratio": float(np.exp(np.mean(ratios))),
        "kl_divergence": max(float(np.mean(lost)), 0.0),
        "same_next_token": float(np.mean(same)),
        "equal_tokens": float(np.mean(equal)),
    }
    print(json.dumps({name: {"value": value} for name, value in found.items()}))


if __name__ == "__main__":
    main()
