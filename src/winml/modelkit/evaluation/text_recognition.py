"""Text of a given alphabet, read off an image or a recording by a CTC model: characters and words that are wrong."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.core.limits import read_sample
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.speech_recognition import word_errors
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task
from winml.modelkit.store import digest

USUAL = ("logits",)
ALPHABET, BLANK = "alphabet", "blank"
_HINT = f"`--task-option {ALPHABET}=FILE` (a character per line, or a JSON list), or the characters themselves"


def read_alphabet(given: str) -> tuple[list[str], str]:
    """The characters in the order of the classes, and how to name where they are from."""
    path = Path(given)
    if not _is_file(path):
        if len(given) < 2:
            raise RequestError(f"`{ALPHABET}` must be a file or at least two characters but got `{given}`", hint=_HINT)
        return list(given), "as given"
    content = read_sample(path, f"`{path}`")
    try:
        text = content.decode("utf-8-sig")
        found = parse_json(text) if path.suffix.lower() == ".json" else text.splitlines()
    except ValueError as error:
        raise DataError(f"`{path}` is not an alphabet: {error}", hint=_HINT) from error
    if not isinstance(found, list) or len(found) < 2 or not all(isinstance(one, str) for one in found):
        raise DataError(f"`{path}` must hold a list of at least two characters", hint=_HINT)
    return found, f"`{path.name}`, {digest.of_bytes(content)}"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False  # characters that are no name


class TextScorer:
    """Judges the text of the likeliest class at each place, by the alphabet that the user gave."""

    def __init__(self, setting: Setting) -> None:
        self._output, self._note = setting.pick(*USUAL)
        given = setting.options.get(ALPHABET)
        if given is None:
            raise RequestError("text recognition needs the alphabet of the model", hint=_HINT)
        self._characters, self._source = read_alphabet(given)
        self._blank = _read_blank(setting.options.get(BLANK))
        self._classes: list[str] = []
        self._unknown = 0
        self._noted = ""

    @property
    def notes(self) -> tuple[str, ...]:
        unknown = (
            f"{self._unknown} labels have characters that the alphabet lacks, which the model cannot read"
            if self._unknown
            else None
        )
        return tuple(note for note in (self._note, self._noted, unknown) if note)

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        if not isinstance(sample.label, str) or not sample.label.strip():
            raise DataError(f"the label of {sample.where} must be the text but is {sample.label!r:.80}")
        if len(runs) != 1:
            raise DataError(f"{sample.where} takes {len(runs)} runs; text is read from one")
        logits = np.asarray(runs[0][self._output])
        if logits.ndim != 3 or 1 not in logits.shape[:2]:
            raise DataError(
                f"output `{self._output}` has shape {list(logits.shape)}; text needs one of the batch 1, with places "
                "and classes",
                hint="name the output with the classes: `--output-name NAME`",
            )
        rows = logits.reshape(-1, logits.shape[2])
        self._classes = self._classes or self._name_classes(rows.shape[1])
        usable = bool(np.isfinite(rows).all())
        text = "".join(self._classes[c] for c, _ in groupby(rows.argmax(axis=-1).tolist())) if usable else ""
        return self._compare(_normalize(text), _normalize(sample.label), usable=usable)

    def _compare(self, text: str, right: str, *, usable: bool) -> Scored:
        self._unknown += any(one not in self._classes for one in right if one != " ")
        characters, words = word_errors(text, right), word_errors(text.split(), right.split())
        values = {
            "character_errors": characters,
            "right_characters": len(right) - characters,
            "characters": len(right),
            "word_errors": words,
            "right_words": len(right.split()) - words,
            "words": len(right.split()),
            "exact": text == right,
        }
        return Scored({name: float(value) for name, value in values.items()}, text if usable else None)

    def _name_classes(self, count: int) -> list[str]:
        """What each class stands for: the alphabet with the blank among it, and a space where one class is left."""
        given = self._characters
        missing = count - len(given)
        if missing not in (0, 1, 2):
            raise DataError(
                f"output `{self._output}` has {count} classes but the alphabet ({self._source}) has {len(given)} "
                "characters",
                hint="the alphabet has one character for each class, without the blank",
            )
        blank = self._blank if self._blank >= 0 else count + self._blank
        if not 0 <= blank < count:
            raise RequestError(f"`{BLANK}` must be the number of one of {count} classes but got {self._blank}")
        # PaddleOCR adds the space to the characters of its file, as the last one.
        spaced = [*given, " "] if missing == 2 else list(given)
        named = [*spaced[:blank], "", *(spaced[blank + 1 :] if missing == 0 else spaced[blank:])]
        last = ", and the last class is the space" if missing == 2 else ""
        self._noted = f"alphabet of {len(given)} characters ({self._source}); class {blank} is the blank{last}"
        return named


def _normalize(text: str) -> str:
    """Composed characters, and one space between words."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _read_blank(text: str | None) -> int:
    try:
        return 0 if text is None else int(text)
    except ValueError:
        raise RequestError(f"`{BLANK}` must be the number of a class, -1 for the last, but got `{text}`") from None


TASK = Task(
    name="text-recognition",
    summary="the text of an image or a recording, from a CTC model with a given alphabet",
    metrics=(
        Metric("character_accuracy", "ratio", "right_characters", ("characters",)),
        Metric("cer", "ratio", "character_errors", ("characters",), lower=True),
        Metric("word_accuracy", "ratio", "right_words", ("words",)),
        Metric("wer", "ratio", "word_errors", ("words",), lower=True),
        Metric("exact_match", "share", "exact"),
    ),
    scorer=TextScorer,
    options=(ALPHABET, BLANK),
)
