"""Make the config of a tiny model from the config class of any architecture.

Sizes are told by the names of attributes, which transformers keeps alike over its architectures: everything that looks
like a width becomes 32, every count of layers 2. What a class decides by itself (fields that are None in its
definition) is left to it, so that lists per layer and sizes of heads follow the new numbers. What an architecture needs
beyond that is a row of `overrides.py`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

VOCABULARY = 256
IMAGE = 32
"""Pixels; 64 for those that take a 32nd of it."""
WIDTH = 32
HEADS = 2

SIZES: tuple[tuple[str, int], ...] = (
    (r"^num_filters$|^n_filters$|^encoder_hidden_size$", 8),
    (r"blocks_per_stage$", 1),
    (r"_per_stage$|channel_list$|_feature_dims$|^post_process_channels$", WIDTH),
    (r"^rotary_dim$|^num_pos_feats$|^(row|col)_pos\w*$", WIDTH // HEADS),
    (r"^mamba_n_heads$|^n_mamba_heads$", 4),
    (r"^mamba_d_head$|^mamba_head_dim$|^mamba_headdim$|^mamba_d_state$|^mamba_d_ssm$|^ssm_state_size$", 16),
    # Counts, before the widths: `num_..._embeddings` is no width.
    (r"(^|_)vocab(ulary)?_size(_per_layer_input)?$|_vocab_size$|^codebook_size$|hash_buckets$|^num_embeddings$", 256),
    (r"byte_group_vocab$|^num_words$", 256),
    (r"max(imum)?_(\w+_)?position(s|_embeddings)?$|^n_positions$|^n_ctx$|^max_\w*positions$|^max_seq(uence)?_len(gth)?$",
     128),
    (r"^max_2d_position_embeddings$", 1024),
    (r"(^|_)(num_)?(key_value|kv)_heads$|^num_\w*key_value_heads$", 2),
    (r"heads?$|^n_heads?$|_n_heads$|^num_head$", HEADS),
    (r"^(num_)?(image|vision|video|audio)?_?(token|query|latent)s?(_per_\w+)?$|^num_latents$|^d_latents$", 32),
    (r"^num_queries$|num_proposals$|^num_query_tokens$|^num_object_queries$|^num_detection_tokens$", 8),
    (r"^num_denoising$", 8),
    (r"num_(\w+_)?experts_per_tok(en)?$|^num_selected_experts$|^moe_top_?k$|^moe_topk$|^num_experts_per_token$", 2),
    (r"^(n|num)_(routed_|local_|zero_)?experts$|^moe_num_experts$|_num_experts$|^zero_expert_num$", 4),
    (r"^(n_group|topk_group|num_expert_groups?)$", 1),
    (r"(^|_)depths$|^num_blocks_per_group$|^layer_repeats$|^num_block_repeats$|^encoder_depths$", 1),
    (r"(^|_)(num_)?(\w+_)?(layers|depth|blocks|n_layers?)$|^n_layers?$|^num_hidden_layers$|^n_blocks$", 2),
    (r"^window_size$|^window_sizes$|^pretrained_window_sizes?$|^local_window$", 4),
    (r"^sliding_window$|^attention_window$|^index_topk$", 32),
    (r"^num_mel_bins$|^num_mel_channels$|^mel_bins$|^feature_size$|^input_feat_size$", 16),
    (r"^max_length$|^max_source_length$", 128),
    (r"^num_frames$|^frames_per_clip$", 4),
    # Images.
    (r"^(image|input|img|pretrain_image)_?(size|resolution|dim|height|width)$|^image_size$|^resolution$", IMAGE),
    (r"^patch_size$", 8),
    # Widths.
    (r"head_dim$|^d_kv$|^attention_head_size$|^head_size$|^d_head$", WIDTH // HEADS),
    (r"intermediate_size$|ffn_dim$|(^|_)ff(n|w)?_?(dim|size)?$|^d_ff$|^dff$|^dim_ff$|^mlp_dim$|ffn_hidden_size$|inner_dim$",
     2 * WIDTH),
    (r"feed_?forward(_size|_dim|_proj_dim)?$|linear_units$|mlp_hidden_size$|^n_inner$", 2 * WIDTH),
    (r"lora_rank$|_rank$", 16),
    (r"^conv_dim$|^tdnn_dim$", 16),
    (r"hidden_sizes?$|^d_model$|^n_embd$|^embed(ding)?_dims?$|^dim$|_dims?$|embedding_size$|^hidden_dims?$|_size_out$",
     WIDTH),
    (r"channels$|^num_filters$|^embedding_dim$|_proj_size$|^(q|k|v)_dim$|projection_size$|_width$|^width$|^embed_dims$",
     WIDTH),
    (r"upsample_groups$|^upsample_initial_channel$", WIDTH),
)  # fmt: skip
"""Largest value of the attributes whose name matches; the first that matches counts."""

UNTOUCHED = re.compile(
    r"^(num_channels|num_encoder_blocks|in_channels|audio_channels|type_vocab_size|num_labels|chunk_size_feed_forward"
    r"|temporal_patch_size"
    r"|head_ratio|iou_head_depth|num_output_channels|num_input_channels|out_channels|mlp_ratios?|patch_stride"
    r"|max_depth|min_depth|mask_input_channels|adapter_kernel_size|label_length"
    r"|first_k_dense_replace|rope_dim|linear_conv_kernel_dim|num_nextn_predict_layers"
    r"|quant_channels|feature_layers?|vision_feature_layer|patch_embed_input_channels"
    r"|mel_floor|num_shared_experts|n_shared_experts|scale|encoder_stride|act_dim|state_dim)$"
)
"""Attributes whose names look like a size to shrink and are none, or one that other parts count on."""
TOKEN = re.compile(r"(_token|^token|_tokens)_(id|ids|index)$|_token_id$|^(bos|eos|pad|mask|unk|sep|cls)_index$")


@dataclasses.dataclass
class Tokens:
    """New ids of tokens beyond the small vocabulary: an old id has one new id in all parts of a config."""

    ids: dict[int, int] = dataclasses.field(default_factory=dict)

    def renumber(self, value: Any, vocabulary: int) -> Any:
        if isinstance(value, (list, tuple)):
            return [self.renumber(item, vocabulary) for item in value]
        if not isinstance(value, int) or isinstance(value, bool) or value < vocabulary:
            return value
        if value not in self.ids:
            self.ids[value] = VOCABULARY - 1 - len(self.ids)
        return self.ids[value] if self.ids[value] < vocabulary else vocabulary - 1


def shrink_value(name: str, value: Any) -> Any:
    """The value that an attribute of this name has in a tiny model."""
    if UNTOUCHED.match(name):
        return value
    limit = next((limit for pattern, limit in SIZES if re.search(pattern, name)), None)
    return value if limit is None else _cap(value, limit)


def _cap(value: Any, limit: int) -> Any:
    if isinstance(value, list):
        return [_cap(item, limit) for item in value]
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    return min(value, limit)


def shrink(
    config: Any, overrides: Mapping[str, Mapping[str, Any]], tokens: Tokens | None = None, path: str = ""
) -> Any:
    """A tiny config of the same class, with the parts of it shrunk as well.

    `overrides` has values by `model_type`, and by `model_type.part` for a part in that model only; a value that is
    `...` leaves an attribute as it is.
    """
    tokens = tokens or Tokens()
    own = dict(overrides.get(config.model_type, {})) | dict(overrides.get(path, {}) if path else {})
    default = _default(type(config))
    values: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        # As a file has them: some classes join such values with lists, which does not work with tuples.
        name, value = field.name, _as_lists(vars(config).get(field.name))
        if name in own or value is None or name in ("id2label", "label2id", "transformers_version", "dtype"):
            continue
        if _is_config(value):
            small = _small_part(name, value, overrides, tokens, path or config.model_type)
            values[name] = small
            continue
        small = tokens.renumber(value, VOCABULARY) if TOKEN.search(name) else shrink_value(name, value)
        given = default is None or value != _as_lists(vars(default).get(name))
        # What is None in the definition is worked out by the class from the other values.
        decided_by_class = field.default is None or field.default_factory is not dataclasses.MISSING
        if (given and not decided_by_class) or (small != value and not decided_by_class) or TOKEN.search(name):
            values[name] = small
    _fit_layers(values, config)
    _fit_positions(values, config)
    _fit_heads(values, config)
    _fit_backbone(values, config)
    if any(field.name == "head_dim" for field in dataclasses.fields(config)):
        # Some classes leave it open and count on a checkpoint to have it.
        values.setdefault("head_dim", WIDTH // HEADS)
    values |= {name: make_value(value, overrides, tokens) for name, value in own.items() if value is not ...}
    return _with_constants(type(config), values, config, set(own))


def _with_constants(kind: type, values: dict[str, Any], large: Any, own: set[str]) -> Any:
    """The config of these values, with sizes that the class decides by itself whatever the others are."""
    small = kind(**values)
    constants = {}
    for field in dataclasses.fields(kind):
        value = _as_lists(vars(small).get(field.name))
        if field.name in values or field.name in own or _is_config(value) or value is None:
            continue
        if value == _as_lists(vars(large).get(field.name)) and shrink_value(field.name, value) != value:
            constants[field.name] = shrink_value(field.name, value)
    if not constants:
        return small
    try:
        return kind(**values, **constants)
    except (TypeError, ValueError):
        return small


def _default(kind: type) -> Any:
    try:
        return kind()
    except Exception:  # noqa: BLE001 - any class may refuse its own defaults in its own way
        return None


def _as_lists(value: Any) -> Any:
    return [_as_lists(item) for item in value] if isinstance(value, (list, tuple)) else value


def _is_config(value: Any) -> bool:
    return hasattr(value, "to_dict") and hasattr(value, "model_type")


def make_value(value: Any, overrides: Mapping[str, Mapping[str, Any]], tokens: Tokens) -> Any:
    """An override as the value it stands for: `{"model_type": ...}` is the tiny config of that type."""
    if isinstance(value, Mapping) and "model_type" in value:
        from transformers import CONFIG_MAPPING

        given = {name: part for name, part in value.items() if name != "model_type"}
        small = shrink(CONFIG_MAPPING[value["model_type"]](), overrides, tokens)
        if not given:
            return small
        merged = {**overrides, value["model_type"]: {**overrides.get(value["model_type"], {}), **given}}
        return shrink(CONFIG_MAPPING[value["model_type"]](), merged, tokens)
    return value


def _small_part(name: str, part: Any, overrides: Mapping[str, Mapping[str, Any]], tokens: Tokens, path: str) -> Any:
    if part.model_type == "timm_backbone":
        # Its nets are in a package of their own, which may not be there.
        from transformers import ResNetConfig

        stages = len(getattr(part, "out_indices", None) or (4,))
        names = [f"stage{number}" for number in range(5 - stages, 5)]
        return shrink(ResNetConfig(out_features=names), overrides, tokens)
    return shrink(part, overrides, tokens, f"{path}.{name}")


def _fit_layers(values: dict[str, Any], config: Any) -> None:
    """Of every kind of layer that a class lists by itself there is one, in the order in which they come."""
    lists = {name: vars(config).get(name) for name in ("layer_types", "mlp_layer_types", "layers_block_type")}
    known = {field.name for field in dataclasses.fields(config)}
    kinds = {name: list(dict.fromkeys(found)) for name, found in lists.items() if found and name in known}
    if not kinds or "num_hidden_layers" not in known:
        return
    count = max(2, *map(len, kinds.values()))
    values["num_hidden_layers"] = count
    for name, found in kinds.items():
        values[name] = [*found, *[found[-1]] * (count - len(found))]


def _fit_positions(values: dict[str, Any], config: Any) -> None:
    """Shares of a head that are turned by time, height and width keep their proportion."""
    for name in ("rope_parameters", "rope_scaling"):
        given = vars(config).get(name)
        if isinstance(given, dict) and given.get("mrope_section"):
            half = int(WIDTH // HEADS * (given.get("partial_rotary_factor") or 1)) // 2
            shares = [part * half // sum(given["mrope_section"]) for part in given["mrope_section"]]
            shares[-1] += half - sum(shares)
            values[name] = {**given, "mrope_section": shares}


def _fit_heads(values: dict[str, Any], config: Any) -> None:
    """Heads of keys and values stay fewer than those of queries where they were."""
    for name in [name for name in values if re.search(r"(key_value|kv)_heads$", name)]:
        queries, keys = vars(config).get("num_attention_heads"), vars(config).get(name)
        if isinstance(queries, int) and isinstance(keys, int) and keys < queries:
            values[name] = 1


def _fit_backbone(values: dict[str, Any], config: Any) -> None:
    """Feature maps are taken of the same stages; a net without stages has one layer for every map instead."""
    taken = getattr(config, "_out_features", None)
    if not taken:
        return
    if not isinstance(values.get("num_hidden_layers"), int):
        values["out_features"] = list(taken)
    elif len(taken) > 1:
        values["num_hidden_layers"] = len(taken)
        values["out_indices"] = list(range(1, len(taken) + 1))
