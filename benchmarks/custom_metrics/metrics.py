"""Metrics of models that no task of `winml eval` knows: each is `--metric metrics.py:NAME`."""

from __future__ import annotations

import math

import numpy as np


def file_type(outputs, sample):
    """Whether the file has the type that its name says; magika's classes are numbers in the data."""
    scores = outputs["target_label"].ravel()
    return {"right_type": bool(scores.argmax() == sample.label), "prediction": int(scores.argmax())}


def pitch(outputs, sample):
    """By how many cents the pitch of the middle of a tone is off, at most an octave, and whether by less than 25."""
    found = outputs["pitch"].ravel()[8:-8]
    cents = np.abs(1200.0 * np.log2(np.maximum(found, 1e-3) / sample.label))
    return {"cents_off": min(float(np.median(cents)), 1200.0), "within_25_cents": float(np.mean(cents < 25.0))}


pitch.lower_is_better = ("cents_off",)


def quality(outputs, sample):
    """What DNSMOS says about the whole recording, beside the ratio of speech and noise in it."""
    return float(outputs["Identity:0"].ravel()[2]), float(sample.label)


def _rank_correlation(records):
    """How well the order by quality is the order by noise; None where one of them does not vary."""
    said, noise = (np.argsort(np.argsort(column)) for column in zip(*records, strict=True))
    if len(records) < 3 or np.ptp(noise) == 0:
        return None
    value = float(np.corrcoef(said, noise)[0, 1])
    return value if math.isfinite(value) else None


quality.name = "rank_correlation"
quality.total = _rank_correlation
quality.bounds = (-1, 1)
