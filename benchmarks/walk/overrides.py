"""What tiny models need beyond the general rules of `shrink.py`, as data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NAMED: tuple[str, ...] = (
    "deberta-v2", "albert", "electra", "mpnet", "xlm-roberta", "camembert", "modernbert", "longformer", "big_bird",
    "esm", "layoutlm", "layoutlmv3", "mobilenet_v1", "mobilenet_v2", "efficientnet", "regnet", "beit", "deit", "levit",
    "pvt", "convnextv2", "swinv2", "dinov2_with_registers", "dpt", "depth_anything", "zoedepth", "vitpose", "vitmatte",
    "sam", "owlvit", "siglip", "blip", "donut", "table-transformer", "rt_detr", "grounding-dino", "conditional_detr",
    "mask2former", "upernet", "timesformer", "videomae", "audio-spectrogram-transformer", "hubert", "wavlm",
    "wav2vec2-bert", "speecht5", "clap", "llama", "mistral", "qwen3", "phi3", "gemma", "granite", "smollm3",
    "qwen2_moe", "opt", "bloom", "mamba", "mbart", "pegasus", "m2m_100", "mt5", "pix2struct", "patchtst", "vits",
)  # fmt: skip
"""Families that people bring most, which every change of the exporter should be tried with."""

CLASSES: dict[str, str] = {
    "deberta-v2": "DebertaV2ForSequenceClassification",
    "mpnet": "MPNetModel",
    "xlm-roberta": "XLMRobertaForSequenceClassification",
    "camembert": "CamembertForTokenClassification",
    "electra": "ElectraForSequenceClassification",
    "longformer": "LongformerForSequenceClassification",
    "big_bird": "BigBirdForSequenceClassification",
    "layoutlm": "LayoutLMForTokenClassification",
    "layoutlmv3": "LayoutLMv3ForTokenClassification",
    "siglip": "SiglipModel",
    "blip": "BlipForConditionalGeneration",
    "upernet": "UperNetForSemanticSegmentation",
    "beit": "BeitForImageClassification",
    "hubert": "HubertForCTC",
    "wavlm": "WavLMForSequenceClassification",
    "clap": "ClapModel",
    "speecht5": "SpeechT5ForTextToSpeech",
    "patchtst": "PatchTSTForPrediction",
    "mbart": "MBartForConditionalGeneration",
    "pegasus": "PegasusForConditionalGeneration",
    "vits": "VitsModel",
    "sam": "SamModel",
    "detr": "DetrForObjectDetection",
    "autoformer": "AutoformerForPrediction",
    "informer": "InformerForPrediction",
    "time_series_transformer": "TimeSeriesTransformerForPrediction",
}
"""The class a user would bring, where the order of heads would take another."""

COMPOSITES: dict[str, str] = {"donut": "vision-encoder-decoder"}
"""Families that have a name and no `model_type` of their own: the type of their config."""

PROCESSOR_OF: dict[str, str] = {"donut": "donut-swin", "dinov2_with_registers": "dinov2"}
"""The type whose image processor comes with a family, where the type of its config has none."""

SWIN = {"image_size": 64, "patch_size": 4, "window_size": 2, "embed_dim": 16}
"""Four stages with windows that fit into the last."""

EFFICIENTNET = {
    "image_size": 64, "width_coefficient": 0.5, "depth_coefficient": 1.0, "hidden_dim": 640, "kernel_sizes": [3, 5],
    "in_channels": [32, 16], "out_channels": [16, 32], "strides": [1, 2], "num_block_repeats": [1, 2],
    "expand_ratios": [1, 4], "depthwise_padding": [],
}  # fmt: skip

MROPE = (
    "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text", "paddleocr_vl_text", "glm4v_text", "glm_image_text",
    "glm_ocr_text",
)  # fmt: skip
"""Texts whose positions are of time, height and width in shares that their classes take for granted."""

CONFIGS: dict[str, dict[str, Any]] = {
    "donut": {"encoder": {"model_type": "donut-swin"}, "decoder": {"model_type": "mbart", "is_decoder": True,
              "add_cross_attention": True}, "decoder_start_token_id": 2, "pad_token_id": 1, "eos_token_id": 2},
    "swin": SWIN, "swinv2": SWIN, "donut-swin": SWIN, "maskformer-swin": SWIN,
    "t5": {"decoder_start_token_id": 0},
    "esm": {"vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32},
    "layoutlmv3": {"coordinate_size": 6, "shape_size": 4},
    "mobilenet_v1": {"depth_multiplier": 0.25, "image_size": 64},
    "mobilenet_v2": {"depth_multiplier": 0.35, "image_size": 64},
    "efficientnet": EFFICIENTNET, "align_vision_model": EFFICIENTNET,
    "levit": {"image_size": 64, "patch_size": 16},
    "pvt": {"image_size": 64, "patch_size": 4, "patch_sizes": [4, 2, 2, 2], "hidden_sizes": [16, 16, 32, 32],
            "num_attention_heads": [1, 2, 2, 2]},
    "dpt": {"num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3]},
    "vitmatte.backbone_config": {"image_size": 64, "patch_size": 16},
    "zoedepth": {"bottleneck_features": 32},
    "sam_vision_model": {"num_pos_feats": 16, "output_channels": 32},
    "mask2former": {"feature_size": 32, "mask_feature_size": 32},
    "grounding-dino": {"d_model": 64},
    "wav2vec2-bert": {"vocab_size": 32}, "wav2vec2-conformer": {"vocab_size": 32},
    "autoformer": {"prediction_length": 8, "context_length": 16, "lags_sequence": [1, 2, 3]},
    "informer": {"prediction_length": 8, "context_length": 16, "lags_sequence": [1, 2, 3]},
    "time_series_transformer": {"prediction_length": 8, "context_length": 16, "lags_sequence": [1, 2, 3]},
    "cvt": {"depth": [1, 2, 3]},
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "blip-2": {"image_token_index": 255}, "instructblip": {"image_token_index": 255},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "deepseek_ocr2_text": {"mlp_layer_types": ["dense", "sparse"], "num_experts_per_tok": 2},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "nemotron": {"num_key_value_heads": 1},
    "bridgetower_vision_model": {"hidden_size": 64}, "bridgetower_text_model": {"hidden_size": 64},
    "bridgetower": {"hidden_size": 64},
    "reformer": {"axial_pos_embds_dim": [16, 16], "axial_pos_shape": [8, 16], "attn_layers": ["local", "lsh"]},
    "gemma3n_text": {"intermediate_size": 64, "activation_sparsity_pattern": 0.0, "num_kv_shared_layers": 0},
    "fun_asr_nano.adaptor_config": {"intermediate_size": 8},
    "lw_detr_vit": {"image_size": 64, "pretrain_image_size": 64},
    "molmo2_adapter": {"vision_feature_layer": [1, 0]},
    "muse_spark_audio": {"num_hidden_layers": 4},
    "depth_pro": {"patch_size": 32},
    "qwen3_omni_moe_talker_text": {"shared_expert_intermediate_size": 64},
    "pp_lcnet_v4": {"stem_channels": ...},
    **{name: {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}}
       for name in MROPE},
    "glm4v_moe_text": {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2],
                                           "partial_rotary_factor": 0.5}},
    "bamba": {"attn_layer_indices": [1]},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"]},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1},
    "lilt": {"hidden_size": 48},
    "mobilevitv2": {"image_size": 64},
    "ernie4_5_moe": {"moe_k": 2, "moe_num_shared_experts": 1},
    "mamba2": {"num_heads": 4, "head_dim": 16, "n_groups": 1}, "nemotron_h": {"n_groups": 1},
    "sam2_hiera_det_model": {"image_size": [64, 64], "window_size_per_stage": [2, 2, 2, 2],
                             "window_positional_embedding_background_size": [2, 2]},
    "superpoint": {"keypoint_decoder_dim": 65},
    "clvp_encoder": {"head_dim": ...},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "codegen": {"n_head": 4, "rotary_dim": 8},
    "bit": {"num_groups": 8},
    "deformable_detr": {"d_model": 64}, "mm-grounding-dino": {"d_model": 64},
    "oneformer": {"feature_size": 32, "conv_dim": 32, "mask_dim": 32},
    "maskformer": {"fpn_feature_size": 32, "mask_feature_size": 32},
    "sam_hq_vision_model": {"num_pos_feats": 16, "output_channels": 32},
    "clap_audio_model": {
        "spec_size": 64, "num_mel_bins": 32, "num_hidden_layers": 4, "window_size": 2, "patch_embeds_hidden_size": 16,
        "hidden_size": 128},
}  # fmt: skip
"""By `model_type`, or `model_type.part` for a part in that model only; `...` leaves an attribute as it is."""


def draw(*shape: int) -> Any:
    import torch

    return torch.randn(*shape)


def ids(*shape: int) -> Any:
    import torch

    return torch.randint(5, 60, shape)


INPUTS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "audio-spectrogram-transformer": lambda c: {"input_values": draw(1, c.max_length, c.num_mel_bins)},
    "wav2vec2-bert": lambda c: {"input_features": draw(1, 32, c.feature_projection_input_dim)},
    "pix2struct": lambda c: {"flattened_patches": draw(1, 8, 2 + c.vision_config.patch_embed_hidden_size).abs(),
                             "decoder_input_ids": ids(1, 4)},
    "patchtst": lambda c: {"past_values": draw(1, c.context_length, c.num_input_channels)},
    "speecht5": lambda c: {"input_ids": ids(1, 12), "decoder_input_values": draw(1, 6, c.num_mel_bins),
                           "speaker_embeddings": draw(1, c.speaker_embedding_dim)},
    "clap": lambda c: {"input_ids": ids(1, 12), "input_features": draw(1, 1, 100, c.audio_config.num_mel_bins)},
}  # fmt: skip
"""Inputs of `forward` that are not obvious, by `model_type`, of the config."""
