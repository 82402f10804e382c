"""The tables of what is known of Hugging Face architectures; needs no packages.

A family says what a model's inputs are made of. The task comes from the class that saved the model, which its config
names; a model may be exported for another task of its family.
"""

from __future__ import annotations

from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.tasks import find_task

Modality = Literal["text", "image", "audio", "features", "image-text"]
Shape = Literal["single", "encoder-decoder", "decoder", "dual"]
"""How a model is taken apart: not at all, for generating, or into its two encoders."""


@dataclass(frozen=True)
class Family:
    """What models with one `model_type` take."""

    modality: Modality
    shape: Shape = "single"
    token_types: bool = False
    """Whether the tokenizer of the family gives token types."""
    proven: bool = False
    """Whether tests export a model of the family and compare it with PyTorch."""


_TEXT = Family("text")
_TOKEN_TYPES = Family("text", token_types=True)
_IMAGE = Family("image")
_DECODER = Family("text", "decoder")
_TEXT_TO_TEXT = Family("text", "encoder-decoder")

FAMILIES: dict[str, Family] = {
    "resnet": Family("image", proven=True),
    "convnext": Family("image", proven=True),
    "mobilevit": Family("image", proven=True),
    "vit": Family("image", proven=True),
    "dinov2": Family("image", proven=True),
    "swin": Family("image", proven=True),
    "segformer": Family("image", proven=True),
    "detr": Family("image", proven=True),
    "yolos": Family("image", proven=True),
    "bert": Family("text", token_types=True, proven=True),
    "distilbert": Family("text", proven=True),
    "roberta": Family("text", proven=True),
    "clip": Family("image-text", "dual", proven=True),
    "wav2vec2": Family("audio", proven=True),
    "gpt2": Family("text", "decoder", proven=True),
    "qwen2": Family("text", "decoder", proven=True),
    "bart": Family("text", "encoder-decoder", proven=True),
    "marian": Family("text", "encoder-decoder", proven=True),
    "t5": Family("text", "encoder-decoder", proven=True),
    "whisper": Family("features", "encoder-decoder", proven=True),
    "vision-encoder-decoder": Family("image", "encoder-decoder", proven=True),
    "albert": _TOKEN_TYPES,
    "beit": _IMAGE,
    "camembert": _TEXT,
    "convnextv2": _IMAGE,
    "deberta": _TEXT,
    "deberta-v2": _TEXT,
    "deit": _IMAGE,
    "efficientnet": _IMAGE,
    "electra": _TOKEN_TYPES,
    "ernie4_5": _DECODER,
    "gemma": _DECODER,
    "gemma2": _DECODER,
    "gemma3_text": _DECODER,
    "gpt_neo": _DECODER,
    "gpt_neox": _DECODER,
    "granite": _DECODER,
    "hubert": Family("audio"),
    "llama": _DECODER,
    "mbart": _TEXT_TO_TEXT,
    "mistral": _DECODER,
    "mobilebert": _TOKEN_TYPES,
    "mobilenet_v2": _IMAGE,
    "mpnet": _TEXT,
    "mt5": _TEXT_TO_TEXT,
    "nemotron": _DECODER,
    "olmo": _DECODER,
    "olmo2": _DECODER,
    "opt": _DECODER,
    "pegasus": _TEXT_TO_TEXT,
    "phi": _DECODER,
    "phi3": _DECODER,
    "qwen2_moe": _DECODER,
    "qwen3": _DECODER,
    "regnet": _IMAGE,
    "siglip": Family("image-text", "dual"),
    "smollm3": _DECODER,
    "stablelm": _DECODER,
    "starcoder2": _DECODER,
    "swinv2": _IMAGE,
    "xlm-roberta": _TEXT,
}
"""By the `model_type` of config.json."""

_BY_MODALITY: dict[Modality, tuple[str, ...]] = {
    "text": ("text-classification", "token-classification", "question-answering", "fill-mask", "feature-extraction"),
    "image": ("image-classification", "image-segmentation", "object-detection", "feature-extraction"),
    "audio": ("automatic-speech-recognition", "audio-classification", "feature-extraction"),
    "features": ("automatic-speech-recognition", "feature-extraction"),
    "image-text": ("zero-shot-image-classification", "feature-extraction"),
}
_SAME_INPUTS = (
    "sentence-similarity",
    "reranking",
    "retrieval",
    "zero-shot-classification",
    "image-feature-extraction",
)
"""Tasks of models that were saved for another one, which take the same inputs."""
_GENERATING: dict[Shape, str] = {"decoder": "text-generation", "encoder-decoder": "text2text-generation"}

WHOLE = "model"
"""The part that is the model as its class runs it."""
DECODER = "decoder"
"""The part that is a decoder with its cache in one graph: it takes a prompt, and then one token after another."""
PARTS: dict[Shape, tuple[str, ...]] = {
    "single": (WHOLE,),
    "encoder-decoder": ("encoder", "prefill", "decode"),
    "decoder": ("prefill", "decode"),
    "dual": (WHOLE, "image", "text"),
}
"""What is exported of a model for the task that it was made for; the whole can always be had by name."""


def task_of(architecture: str, family: Family | None) -> str:
    """The task of a class, with the modality where the name leaves it open."""
    task = find_task(architecture)
    if family is None:
        return task
    if family.modality == "features" and task == "text2text-generation":
        return "automatic-speech-recognition"
    if family.modality == "audio" and task == "text-classification":
        return "audio-classification"
    return "zero-shot-image-classification" if family.shape == "dual" and task == "feature-extraction" else task


def tasks_of(family: Family) -> tuple[str, ...]:
    """The tasks that models of a family come with."""
    if family.shape == "encoder-decoder" and family.modality == "image":
        return ("image-to-text",)
    generating = _GENERATING.get(family.shape)
    fitting = _BY_MODALITY[family.modality]
    return fitting if generating is None or family.modality != "text" else (generating, *fitting)


def covers(family: Family | None, task: str) -> bool:
    """Whether the table has the inputs of a family for a task; those of other heads are derived from their class."""
    return family is not None and task in (*tasks_of(family), *_SAME_INPUTS)


def parts_of(family: Family, task: str) -> tuple[str, ...]:
    """The parts that a model is exported as for a task; one that does not generate stays whole."""
    generates = task in ("text-generation", "text2text-generation", "image-to-text", "automatic-speech-recognition")
    if family.shape in _GENERATING and not generates:
        return (WHOLE,)
    return PARTS[family.shape]


def has_decoder(family: Family | None, task: str) -> bool:
    """Whether a model can be exported as one graph with a cache."""
    return family is not None and family.shape == "decoder" and task == "text-generation"
