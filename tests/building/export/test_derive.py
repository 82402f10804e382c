"""Inputs that are derived from a class, for architectures and heads that are in no table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from winml.modelkit.building import exported
from winml.modelkit.building.export import resolve, samples
from winml.modelkit.building.export.derivation import NO_CACHE, InputDerivation
from winml.modelkit.building.export.folder import ModelFolder
from winml.modelkit.building.export.resolve import ExportOptions
from winml.modelkit.building.exported import Located
from winml.modelkit.core.errors import ModelFileError, RequestError
from winml.modelkit.core.placeholders import Placeholders
from winml.modelkit.store.cache import Cache
from winml.modelkit.worker.client import Worker

pytestmark = [pytest.mark.hf, pytest.mark.xdist_group("hf")]

TEXT: dict[str, Any] = {
    "vocab_size": 99, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 64,
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "LayoutLMForTokenClassification": {
        "model_type": "layoutlm", **TEXT, "type_vocab_size": 2, "max_2d_position_embeddings": 50
    },
    "BridgeTowerTextModel": {"model_type": "bridgetower_text_model", **TEXT},
    "BridgeTowerVisionModel": {
        "model_type": "bridgetower_vision_model", "hidden_size": 64, "num_hidden_layers": 1, "image_size": 16,
        "patch_size": 8,
    },
    "FlavaMultimodalModel": {"model_type": "flava_multimodal_model", **TEXT},
    "BertForMultipleChoice": {"model_type": "bert", **TEXT, "type_vocab_size": 2},
    "CohereForCausalLM": {"model_type": "cohere", **TEXT, "num_key_value_heads": 2},
    "BloomForCausalLM": {"model_type": "bloom", "vocab_size": 99, "hidden_size": 16, "n_layer": 2, "n_head": 2},
    "Cohere2ForCausalLM": {
        "model_type": "cohere2", **TEXT, "num_hidden_layers": 2, "num_key_value_heads": 1, "sliding_window": 4,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "DeepseekV3ForCausalLM": {
        "model_type": "deepseek_v3", **TEXT, "num_key_value_heads": 2, "n_routed_experts": 2, "num_experts_per_tok": 1,
        "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "kv_lora_rank": 8, "q_lora_rank": 8,
        "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 4, "moe_intermediate_size": 16,
    },
    "MambaForCausalLM": {
        "model_type": "mamba", "vocab_size": 99, "hidden_size": 16, "num_hidden_layers": 1, "state_size": 4,
    },
    "RecurrentGemmaForCausalLM": {
        "model_type": "recurrent_gemma", **TEXT, "num_key_value_heads": 1, "lru_width": 16, "attention_window_size": 8,
    },
    "BambaForCausalLM": {
        "model_type": "bamba", **TEXT, "num_hidden_layers": 2, "num_key_value_heads": 1, "attn_layer_indices": [1],
        "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 4,
    },
    "TimesformerForVideoClassification": {
        "model_type": "timesformer", "image_size": 16, "patch_size": 8, "num_frames": 3, "hidden_size": 16,
        "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    },
    "PatchTSTForPrediction": {
        "model_type": "patchtst", "num_input_channels": 3, "context_length": 24, "prediction_length": 4,
        "patch_length": 8, "patch_stride": 8, "d_model": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "ffn_dim": 32,
    },
    "M2M100ForConditionalGeneration": {
        "model_type": "m2m_100", "vocab_size": 99, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1,
        "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32,
        "max_position_embeddings": 64, "is_encoder_decoder": True, "pad_token_id": 1, "eos_token_id": 2,
    },
    "LlavaForConditionalGeneration": {
        "model_type": "llava", "image_token_index": 98,
        "text_config": {"model_type": "llama", **TEXT, "num_key_value_heads": 2},
        "vision_config": {
            "model_type": "clip_vision_model", "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
            "num_attention_heads": 2, "image_size": 16, "patch_size": 8, "projection_dim": 16,
        },
    },
    "Wav2Vec2BertForCTC": {
        "model_type": "wav2vec2-bert", "vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": 32, "feature_projection_input_dim": 20,
    },
}  # fmt: skip
"""Configs without weights: inputs follow from the class and the sizes alone."""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as process:
        yield process


def write(folder: Path, architecture: str, **more: Any) -> ModelFolder:
    folder.mkdir(exist_ok=True)
    config = {**CONFIGS.get(architecture, {}), "architectures": [architecture], **more}
    (folder / "config.json").write_text(json.dumps(config))
    return ModelFolder(folder)


def derive(worker: Worker, folder: ModelFolder) -> InputDerivation:
    args = {"folder": folder.path, "task": resolve.task_of(folder, None)}
    return worker.ask(InputDerivation, "stages.derive", args)


def shapes(found: InputDerivation, part: str = "model") -> dict[str, tuple[int | str, ...]]:
    return {entry.name: entry.shape for entry in found.find_part(part).inputs}


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [
        (
            "LayoutLMForTokenClassification",
            {
                "input_ids": ("batch", "sequence"),
                "bbox": ("batch", "sequence", 4),
                "attention_mask": ("batch", "sequence"),
                "token_type_ids": ("batch", "sequence"),
            },
        ),
        (
            "BertForMultipleChoice",
            {
                "input_ids": ("batch", "choices", "sequence"),
                "attention_mask": ("batch", "choices", "sequence"),
                "token_type_ids": ("batch", "choices", "sequence"),
            },
        ),
        ("BridgeTowerVisionModel", {"image": ("batch", 3, 16, 16)}),
        ("FlavaMultimodalModel", {"hidden_states": ("batch", "sequence", 16)}),
        ("CohereForCausalLM", {"input_ids": ("batch", "sequence"), "attention_mask": ("batch", "sequence")}),
        ("TimesformerForVideoClassification", {"pixel_values": ("batch", 3, 3, 16, 16)}),
        ("PatchTSTForPrediction", {"past_values": ("batch", 24, 3), "past_observed_mask": ("batch", 24, 3)}),
        ("Wav2Vec2BertForCTC", {"input_features": ("batch", "frames", 20)}),
    ],
)
def test_inputs_follow_from_the_class_and_the_config(
    worker: Worker, tmp_path: Path, architecture: str, expected: dict[str, Any]
) -> None:
    folder = write(tmp_path / "m", architecture)
    assert resolve.is_derived(folder, ExportOptions())
    found = derive(worker, folder)
    assert shapes(found) == expected
    assert found.exported_parts == ("model",)
    assert f"inputs of {architecture}" in found.notes[0]
    section = resolve.resolve(folder, ExportOptions(), derived=found)
    assert section.derived == (*found.notes, *found.find_part("model").notes)
    assert set(section.sizes) == {axis for shape in expected.values() for axis in shape if isinstance(axis, str)}


@pytest.mark.parametrize(
    ("architecture", "key", "value", "positions"),
    [
        ("BloomForCausalLM", (2, 8), (2, 8), False),  # places are in the attention, not an input
        ("Cohere2ForCausalLM", (1, 8), (1, 8), True),  # of the layers one looks back 4 tokens only
        ("DeepseekV3ForCausalLM", (1, 8), (1, 4), True),  # what keys and values are made from, of different sizes
    ],
)
def test_the_cache_of_a_decoder_is_read_from_what_its_class_writes(
    worker: Worker, tmp_path: Path, architecture: str, key: tuple[int, int], value: tuple[int, int], positions: bool
) -> None:
    folder = write(tmp_path / "m", architecture)
    found = derive(worker, folder)
    assert found.has_decoder
    assert found.exported_parts == ("model",)
    decoder = shapes(found, "decoder")
    assert decoder["attention_mask"] == ("batch", "total")
    assert ("position_ids" in decoder) == positions
    assert decoder["past_key_values.0.key"] == ("batch", key[0], "past", key[1])
    assert decoder["past_key_values.0.value"] == ("batch", value[0], "past", value[1])
    section = resolve.resolve(folder, ExportOptions(), "decoder", found)
    assert any("its cache was derived" in note for note in section.derived)
    assert not any(note.startswith(NO_CACHE) for note in section.derived)
    assert ("look back 4 tokens" in " ".join(section.derived)) == (architecture == "Cohere2ForCausalLM")


@pytest.mark.parametrize(
    ("architecture", "kind"),
    [
        ("MambaForCausalLM", "states of a state space"),
        ("RecurrentGemmaForCausalLM", "recurrent states"),
        ("BambaForCausalLM", "layer 0 keeps states of linear attention or of a state space"),
    ],
)
def test_a_past_of_another_kind_is_named(worker: Worker, tmp_path: Path, architecture: str, kind: str) -> None:
    folder = write(tmp_path / "m", architecture)
    found = derive(worker, folder)
    assert not found.has_decoder
    (note,) = found.find_part("model").notes
    assert note.startswith(NO_CACHE)
    assert kind in note


def test_a_decoder_that_is_tried_with_fewer_layers_has_the_cache_of_all(worker: Worker, tmp_path: Path) -> None:
    """Without weights a large model is made with two layers, but its graph has inputs for each."""
    large = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 8}
    found = derive(worker, write(tmp_path / "m", "CohereForCausalLM", **large, num_key_value_heads=2))
    decoder = shapes(found, "decoder")
    assert sum(name.endswith(".key") for name in decoder) == 24
    assert decoder["past_key_values.23.key"] == ("batch", 2, "past", 128)


def test_boxes_have_their_corners_in_order_and_on_the_page(worker: Worker, tmp_path: Path) -> None:
    found = derive(worker, write(tmp_path / "m", "LayoutLMForTokenClassification"))
    boxes = next(entry for entry in found.find_part("model").inputs if entry.name == "bbox")
    assert (boxes.values, boxes.high) == ("boxes", 49)


def test_a_pair_is_taken_apart_by_the_shapes_that_its_parts_give(worker: Worker, tmp_path: Path) -> None:
    found = derive(worker, write(tmp_path / "m", "M2M100ForConditionalGeneration"))
    assert found.exported_parts == ("encoder", "prefill", "decode")
    assert shapes(found, "prefill") == {
        "input_ids": ("batch", "decoder_sequence"),
        "encoder_hidden_states": ("batch", "sequence", 16),
        "encoder_attention_mask": ("batch", "sequence"),
    }
    decode = shapes(found, "decode")
    assert decode["past_0_decoder_key"] == ("batch", 2, "past", 8)
    assert decode["past_0_encoder_value"] == ("batch", 2, "sequence", 8)


def test_the_processor_names_the_size_of_images_and_whether_there_are_token_types(
    worker: Worker, tmp_path: Path
) -> None:
    folder = write(tmp_path / "m", "LayoutLMForTokenClassification")
    names = {"model_input_names": ["input_ids", "bbox", "attention_mask"]}
    (folder.path / "tokenizer_config.json").write_text(json.dumps(names))
    assert list(shapes(derive(worker, folder))) == ["input_ids", "bbox", "attention_mask"]


def test_a_part_that_the_library_has_and_does_not_list_is_found_beside_its_config(
    worker: Worker, tmp_path: Path
) -> None:
    found = derive(worker, write(tmp_path / "part", "BridgeTowerTextModel"))
    assert found.class_name == "BridgeTowerTextModel"
    assert shapes(found) == {"input_ids": ("batch", "sequence"), "attention_mask": ("batch", "sequence")}
    config = CONFIGS["BridgeTowerTextModel"]
    with pytest.raises(RequestError, match="do not support feature-extraction"):
        derive(worker, write(tmp_path / "other", "PretrainedConfigModel", **config))


def test_a_class_that_accepts_nothing_says_what_it_says_itself(worker: Worker, tmp_path: Path) -> None:
    broken = {"model_type": "bros", **TEXT, "hidden_size": 12, "num_attention_heads": 2, "dim_bbox_sinusoid_emb_2d": 2}
    folder = write(tmp_path / "m", "BrosForTokenClassification", **broken)
    with pytest.raises(
        RequestError, match="BrosForTokenClassification accepts none of [0-9]+ sets of inputs: "
    ) as caught:
        derive(worker, folder)
    assert "--input-specs" in (caught.value.hint or "")


def test_a_class_that_is_never_called_itself_names_its_parts(worker: Worker, tmp_path: Path) -> None:
    small = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "input_vocab_size": 64, "output_vocab_size": 64}
    codec = {"model_type": "encodec", "num_filters": 4, "hidden_size": 8, "codebook_dim": 8, "codebook_size": 16}
    config = {
        "model_type": "bark",
        "semantic_config": small,
        "coarse_acoustics_config": small,
        "fine_acoustics_config": {**small, "n_codes_total": 4},
        "codec_config": codec,
    }
    with pytest.raises(RequestError, match=r"BarkModel has no `forward`: .* `semantic`, `coarse_acoustics`"):
        derive(worker, write(tmp_path, "BarkModel", **config))


def test_an_input_of_an_unknown_name_is_named(worker: Worker, tmp_path: Path) -> None:
    folder = write(tmp_path / "m", "Qwen2VisionTransformerPretrainedModel", model_type="qwen2_vl_vision")
    with pytest.raises(RequestError, match="needs `grid_thw`"):
        derive(worker, folder)


def test_a_config_of_half_precision_without_weights_is_tried_in_full(worker: Worker, tmp_path: Path) -> None:
    found = derive(worker, write(tmp_path / "m", "CohereForCausalLM", dtype="bfloat16"))
    assert list(shapes(found)) == ["input_ids", "attention_mask"]


def test_an_encoder_that_merges_frames_leaves_the_length_of_its_states_open(worker: Worker, tmp_path: Path) -> None:
    config = {
        "model_type": "speech_to_text", "vocab_size": 99, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1,
        "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32,
        "input_feat_per_channel": 8, "input_channels": 1, "conv_channels": 16, "max_source_positions": 200,
        "max_target_positions": 64, "is_encoder_decoder": True,
    }  # fmt: skip
    found = derive(worker, write(tmp_path / "m", "Speech2TextForConditionalGeneration", **config))
    assert shapes(found, "prefill")["encoder_hidden_states"] == ("batch", "encoder_sequence", 16)
    assert shapes(found, "decode")["past_0_encoder_key"] == ("batch", 2, "encoder_sequence", 8)
    frames = dict(found.find_part("encoder").fixed_sizes)["frames"]
    assert found.find_part("decode").fixed_sizes["encoder_sequence"] == -(-frames // 4)


def test_axes_that_are_closed_have_sizes_that_the_class_takes(worker: Worker, tmp_path: Path) -> None:
    config = {**CONFIGS["LayoutLMForTokenClassification"], "max_position_embeddings": 40}
    folder = write(tmp_path / "m", "LayoutLMForTokenClassification", **config)
    section = resolve.resolve(folder, ExportOptions(dynamic_axes=("batch",)), derived=derive(worker, folder))
    assert section.inputs[0].shape == ("batch", 40)


def test_an_invalid_processor_file_is_named(worker: Worker, tmp_path: Path) -> None:
    folder = write(tmp_path / "m", "TimesformerForVideoClassification")
    (folder.path / "preprocessor_config.json").write_text(json.dumps({"size": {"height": -3, "width": 3}}))
    with pytest.raises(ModelFileError, match="preprocessor_config.json.*invalid image size"):
        derive(worker, folder)


def test_a_derivation_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    located = Located(write(tmp_path / "m", "CohereForCausalLM"), "cohere")
    cache = Cache(tmp_path / "cache")
    first = exported.find_derivation(located, ExportOptions(), cache)
    monkeypatch.setattr(exported, "Worker", None)
    assert exported.find_derivation(located, ExportOptions(), cache) == first
    assert first is not None


def test_a_table_or_a_user_that_names_the_inputs_is_not_second_guessed(tmp_path: Path) -> None:
    bert = Located(write(tmp_path / "b", "BertForSequenceClassification", model_type="bert", **TEXT), "bert")
    assert exported.find_derivation(bert, ExportOptions()) is None
    cohere = Located(write(tmp_path / "g", "CohereForCausalLM"), "cohere")
    specs = {"input_ids": {"dtype": "int64", "shape": ["batch", "sequence"], "low": 1, "high": 9}}
    assert exported.find_derivation(cohere, ExportOptions(input_specs=specs)) is None


def test_a_config_without_a_type_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    located = Located(write(tmp_path / "m", "NoModelAtAll"), "m")
    with pytest.raises(ModelFileError, match="has no `model_type`"):
        exported.find_derivation(located, ExportOptions())


def test_random_numbers_are_their_mean_while_a_model_is_compared() -> None:
    import torch

    from winml.modelkit.building.export.noise import mean_noise

    real = torch.randn
    with mean_noise(active=True):
        assert torch.randn(2, 3).tolist() == [[0.0] * 3] * 2
        assert torch.rand_like(torch.ones(2)).tolist() == [0.5, 0.5]
        assert torch.bernoulli(torch.tensor([0.2, 0.8])).tolist() == [0.0, 1.0]
        assert torch.bernoulli(torch.ones(2), p=0.4).tolist() == [0.0, 0.0]
    assert torch.randn is real
    with mean_noise(active=False):
        assert torch.randn is real


def test_a_failure_names_the_family_that_the_config_is_most_like(worker: Worker, tmp_path: Path) -> None:
    config = {
        "model_type": "swinv2", "image_size": 30, "patch_size": 4, "num_channels": 3, "embed_dim": 8, "depths": [1, 1],
        "num_heads": [3, 2], "window_size": 4, "mlp_ratio": 2.0, "qkv_bias": True, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0, "drop_path_rate": 0.1, "hidden_act": "gelu",
        "initializer_range": 0.02, "layer_norm_eps": 1e-5, "encoder_stride": 32, "query_embeds": 3,
    }  # fmt: skip
    folder = write(tmp_path / "m", "Blip2QFormerModel", **{**config, "model_type": "blip_2_qformer", **TEXT})
    with pytest.raises(RequestError) as caught:
        derive(worker, folder)
    assert "by its config it is most like `swin` models" in (caught.value.hint or "")


def test_a_text_has_a_word_for_every_vector_of_its_image(worker: Worker, tmp_path: Path) -> None:
    folder = write(tmp_path / "m", "LlavaForConditionalGeneration")
    found = derive(worker, folder)
    assert shapes(found) == {
        "input_ids": ("batch", "sequence"),
        "pixel_values": ("batch", 3, 16, 16),
        "attention_mask": ("batch", "sequence"),
    }
    section = resolve.resolve(folder, ExportOptions(), derived=found)
    assert resolve.placeholders_of(section) == {"input_ids": Placeholders(98, 4)}
    assert section.sizes["sequence"] == 20
    assert "an image takes 4 words of the text: input_ids begin with as many of id 98" in found.notes
    ids = samples.make_samples(section, section.sizes, seed=0)["input_ids"]
    assert ((ids == 98).sum(axis=1) == 4).all()
    assert resolve.random_inputs(section).placeholders == {"input_ids": Placeholders(98, 4)}


def test_a_class_whose_images_fit_no_text_is_derived_with_its_text_and_says_so(worker: Worker, tmp_path: Path) -> None:
    # The word for images is none of the vocabulary, so that no text has a place for them.
    found = derive(worker, write(tmp_path / "m", "LlavaForConditionalGeneration", image_token_index=500))
    assert "pixel_values" not in shapes(found)
    assert any(note.startswith("derived with its text alone: no pixel_values") for note in found.notes)
