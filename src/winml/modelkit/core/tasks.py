"""THE table of tasks: what a model is for, by the class that saved it; needs no packages.

A task that is in no row is as good: its name follows from the class, and agreement of outputs is its check.
"""

from __future__ import annotations

import re

from winml.modelkit.core.dataclass import dataclass


@dataclass(frozen=True)
class TaskRow:
    """What models for a task are made of."""

    name: str
    takes: str
    gives: str
    endings: tuple[str, ...] = ()
    """How names of their classes in transformers end; also whole names, where the ending says something else."""
    auto_class: str | None = None
    """The class of transformers that loads a model for the task; None where there is none for it."""


_ROWS = (
    # Whole names come before the endings that they have.
    TaskRow(
        "document-question-answering",
        "a page with its words and a question",
        "start and end of the answer",
        ("LayoutLMForQuestionAnswering", "LayoutLMv2ForQuestionAnswering", "LayoutLMv3ForQuestionAnswering"),
        "AutoModelForDocumentQuestionAnswering",
    ),
    TaskRow(
        "visual-question-answering",
        "an image and a question",
        "scores of answers",
        ("ViltForQuestionAnswering", "BlipForQuestionAnswering", "LxmertForQuestionAnswering"),
        "AutoModelForVisualQuestionAnswering",
    ),
    TaskRow(
        "table-question-answering",
        "a table and a question",
        "scores of cells",
        ("TapasForQuestionAnswering",),
        "AutoModelForTableQuestionAnswering",
    ),
    TaskRow(
        "zero-shot-object-detection",
        "an image and texts",
        "scores and boxes",
        (
            "OwlViTForObjectDetection",
            "Owlv2ForObjectDetection",
            "GroundingDinoForObjectDetection",
            "OmDetTurboForObjectDetection",
        ),
        "AutoModelForZeroShotObjectDetection",
    ),
    TaskRow(
        "mask-generation",
        "an image and points",
        "masks",
        (
            "SamModel",
            "SamHQModel",
            "Sam2Model",
            "Sam3Model",
            "EdgeTamModel",
            "EfficientSamModel",
            "EfficientTamModel",
            "Sam3TrackerModel",
        ),
        "AutoModelForMaskGeneration",
    ),
    TaskRow(
        "text-to-audio",
        "text",
        "sound, or its spectrogram",
        ("VitsModel", "FastSpeech2ConformerModel", "FastSpeech2ConformerWithHifiGan", "ForTextToSpeech"),
        "AutoModelForTextToWaveform",
    ),
    TaskRow(
        "zero-shot-image-classification",
        "images and texts",
        "scores of pairs",
        (
            "CLIPModel",
            "SiglipModel",
            "Siglip2Model",
            "AltCLIPModel",
            "ChineseCLIPModel",
            "MetaClip2Model",
            "AlignModel",
            "CLIPSegModel",
            "BlipForImageTextRetrieval",
        ),
        "AutoModelForZeroShotImageClassification",
    ),
    TaskRow("zero-shot-audio-classification", "sounds and texts", "scores of pairs", ("ClapModel",), "AutoModel"),
    TaskRow(
        "text-classification",
        "text",
        "scores of classes",
        ("ForSequenceClassification", "ForNextSentencePrediction"),
        "AutoModelForSequenceClassification",
    ),
    TaskRow(
        "token-classification",
        "text",
        "scores of classes per token",
        ("ForTokenClassification",),
        "AutoModelForTokenClassification",
    ),
    TaskRow(
        "question-answering",
        "a text and a question",
        "start and end of the answer",
        ("ForQuestionAnswering", "ForQuestionAnsweringSimple"),
        "AutoModelForQuestionAnswering",
    ),
    TaskRow(
        "multiple-choice",
        "texts that continue one another",
        "a score per choice",
        ("ForMultipleChoice",),
        "AutoModelForMultipleChoice",
    ),
    TaskRow(
        "fill-mask", "text with a gap", "scores of words", ("ForMaskedLM", "ForPreTraining"), "AutoModelForMaskedLM"
    ),
    TaskRow(
        "text-generation", "text", "scores of the next word", ("ForCausalLM", "LMHeadModel"), "AutoModelForCausalLM"
    ),
    TaskRow(
        "text2text-generation",
        "text",
        "text",
        ("ForConditionalGeneration", "ForTextToText", "MTModel"),
        "AutoModelForSeq2SeqLM",
    ),
    # Models of the same classes, which are used in another way.
    TaskRow("perplexity", "text", "how likely it is", (), "AutoModelForCausalLM"),
    TaskRow("translation", "text", "the text in another language", (), "AutoModelForSeq2SeqLM"),
    TaskRow("summarization", "text", "the text in short", (), "AutoModelForSeq2SeqLM"),
    TaskRow("image-to-text", "an image", "text", ("VisionEncoderDecoderModel",), "VisionEncoderDecoderModel"),
    TaskRow("image-text-to-text", "an image and text", "text", ("ForVisionText2Text",), "AutoModelForImageTextToText"),
    TaskRow(
        "image-classification",
        "an image",
        "scores of classes",
        ("ForImageClassificationWithTeacher", "ForImageClassification"),
        "AutoModelForImageClassification",
    ),
    TaskRow(
        "video-classification",
        "frames",
        "scores of classes",
        ("ForVideoClassification",),
        "AutoModelForVideoClassification",
    ),
    TaskRow(
        "image-segmentation",
        "an image",
        "scores of classes per pixel",
        ("ForSemanticSegmentation", "ForImageSegmentation"),
        "AutoModelForSemanticSegmentation",
    ),
    TaskRow(
        "instance-segmentation",
        "an image",
        "a mask and a class per object",
        ("ForInstanceSegmentation",),
        "AutoModelForInstanceSegmentation",
    ),
    TaskRow(
        "panoptic-segmentation",
        "an image",
        "a mask and a class per segment",
        ("ForUniversalSegmentation", "ForSegmentation", "ForPanopticSegmentation"),
        "AutoModelForUniversalSegmentation",
    ),
    TaskRow(
        "object-detection", "an image", "classes and boxes", ("ForObjectDetection",), "AutoModelForObjectDetection"
    ),
    TaskRow("depth-estimation", "an image", "depth per pixel", ("ForDepthEstimation",), "AutoModelForDepthEstimation"),
    TaskRow(
        "keypoint-detection",
        "an image",
        "a heat map per keypoint",
        ("ForPoseEstimation", "ForKeypointDetection"),
        "AutoModelForKeypointDetection",
    ),
    TaskRow(
        "keypoint-matching", "two images", "matching points", ("ForKeypointMatching",), "AutoModelForKeypointMatching"
    ),
    TaskRow(
        "image-matting", "an image and a trimap", "opacity per pixel", ("ForImageMatting",), "AutoModelForImageMatting"
    ),
    TaskRow(
        "image-to-image",
        "an image",
        "an image",
        ("ForImageSuperResolution", "ForImageToImage"),
        "AutoModelForImageToImage",
    ),
    TaskRow(
        "automatic-speech-recognition",
        "sound",
        "text",
        ("ForCTC", "ForRNNT", "ForTDT", "ForSpeechSeq2Seq", "ForSpeechToText"),
        "AutoModelForCTC",
    ),
    TaskRow(
        "audio-classification",
        "sound",
        "scores of classes",
        ("ForAudioClassification", "ForXVector"),
        "AutoModelForAudioClassification",
    ),
    TaskRow(
        "audio-frame-classification",
        "sound",
        "scores of classes per frame",
        ("ForAudioFrameClassification",),
        "AutoModelForAudioFrameClassification",
    ),
    TaskRow(
        "time-series-forecasting",
        "past values",
        "future values",
        ("ForPrediction",),
        "AutoModelForTimeSeriesPrediction",
    ),
    TaskRow(
        "time-series-classification",
        "values over time",
        "scores of classes",
        ("ForTimeSeriesClassification", "ForClassification"),
    ),
    TaskRow("time-series-regression", "values over time", "numbers", ("ForRegression",)),
    # Models of the same classes as others, which are used in another way.
    TaskRow("sentence-similarity", "two texts", "how alike they are", (), "AutoModel"),
    TaskRow("reranking", "a question and passages", "a score per passage", (), "AutoModelForSequenceClassification"),
    TaskRow("retrieval", "texts", "vectors that find one another", ("ForRetrieval",), "AutoModel"),
    TaskRow(
        "zero-shot-classification", "a text and names of classes", "scores", (), "AutoModelForSequenceClassification"
    ),
    TaskRow("image-feature-extraction", "an image", "vectors", (), "AutoModel"),
    TaskRow("feature-extraction", "anything", "vectors", ("Model", "Encoder", "Backbone"), "AutoModel"),
)
TASKS: dict[str, TaskRow] = {row.name: row for row in _ROWS}
FEATURES = "feature-extraction"
"""The task of a class without a head."""

_HEAD = re.compile(r"For([A-Z]\w*)$")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|\d+[a-z]*")


def find_task(class_name: str) -> str:
    """The task of models that a class saved: its row, or the name of its head for one that is in no row."""
    for row in _ROWS:
        if class_name.endswith(row.endings or ("\0",)):
            return row.name
    head = _HEAD.search(class_name)
    return FEATURES if head is None else "-".join(_WORD.findall(head[1])).lower() or FEATURES
