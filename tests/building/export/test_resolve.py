"""From a config.json to an export section; nothing of torch is needed."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from winml.modelkit.building.export import families, resolve
from winml.modelkit.building.export.describe import describe
from winml.modelkit.building.export.folder import ModelFolder
from winml.modelkit.building.export.resolve import ExportOptions
from winml.modelkit.core.config import ExportSection
from winml.modelkit.core.errors import ModelFileError, RequestError
from winml.modelkit.core.values import read, to_json

BERT = {
    "model_type": "bert", "architectures": ["BertForSequenceClassification"], "vocab_size": 100, "type_vocab_size": 2,
    "max_position_embeddings": 64,
}  # fmt: skip
GPT2 = {
    **BERT, "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 1, "n_head": 2, "n_embd": 8,
}  # fmt: skip


def folder(path: Path, config: dict[str, Any], **files: Any) -> ModelFolder:
    """A model folder with two tensors and these JSON files."""
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    header = json.dumps({"a": {"dtype": "F32", "shape": [3, 4]}, "b": {"dtype": "F16", "shape": [5]}}).encode()
    (path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    for name, value in files.items():
        (path / f"{name}.json").write_text(json.dumps(value))
    return ModelFolder(path)


def test_inputs_come_from_task_and_config(tmp_path: Path) -> None:
    section = resolve.resolve(folder(tmp_path / "m", BERT), ExportOptions())
    assert section.task == "text-classification"
    assert [(entry.name, entry.shape) for entry in section.inputs] == [
        ("input_ids", ("batch", "sequence")),
        ("attention_mask", ("batch", "sequence")),
        ("token_type_ids", ("batch", "sequence")),
    ]
    assert section.sizes == {"batch": 2, "sequence": 16}
    assert section.inputs[0].high == 99
    assert read(ExportSection, to_json(section), "export") == section


@pytest.mark.parametrize(
    ("architecture", "model_type", "task"),
    [
        ("RobertaForTokenClassification", "roberta", "token-classification"),
        ("GPT2LMHeadModel", "gpt2", "text-generation"),
        ("MarianMTModel", "marian", "text2text-generation"),
        ("WhisperForConditionalGeneration", "whisper", "automatic-speech-recognition"),
        ("Wav2Vec2ForSequenceClassification", "wav2vec2", "audio-classification"),
        ("CLIPModel", "clip", "zero-shot-image-classification"),
        ("BertModel", "bert", "feature-extraction"),
        ("VisionEncoderDecoderModel", "vision-encoder-decoder", "image-to-text"),
    ],
)
def test_the_class_that_saved_a_model_says_its_task(architecture: str, model_type: str, task: str) -> None:
    family = families.FAMILIES[model_type]
    assert families.task_of(architecture, family) == task
    assert task in families.tasks_of(family)


def test_a_model_that_generates_has_parts_and_one_that_classifies_has_none(tmp_path: Path) -> None:
    bart = folder(tmp_path / "m", {**BERT, "model_type": "bart", "architectures": ["BartForConditionalGeneration"]})
    assert resolve.parts_of(bart, ExportOptions()) == ("encoder", "prefill", "decode")
    assert resolve.parts_of(bart, ExportOptions(task="text-classification")) == ("model",)
    assert resolve.parts_of(bart, ExportOptions(part="encoder")) == ("encoder",)


def test_made_up_inputs_have_the_values_of_the_traced_sample(tmp_path: Path) -> None:
    section = resolve.resolve(folder(tmp_path / "m", GPT2), ExportOptions(), "prefill")
    ranges = resolve.value_ranges(section)
    assert ranges["input_ids"] == (section.inputs[0].low, 99)
    assert ranges["attention_mask"] == (0, 1)
    assert ranges["position_ids"] == (0, section.sizes["sequence"] + section.sizes["prompt_past"] - 1)
    assert section.sizes["total"] == section.sizes["sequence"] + section.sizes["prompt_past"]
    assert resolve.value_ranges(section, {"sequence": 64, "prompt_past": 192})["position_ids"] == (0, 255)
    assert resolve.sample_sizes(section) == {**section.sizes, "batch": 1}


def test_positions_of_the_next_words_go_on_after_those_that_are_remembered(tmp_path: Path) -> None:
    section = resolve.resolve(folder(tmp_path / "m", GPT2), ExportOptions(), "decode")
    assert resolve.value_ranges(section, {"past": 63, "decoder_sequence": 1})["position_ids"] == (0, 63)
    fixed = resolve.resolve(folder(tmp_path / "m", GPT2), ExportOptions(shapes={"past": (31,)}), "decode")
    assert resolve.value_ranges(fixed, {"decoder_sequence": 1})["position_ids"] == (0, 31)
    assert fixed.sizes["total"] == 31 + fixed.sizes["decoder_sequence"]


@pytest.mark.parametrize(
    ("context", "sizes"),
    [
        (100_000, {"sequence": 64, "prompt_past": 448, "total": 512, "past": 511}),
        (100, {"sequence": 50, "prompt_past": 50, "total": 100, "past": 99}),
    ],
)
def test_a_decoder_of_fixed_shapes_reads_pieces_of_a_prompt_and_texts_as_long_as_its_context(
    context: int, sizes: dict[str, int], tmp_path: Path
) -> None:
    model = folder(tmp_path / "m", {**GPT2, "n_positions": context, "max_position_embeddings": context})
    for part in ("prefill", "decode"):
        found = resolve.npu_sizes(model, resolve.resolve(model, ExportOptions(), part))
        assert {axis: size for axis, size in found.items() if axis in sizes}.items() <= sizes.items()
        assert found["total"] == sizes["total"]


@pytest.mark.parametrize(
    ("part", "given", "expected"),
    [
        ("prefill", {"total": 256}, {"total": 256, "prompt_past": 192}),
        ("prefill", {"sequence": 32}, {"sequence": 32, "prompt_past": 480}),
        ("prefill", {"batch": 2}, {"batch": 2}),
        ("decode", {"total": 256}, {"total": 256, "past": 255}),
        ("decode", {"past": 255}, {"total": 256, "past": 255}),
        ("decode", {"past": 255, "total": 256}, {"total": 256, "past": 255}),
    ],
)
def test_the_length_of_a_cache_follows_from_that_of_the_text(
    part: str, given: dict[str, int], expected: dict[str, int], tmp_path: Path
) -> None:
    model = folder(tmp_path / "m", {**GPT2, "n_positions": 1024, "max_position_embeddings": 1024})
    section = resolve.resolve(model, ExportOptions(), part)
    assert resolve.complete_sizes(section, given, resolve.npu_sizes(model, section)) == expected


def test_sizes_that_contradict_one_another_are_refused(tmp_path: Path) -> None:
    model = folder(tmp_path / "m", {**GPT2, "n_positions": 1024, "max_position_embeddings": 1024})
    for part, given, message in (
        ("prefill", {"sequence": 128, "total": 128}, "a text of 128 tokens .* no room for a cache beside 128 new ones"),
        ("decode", {"past": 100, "total": 128}, r"`total` is 128, and must be the sum of `past` \(100\)"),
    ):
        section = resolve.resolve(model, ExportOptions(), part)
        with pytest.raises(RequestError, match=message) as caught:
            resolve.complete_sizes(section, given, resolve.npu_sizes(model, section))
        assert "`--dim total=N`" in (caught.value.hint or "")


def test_shapes_and_axes_are_what_was_asked_for(tmp_path: Path) -> None:
    model = folder(tmp_path / "m", BERT)
    fixed = resolve.resolve(model, ExportOptions(shapes={"sequence": (8,)}))
    assert (fixed.inputs[0].shape, fixed.sizes) == (("batch", 8), {"batch": 2})
    closed = resolve.resolve(model, ExportOptions(dynamic_axes=()))
    assert (closed.inputs[0].shape, closed.sizes) == ((1, 64), {})
    whole = resolve.resolve(model, ExportOptions(shapes={"token_type_ids": (1, 9)}))
    assert whole.inputs[2].shape == (1, 9)
    specs = {"input_ids": {"low": 5, "high": 6}, "extra": {"shape": ["batch", 3], "dtype": "int64"}}
    found = resolve.resolve(model, ExportOptions(input_specs=specs))
    assert (found.inputs[0].low, found.inputs[0].high, found.inputs[-1].name) == (5.0, 6.0, "extra")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (ExportOptions(shapes={"sequence": (8, 9)}), "axis `sequence` has one size but got 8, 9"),
        (ExportOptions(shapes={"input_ids": (8,)}), "input `input_ids` has 2 axes but got 1 sizes"),
        (ExportOptions(dynamic_axes=("height",)), "the model has no open axis `height`"),
        (ExportOptions(opset=16), "opset 16 cannot be exported"),
        (ExportOptions(input_specs={"x": {"shap": [1]}}), "unknown key `inputs.x.shap`"),
        (ExportOptions(part="decode"), "the model has no part `decode`"),
    ],
)
def test_what_does_not_fit_is_refused(options: ExportOptions, message: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError) as caught:
        resolve.resolve(folder(tmp_path / "m", BERT), options, options.part or "model")
    assert message in caught.value.message


def test_an_npu_gets_usual_sizes_that_the_model_can_take(tmp_path: Path) -> None:
    model = folder(tmp_path / "m", BERT)
    assert resolve.npu_sizes(model, resolve.resolve(model, ExportOptions())) == {"batch": 1, "sequence": 64}
    longer = folder(tmp_path / "n", {**BERT, "max_position_embeddings": 512})
    assert resolve.npu_sizes(longer, resolve.resolve(longer, ExportOptions()))["sequence"] == 128


def test_what_a_decoder_remembers_leaves_room_for_the_next_word(tmp_path: Path) -> None:
    config = {
        "model_type": "bart", "architectures": ["BartForConditionalGeneration"], "vocab_size": 120, "d_model": 16,
        "decoder_layers": 1, "decoder_attention_heads": 2, "max_position_embeddings": 64,
    }  # fmt: skip
    model = folder(tmp_path / "m", config)
    sizes = resolve.npu_sizes(model, resolve.resolve(model, ExportOptions(), "decode"))
    assert (sizes["past"], sizes["decoder_sequence"]) == (63, 1)


@pytest.mark.parametrize(
    ("processor", "size"),
    [
        ({"size": {"height": 96, "width": 64}}, (96, 64)),
        (
            {"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}, "do_center_crop": True},
            (224, 224),
        ),
        ({"size": 48}, (48, 48)),
        ({"size": {"shortest_edge": 800, "longest_edge": 1333}}, (32, 32)),
    ],
)
def test_the_processor_says_how_large_images_are(
    processor: dict[str, Any], size: tuple[int, int], tmp_path: Path
) -> None:
    config = {"model_type": "vit", "architectures": ["ViTForImageClassification"], "image_size": 32}
    model = folder(tmp_path / "m", config, preprocessor_config=processor)
    assert resolve.resolve(model, ExportOptions()).inputs[0].shape == ("batch", 3, *size)
    opened = {"pixel_values": {"shape": ["batch", 3, "height", size[1]]}}
    assert resolve.resolve(model, ExportOptions(input_specs=opened)).sizes == {"batch": 2, "height": size[0]}


@pytest.mark.parametrize(
    ("encoder", "length"),
    [
        ({"model_type": "vit", "patch_size": 16, "image_size": 64, "hidden_size": 32}, 17),
        ({"model_type": "deit", "patch_size": 16, "image_size": 64, "hidden_size": 32}, 18),
        (
            {"model_type": "donut-swin", "patch_size": 4, "image_size": [64, 64], "hidden_size": 32, "depths": [1, 1]},
            64,
        ),
        (
            {"model_type": "donut-swin", "patch_size": 4, "image_size": [60, 36], "hidden_size": 32, "depths": [1, 1]},
            40,
        ),
    ],
    ids=["a class token", "a second token", "merged patches", "filled up"],
)
def test_a_decoder_reads_as_many_vectors_as_its_encoder_of_images_gives(
    encoder: dict[str, Any], length: int, tmp_path: Path
) -> None:
    decoder = {
        "model_type": "mbart",
        "vocab_size": 100,
        "d_model": 32,
        "decoder_layers": 1,
        "decoder_attention_heads": 2,
    }
    config = {"model_type": "vision-encoder-decoder", "architectures": ["VisionEncoderDecoderModel"]}
    model = folder(tmp_path / "m", {**config, "encoder": {**encoder, "hidden_size": 32}, "decoder": decoder})
    for part in ("prefill", "decode"):
        inputs = resolve.resolve(model, ExportOptions(), part).inputs
        read = [entry for entry in inputs if "encoder_" in entry.name]
        assert {entry.shape[1 if part == "prefill" else 2] for entry in read} == {length}


def test_an_unknown_family_is_refused_and_takes_input_specs(tmp_path: Path) -> None:
    model = folder(tmp_path / "m", {"model_type": "distil_bert", "architectures": ["XModel"]})
    with pytest.raises(ModelFileError, match="architecture `distil_bert` is not supported") as caught:
        resolve.resolve(model, ExportOptions())
    assert "`winml catalog` lists the supported ones" in (caught.value.hint or "")
    specs = {"input_ids": {"shape": ["batch", "sequence"], "dtype": "int64", "low": 0, "high": 9}}
    assert resolve.resolve(model, ExportOptions(input_specs=specs)).sizes == {"batch": 2, "sequence": 16}
    assert describe(model).reason == "architecture `distil_bert` is not supported"


def test_code_of_a_model_runs_only_when_trusted(tmp_path: Path) -> None:
    model = folder(tmp_path / "m", {**BERT, "auto_map": {"AutoModel": "x.Mine"}})
    with pytest.raises(RequestError, match=r"needs code that comes with it \(`x.Mine`\)"):
        resolve.resolve(model, ExportOptions())
    assert resolve.resolve(model, ExportOptions(trust_remote_code=True)).task == "text-classification"


def test_parameters_are_counted_from_headers(tmp_path: Path) -> None:
    value = describe(folder(tmp_path / "m", BERT))
    assert (value.parameters, value.weight_types) == (17, {"F32": 12, "F16": 5})
    assert value.tasks[0] == "text-classification"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"auto_map": ["code.py"]}, "`config.auto_map` must be an object"),
        ({"auto_map": {"AutoModel": 7}}, "`config.auto_map.AutoModel` must be text"),
        ({"vision_config": "x"}, "`config.vision_config` must be an object"),
        ({"text_config": [1]}, "`config.text_config` must be an object"),
        ({"architectures": "BertModel"}, "`config.architectures` must be a list"),
        ({"architectures": [{"a": 1}]}, r"`config.architectures\[0\]` must be text"),
        ({"model_type": ["bert"]}, "`config.model_type` must be text"),
    ],
)
def test_a_config_of_other_types_is_refused_with_the_field(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelFileError, match=words):
        describe(folder(tmp_path / "m", {**BERT, **change}))


def test_numbers_that_other_programs_write_do_not_hinder(tmp_path: Path) -> None:
    config = {**BERT, "time_step_limit": [0.0, float("inf")], "model_max_length": 10**30}
    assert describe(folder(tmp_path / "m", config)).task == "text-classification"


@pytest.mark.parametrize("size", [["x", 3], [2**31, 2**31], {"height": None, "width": 3}, -1, 0, [1.5, 2], True])
def test_an_image_size_that_is_none_is_refused(tmp_path: Path, size: Any) -> None:
    vit = {"model_type": "vit", "architectures": ["ViTForImageClassification"], "image_size": size}
    with pytest.raises(ModelFileError, match="has an invalid image size"):
        folder(tmp_path / "m", vit).image_size()


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "..\\x.safetensors",
        "sub/x.safetensors",
        "C:x.safetensors",
        "\\\\h\\s.bin",
        "",
    ],
)
def test_an_index_names_weights_beside_it_only(tmp_path: Path, name: str) -> None:
    made = folder(tmp_path / "m", BERT)
    (made.path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": {"a": name}}))
    with pytest.raises(ModelFileError, match="not a weights file beside it"):
        made.require_weights()


@pytest.mark.parametrize("index", [{}, {"weight_map": ["a"]}, {"weight_map": {"a": 7}}])
def test_an_index_of_other_types_is_refused(tmp_path: Path, index: Any) -> None:
    made = folder(tmp_path / "m", BERT)
    (made.path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelFileError, match="weight_map"):
        made.require_weights()


@pytest.mark.parametrize("shape", [["a"], [2.5], [-1], 7, None, [2**40, 2**40], [True]])
def test_a_tensor_that_cannot_be_is_refused(tmp_path: Path, shape: Any) -> None:
    made = folder(tmp_path / "m", BERT)
    header = json.dumps({"a": {"dtype": "F32", "shape": shape}}).encode()
    (made.path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(ModelFileError, match="not a safetensors file"):
        made.weights()


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({}, None),
        ({"attn_implementation": "sdpa", "text_config": {"_attn_implementation": "eager"}}, None),
        ({"attn_implementation": "kernels-community/flash-attn"}, "kernels-community/flash-attn"),
        ({"vision_config": {"_attn_implementation": "org/evil@main:run"}}, "org/evil@main:run"),
        ({"attn_implementation": {"": "org/evil"}}, "{'': 'org/evil'}"),
    ],
)
def test_an_attention_that_is_no_code_of_the_library_is_seen(tmp_path: Path, config: Any, named: str | None) -> None:
    assert folder(tmp_path / "m", {**BERT, **config}).foreign_attention == named
