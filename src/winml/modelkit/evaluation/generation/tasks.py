"""THE table of tasks of models that generate text: their metrics, alone and beside a reference."""

from __future__ import annotations

from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.outputs import NoScorer
from winml.modelkit.evaluation.speech_recognition import TASK as SPEECH
from winml.modelkit.evaluation.task import Setting, Task

PERPLEXITY, GENERATION, CHOICE = "perplexity", "text-generation", "multiple-choice"
TRANSLATION, SUMMARY, ANSWER = "translation", "summarization", "text2text-generation"
FOLDER_HINT = (
    "name the folder that generates: one with genai_config.json, or the parts of an encoder and a decoder; "
    "`winml build -m MODEL -o DIR` makes it"
)


def _no_scorer(setting: Setting) -> NoScorer:
    """Samples are scored where they are generated (`generation/judges.py`)."""
    return NoScorer()


_SHARE = (0.0, 1.0)
_TOKENS = (
    Metric("equal_tokens", "ratio", "equal", ("places",), bounds=_SHARE),
    Metric("first_difference", "number", "alike"),
)
_EXACT, _ROUGE = Metric("exact_match", "share", "exact"), Metric("rouge_l", "mean", "rouge_l")
_CHRF, _BLEU = Metric("chrf", "chrf", "chrf"), Metric("bleu", "bleu", "bleu")

TASKS: dict[str, Task] = {
    PERPLEXITY: Task(
        name=PERPLEXITY,
        summary="how well a decoder predicts text",
        metrics=(
            Metric("perplexity", "perplexity", "loss", ("tokens",), lower=True),
            Metric("bits_per_token", "rate", "bits", ("tokens",), lower=True),
            Metric("bits_per_byte", "rate", "bits", ("bytes",), lower=True),
            Metric("next_token_accuracy", "ratio", "right", ("tokens",), bounds=_SHARE),
        ),
        comparison=(
            Metric("perplexity_ratio", "perplexity", "more_loss", ("tokens",), lower=True),
            Metric("kl_divergence", "rate", "divergence", ("places",), lower=True),
            Metric("same_next_token", "ratio", "same", ("places",), bounds=_SHARE),
        ),
        scorer=_no_scorer,
        form="passage",
        labels=False,
        agreement=False,
        options=("stride",),
        generates=True,
    ),
    GENERATION: Task(
        name=GENERATION,
        summary="what a decoder answers to prompts",
        metrics=(_EXACT, _ROUGE, _CHRF, _BLEU),
        comparison=_TOKENS,
        scorer=_no_scorer,
        form="prompt",
        options=("stop", "chat"),
        generates=True,
    ),
    CHOICE: Task(
        name=CHOICE,
        summary="one of several continuations per text, by likelihood",
        metrics=(Metric("accuracy", "share", "top1"), Metric("accuracy_per_byte", "share", "per_byte")),
        scorer=_no_scorer,
        form="options",
        generates=True,
    ),
    TRANSLATION: Task(
        name=TRANSLATION,
        summary="a text in another language, from an encoder and a decoder",
        metrics=(_BLEU, _CHRF),
        comparison=_TOKENS,
        scorer=_no_scorer,
        form="prompt",
        generates=True,
    ),
    SUMMARY: Task(
        name=SUMMARY,
        summary="a text in short, from an encoder and a decoder",
        metrics=(_ROUGE, _CHRF),
        comparison=_TOKENS,
        scorer=_no_scorer,
        form="prompt",
        generates=True,
    ),
    ANSWER: Task(
        name=ANSWER,
        summary="a text for a text, from an encoder and a decoder",
        metrics=(_EXACT, _ROUGE, _CHRF, _BLEU),
        comparison=_TOKENS,
        scorer=_no_scorer,
        form="prompt",
        generates=True,
    ),
    SPEECH.name: Task(
        name=SPEECH.name,
        summary="the text of a recording, from an encoder and a decoder",
        metrics=SPEECH.metrics,
        comparison=_TOKENS,
        scorer=_no_scorer,
        form="speech",
        generates=True,
    ),
}
OF_DECODERS = (PERPLEXITY, GENERATION, CHOICE)
OF_PAIRS = (TRANSLATION, SUMMARY, ANSWER, SPEECH.name)
"""Tasks of an encoder with a decoder."""
