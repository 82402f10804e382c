"""From the outputs of a model to an answer in words: one function for each kind of answer, by the task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.tasks import FEATURES
from winml.modelkit.data import processor
from winml.modelkit.evaluation import zero_shot
from winml.modelkit.evaluation.classification import USUAL as CLASS_OUTPUTS
from winml.modelkit.evaluation.embeddings import find_embedder
from winml.modelkit.evaluation.entities import entities, has_prefix
from winml.modelkit.evaluation.image_features import USUAL as IMAGE_OUTPUTS
from winml.modelkit.evaluation.image_features import image_vector
from winml.modelkit.evaluation.labels import CONFIG, class_names
from winml.modelkit.evaluation.matching import Floats, sigmoid, softmax
from winml.modelkit.evaluation.object_detection import BOXES, LOGITS, SHOWN, find_surest, read_rows, scale_boxes
from winml.modelkit.evaluation.question_answering import answer_scorer
from winml.modelkit.evaluation.segmentation import upsample
from winml.modelkit.evaluation.speech_recognition import vocabulary
from winml.modelkit.evaluation.task import Outputs, Setting, plain
from winml.modelkit.serving.prediction import (
    Answer,
    Area,
    Areas,
    Boxes,
    Classes,
    Embedding,
    Entities,
    FoundBox,
    FoundEntity,
    GapWords,
    GeneratedText,
    OutputFacts,
    OutputsOnly,
    ScoredLabel,
    Scores,
    Similarity,
    Span,
)
from winml.modelkit.serving.preparing import Prepared
from winml.modelkit.session.output_arrays import as_array

FIRST = 8
"""Values of an output that are shown."""
_NEAR_ONE = 1e-3
_MOST_PIXELS = 4096 * 4096
"""Areas of a larger image are counted at the size of the output."""


@dataclass(frozen=True)
class Decoding:
    """What is known of a model when its outputs are read."""

    setting: Setting
    top: int
    """Labels that are shown."""

    def pick(self, *names: str) -> str:
        return self.setting.pick(*names)[0]

    @property
    def folder(self) -> Path | None:
        return self.setting.folder

    def name_classes(self) -> Mapping[int, str]:
        path = processor.find(self.folder, CONFIG)
        if path is None:
            return {}
        class_names(self.folder)  # raises for what is no table of names
        named = processor.read_object(path).get("id2label")
        return {int(number): name for number, name in (named or {}).items()}

    def threshold(self) -> float:
        text = self.setting.options.get("threshold")
        try:
            found = SHOWN if text is None else float(text)
        except ValueError:
            found = -1.0
        if not 0.0 <= found <= 1.0:
            raise RequestError(f"`threshold` must be a number from 0 to 1 but got `{text}`")
        return found


Decoder = Callable[[Decoding, Prepared, Sequence[Outputs]], Answer]


def decode(decoding: Decoding, task: str | None, prepared: Prepared, runs: Sequence[Outputs]) -> Answer:
    """The answer of a task; outputs alone, with the reason, where there is none."""
    if task is None:
        return OutputsOnly(reason="the task of the model is unknown; `--task` names it")
    decoder = DECODERS.get(task)
    if decoder is None:
        return OutputsOnly(reason=f"task `{task}` has no answer in words here")
    if not prepared.is_single:
        return OutputsOnly(reason="the arrays hold a batch of several inputs, and an answer in words is about one")
    if not all(_is_finite(value) for run in runs for value in run.values()):
        return OutputsOnly(reason="an output holds NaN or infinite values, so that there is no answer")
    return decoder(decoding, prepared, runs)


def _is_finite(value: Any) -> bool:
    array = as_array(value)
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _score(numbers: Floats, *, several: bool) -> tuple[Floats, Scores]:
    """Scores of classes: the numbers themselves where they are shares of one already."""
    if numbers.min() >= 0.0 and abs(float(numbers.sum()) - 1.0) < _NEAR_ONE:
        return numbers, "as given"
    return (sigmoid(numbers), "sigmoid") if several else (softmax(numbers), "softmax")


def _rank(scores: Floats, names: Mapping[int, str], top: int) -> tuple[ScoredLabel, ...]:
    order = np.argsort(-scores, kind="stable")[:top]
    return tuple(
        ScoredLabel(label=names.get(int(number), str(number)), number=int(number), score=float(scores[number]))
        for number in order
    )


def _takes_several(folder: Path | None) -> bool:
    path = processor.find(folder, CONFIG)
    return path is not None and processor.read_object(path).get("problem_type") == "multi_label_classification"


def _decode_classes(decoding: Decoding, prepared: Prepared, runs: Sequence[Outputs]) -> Answer:
    output = decoding.pick(*CLASS_OUTPUTS)
    found = runs[0][output]
    names = decoding.name_classes()
    if isinstance(found, list):  # a map for each row, as ZipMap of scikit-learn writes it
        if len(found) != 1 or not isinstance(found[0], dict):
            return OutputsOnly(reason=f"output `{output}` is a sequence of {len(found)} values, not one per class")
        classes = sorted(found[0])
        numbers = np.asarray([found[0][name] for name in classes], np.float64)
        return Classes(
            labels=_rank(numbers, dict(enumerate(map(str, classes))), decoding.top),
            classes=len(classes),
            scores="as given",
        )
    numbers = plain(found)
    if numbers.size < 2:
        return OutputsOnly(reason=f"output `{output}` has {numbers.size} numbers, not one per class")
    scores, how = _score(numbers, several=_takes_several(decoding.folder))
    return Classes(labels=_rank(scores, names, decoding.top), classes=numbers.size, scores=how)


def _decode_prompts(task: Any) -> Decoder:
    def decode_prompts(decoding: Decoding, prepared: Prepared, runs: Sequence[Outputs]) -> Answer:
        scorer = task.scorer(decoding.setting)
        numbers = np.concatenate([scorer.scores_of(run) for run in runs])
        classes = prepared.sample.classes
        if len(numbers) != len(classes):
            raise DataError(f"output `{scorer.output}` has {len(numbers)} numbers for {len(classes)} classes")
        ranked = _rank(softmax(numbers), dict(enumerate(classes)), decoding.top)
        return Classes(labels=ranked, classes=len(classes), scores="softmax")

    return decode_prompts


def _decode_entities(decoding: Decoding, prepared: Prepared, runs: Sequence[Outputs]) -> Answer:
    output = decoding.pick("logits")
    logits = np.asarray(runs[0][output], np.float64)
    if prepared.encoding is None or prepared.text is None:
        return OutputsOnly(reason="ready arrays do not say which words their tokens are of; give the text")
    if logits.ndim != 3 or logits.shape[1] < len(prepared.encoding.ids):
        raise DataError(f"output `{output}` has the shape {list(logits.shape)}, not batch, token and class")
    shares, names = softmax(logits[0]), decoding.name_classes()
    words = _first_tokens(prepared.encoding)
    tags = [names.get(int(shares[token].argmax()), str(int(shares[token].argmax()))) for token, _ in words]
    scores = [float(shares[token].max()) for token, _ in words]
    spans = [span for _, span in words]
    if any(map(has_prefix, tags)) or any(map(has_prefix, names.values())):
        found = sorted(entities(tags), key=lambda one: one[1])
    else:
        found = [(tag, place, place) for place, tag in enumerate(tags)]
    return Entities(
        entities=tuple(
            FoundEntity(
                label=label,
                text=prepared.text[spans[first][0] : spans[last][1]],
                start=spans[first][0],
                end=spans[last][1],
                score=float(np.mean(scores[first : last + 1])),
            )
            for label, first, last in found
        )
    )


def _first_tokens(encoding: Any) -> list[tuple[int, tuple[int, int]]]:
    """The first token of every word, with the place of the word in the text."""
    found: dict[int, tuple[int, tuple[int, int]]] = {}
    for token, word in enumerate(encoding.word_ids):
        if word is None or encoding.special_tokens_mask[token]:
            continue
        start, end = encoding.offsets[token]
        first, span = found.get(word, (token, (start, end)))
        found[word] = first, (min(span[0], start), max(span[1], end))
    return [found[word] for word in sorted(found)]


def _decode_span(decoding: Decoding, prepared: Prepared, runs: Sequence[Outputs]) -> Answer:
    if prepared.text is None:
        return OutputsOnly(reason="ready arrays do not hold the words of their tokens; give question and context")
    found = answer_scorer(decoding.setting).find_answer(prepared.sample.spans, runs)
    if found is None:
        return OutputsOnly(reason="no part of the context can be an answer")
    score, start, end = found
    return Span(text=prepared.text[start:end], start=start, end=end, score=score)


def _decode_gaps(decoding: Decoding, prepared: Prepared, runs: Sequence[Outputs]) -> Answer:
    output = decoding.pick("logits", "prediction_logits")
    logits = np.asarray(runs[0][output], np.float64)
    if not prepared.gaps:
        return OutputsOnly(reason="ready arrays do not say where the gap is; give the text")
    if logits.ndim != 3 or logits.shape[1] <= max(prepared.gaps):
        raise DataError(f"output `{output}` has the shape {list(logits.shape)}, not batch, token and word")
    gaps = []
    for place in prepared.gaps:
        shares = softmax(logits[0, place])
        order = [int(number) for number in np.argsort(-shares, kind="stable")[: decoding.top]]
        words = {number: str(prepared.tokenizer.decode([number])).strip() for number in order}
        named = {number: word or str(prepared.tokenizer.id_to_token(number)) for number, word in words.items()}
        gaps.append(_rank(shares, named, decoding.top))
    return GapWords(gaps=tuple(gaps))


def _decode_boxes(decoding: Decoding, prepared: Prepared, runs: Sequence[Outputs]) -> Answer:
    missing = [name for name in (LOGITS, BOXES) if name not in runs[0]]
    if missing:
        return OutputsOnly(reason=f"boxes are read from the outputs {LOGITS} and {BOXES}, which the model has not")
    size = prepared.sample.size
    if size is None:
        return OutputsOnly(reason="ready arrays do not hold the size of the image; give the image")
    logits, boxes = (read_rows(runs[0], name) for name in (LOGITS, BOXES))
    names = dict(enumerate(prepared.sample.classes)) or decoding.name_classes()
    queries, numbers, scores = find_surest(logits, apart=len(names) == logits.shape[-1])
    placed, least = scale_boxes(boxes, size)[queries], decoding.threshold()
    order = sorted(np.flatnonzero(scores >= least), key=lambda place: -scores[place])
    return Boxes(
        boxes=tuple(
            FoundBox(
                label=names.get(int(numbers[place]), str(int(numbers[place]))),
                number=int(numbers[place]),
                score=float(scores[place]),
                box=_four(placed[place]),
            )
            for place in order
        ),
        threshold=least,
    )


def _four(box: Floats) -> tuple[float, float, float, float]:
    left, top, width, height = (float(edge) for edge in box)
    return left, top, width, height


def _decode_areas(decoding: Decoding, prepared: Prepared, runs: Sequence[Outputs]) -> Answer:
    output = decoding.pick("logits")
    logits = np.asarray(runs[0][output], np.float32)
    if logits.ndim != 4:
        raise DataError(f"output `{output}` has {logits.ndim} dimensions; areas need batch, class, height and width")
    size = prepared.sample.size
    grown = logits[0]
    if size is not None and size[0] * size[1] * logits.shape[1] <= _MOST_PIXELS:
        grown = upsample(logits[0], size)
    predicted = grown.argmax(axis=0)
    shares = np.bincount(predicted.ravel(), minlength=logits.shape[1]) / predicted.size
    names = decoding.name_classes()
    order = [int(number) for number in np.argsort(-shares, kind="stable") if shares[number] > 0]
    return Areas(
        areas=tuple(Area(label=names.get(n, str(n)), number=n, share=float(shares[n])) for n in order),
    )


def _decode_speech(decoding: Decoding, prepared: Prepared, runs: Sequence[Outputs]) -> Answer:
    output = decoding.pick("logits")
    logits = np.asarray(runs[0][output])
    if logits.ndim != 3:
        raise DataError(f"output `{output}` has {logits.ndim} dimensions; speech needs batch, moment and token")
    return GeneratedText(text=vocabulary(decoding.folder).text(logits[0].argmax(axis=-1).tolist()))


def _describe_vector(vector: npt.NDArray[np.float64]) -> Embedding:
    first = tuple(float(value) for value in vector[:FIRST])
    return Embedding(size=vector.size, norm=float(np.linalg.norm(vector)), first=first)


def _decode_embedding(decoding: Decoding, prepared: Prepared, runs: Sequence[Outputs]) -> Answer:
    inputs = prepared.sample.inputs
    if any(getattr(array, "ndim", 0) == 4 for array in inputs.values()):
        return _decode_image_features(decoding, prepared, runs)
    return _describe_vector(find_embedder(decoding.setting).embed(runs[0], inputs))


def _decode_image_features(decoding: Decoding, prepared: Prepared, runs: Sequence[Outputs]) -> Answer:
    output = decoding.pick(*IMAGE_OUTPUTS)
    return _describe_vector(image_vector(np.asarray(runs[0][output], np.float64)))


def _decode_similarity(decoding: Decoding, prepared: Prepared, runs: Sequence[Outputs]) -> Answer:
    if len(runs) == 1:
        return _decode_embedding(decoding, prepared, runs)
    embedder = find_embedder(decoding.setting)
    given = (prepared.sample.inputs, *prepared.sample.more)
    first, second = (embedder.unit(run, inputs) for run, inputs in zip(runs, given, strict=True))
    return Similarity(cosine=None if first is None or second is None else float(first @ second))


DECODERS: dict[str, Decoder] = {
    "image-classification": _decode_classes,
    "text-classification": _decode_classes,
    "audio-classification": _decode_classes,
    "video-classification": _decode_classes,
    "tabular-classification": _decode_classes,
    "time-series-classification": _decode_classes,
    "zero-shot-image-classification": _decode_prompts(zero_shot.IMAGE_TASK),
    "zero-shot-classification": _decode_prompts(zero_shot.TEXT_TASK),
    "token-classification": _decode_entities,
    "question-answering": _decode_span,
    "fill-mask": _decode_gaps,
    "object-detection": _decode_boxes,
    "zero-shot-object-detection": _decode_boxes,
    "image-segmentation": _decode_areas,
    "automatic-speech-recognition": _decode_speech,
    "sentence-similarity": _decode_similarity,
    "retrieval": _decode_embedding,
    "image-feature-extraction": _decode_image_features,
    FEATURES: _decode_embedding,
}
"""THE table of answers: task -> how its outputs are read. A task that is not here is answered by its outputs alone."""


def describe_outputs(run: Outputs) -> tuple[OutputFacts, ...]:
    """Every output of a run by name, type, shape, range and first values."""
    return tuple(_describe_output(name, as_array(value)) for name, value in run.items())


def _describe_output(name: str, array: npt.NDArray[Any]) -> OutputFacts:
    kind = array.dtype.kind
    first = tuple(_plain_value(value) for value in array.reshape(-1)[:FIRST].tolist())
    if kind not in "fiub" or not array.size:
        word = "str" if kind in "OUS" else str(array.dtype)
        return OutputFacts(
            name=name, type=word, shape=array.shape, lowest=None, highest=None, not_finite=0, first=first
        )
    finite = array[np.isfinite(array)] if kind == "f" else array
    return OutputFacts(
        name=name,
        type=str(array.dtype),
        shape=array.shape,
        lowest=float(finite.min()) if finite.size else None,
        highest=float(finite.max()) if finite.size else None,
        not_finite=array.size - finite.size,
        first=first,
    )


def _plain_value(value: Any) -> float | int | bool | str | None:
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if isinstance(value, bool | int | str) else str(value)
