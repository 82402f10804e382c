"""What a decoder that is in no table keeps between two steps, found by running its class in PyTorch.

A cache of plain keys and values grows with the text and goes in and out of one graph. Other kinds (a state space,
linear attention, keys with an index beside them) do not fit it, and are named.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer, EncoderDecoderCache

from winml.modelkit.core.dataclass import dataclass

CHUNKS = (6, 3, 1)
"""Tokens of a text that is given piece by piece: a prompt, several tokens after it, and one."""
_TOLERANCE = 1e-3
"""Largest difference of logits with and without the cache, relative to the largest number."""
_STATES = {"cache_params": "the states of a state space", "state": "the states of a recurrent network", "mems": "mems"}
"""What classes take in place of `past_key_values`."""


class OtherCache(Exception):
    """The past of a decoder is of another kind than keys and values; the message says which, in one line."""


@dataclass(frozen=True)
class LayerCache:
    """Heads and the size of a head, for the keys and for the values of a layer."""

    key: tuple[int, int]
    value: tuple[int, int]


def takes_positions(model: Any) -> bool:
    """Whether a class takes the place of every token; others count from the mask, or have none."""
    return "position_ids" in inspect.signature(model.forward).parameters


def find_cache(model: Any, ids: Tensor, layers: int | None) -> tuple[LayerCache, ...]:
    """Keys and values of every layer; raises OtherCache where a text in pieces does not give the logits of the whole.

    `ids` is a text for each of two sequences, of as many tokens as the chunks have. `layers` is how many layers the
    model really has where fewer were made to try it.
    """
    _check_signature(model)
    try:
        with torch.inference_mode():
            whole = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False, return_dict=True).logits
            cache, pieces = _run_pieces(model, ids)
    except (OtherCache, MemoryError):
        raise
    except Exception as error:  # whatever the code of a model raises
        raise OtherCache(f"the class does not run with a cache of keys and values: {_say(error)}") from error
    found = _read_layers(cache, ids)
    difference = float((whole - pieces).abs().max() / whole.abs().max().clamp(min=1e-6))
    if not difference <= _TOLERANCE:
        raise OtherCache(
            f"a text in pieces gives other logits than the whole, by {difference:.2g} of the largest: keys and values "
            "are not all that it keeps"
        )
    return found if layers is None else _read_all_layers(model, ids, layers)


def find_window(model: Any) -> int | None:
    """How many tokens a layer looks back at most, in a model that has such layers."""
    try:
        layers = DynamicCache(config=model.config).layers
    except Exception:  # noqa: BLE001 - a config that transformers makes no cache from says nothing
        return None
    windows = [int(layer.sliding_window) for layer in layers if getattr(layer, "is_sliding", False)]
    return min(windows, default=None)


def _check_signature(model: Any) -> None:
    takes = inspect.signature(model.forward).parameters
    if "past_key_values" not in takes:
        kept = next((said for name, said in _STATES.items() if name in takes), None)
        raise OtherCache("the class takes no `past_key_values`" + (f" but {kept}" if kept else ""))
    if not {"input_ids", "attention_mask"} <= set(takes):
        raise OtherCache("the class takes no `attention_mask`, so that texts of a batch must have one length")
    try:
        usual = DynamicCache(config=model.config)
    except Exception:  # noqa: BLE001 - a config that transformers makes no cache from says nothing
        return
    for number, layer in enumerate(usual.layers):
        kind = type(layer).__name__
        if "LinearAttention" in kind:
            raise OtherCache(
                f"layer {number} keeps states of linear attention or of a state space, not only keys and values"
            )
        if "Indexed" in kind:
            raise OtherCache(f"layer {number} keeps an index of its keys beside them (sparse attention)")
        if not isinstance(layer, DynamicLayer):
            raise OtherCache(f"layer {number} keeps a `{kind}`, not plain keys and values")


def _run_pieces(model: Any, ids: Tensor) -> tuple[Any, Tensor]:
    """The cache after a text that was given in pieces, and the logits of all pieces."""
    cache = DynamicCache()
    done, logits = 0, []
    for length in CHUNKS:
        until = done + length
        places: dict[str, Tensor] = {}
        if takes_positions(model):
            places["position_ids"] = torch.arange(done, until, device=ids.device)[None].expand(len(ids), length)
        output = model(
            input_ids=ids[:, done:until],
            attention_mask=torch.ones_like(ids[:, :until]),
            past_key_values=cache,
            use_cache=True,
            return_dict=True,
            **places,
        )
        kept = getattr(output, "past_key_values", None)
        if isinstance(kept, EncoderDecoderCache):
            raise OtherCache("it keeps keys and values of an encoder too")
        if kept is None:
            raise OtherCache("the class keeps its past inside itself (recurrent states) and returns no keys and values")
        if kept is not cache:
            raise OtherCache(f"it returns a `{type(kept).__name__}` in place of the cache that it was given")
        logits.append(output.logits)
        done = until
    return cache, torch.cat(logits, dim=1)


def _read_layers(cache: Any, ids: Tensor) -> tuple[LayerCache, ...]:
    found = []
    for number, layer in enumerate(cache.layers):
        keys, values = getattr(layer, "keys", None), getattr(layer, "values", None)
        if not isinstance(keys, Tensor) or not isinstance(values, Tensor):
            raise OtherCache(f"layer {number} has no keys and values")
        for what, tensor in (("keys", keys), ("values", values)):
            if tensor.ndim != 4 or tensor.shape[0] != ids.shape[0] or tensor.shape[2] != ids.shape[1]:
                raise OtherCache(
                    f"{what} of layer {number} have the shape {list(tensor.shape)} for {ids.shape[0]} texts of "
                    f"{ids.shape[1]} tokens, not (batch, heads, length, size)"
                )
            if tensor.dtype != torch.float32:
                raise OtherCache(f"{what} of layer {number} are of type {tensor.dtype}, not float32")
        found.append(LayerCache(key=_sizes(keys), value=_sizes(values)))
    if not found:
        raise OtherCache("no layer wrote into the cache")
    return tuple(found)


def _read_all_layers(model: Any, ids: Tensor, layers: int) -> tuple[LayerCache, ...]:
    """The cache of a model with all of its layers, without the memory for their weights: only shapes are computed."""
    config = copy.deepcopy(model.config)
    config.num_hidden_layers = layers
    try:
        with torch.device("meta"), torch.inference_mode():
            whole = type(model)._from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
            cache, _ = _run_pieces(whole, ids.to("meta"))
    except (OtherCache, MemoryError):
        raise
    except Exception as error:  # whatever the code of a model raises
        raise OtherCache(
            f"the sizes of its {layers} layers are not known without its weights: {_say(error)}"
        ) from error
    return _read_layers(cache, ids)


def describe_cache(layers: tuple[LayerCache, ...]) -> str:
    """The cache in a sentence."""
    kinds = {(layer.key, layer.value) for layer in layers}
    if len(kinds) > 1:
        return f"keys and values of {len(layers)} layers, which differ in heads or sizes"
    key, value = layers[0].key, layers[0].value
    sizes = f"size {key[1]}" if key == value else f"sizes {key[1]} (keys) and {value[1]} (values)"
    return f"keys and values of {len(layers)} layers with {key[0]} heads of {sizes}"


def _sizes(tensor: Tensor) -> tuple[int, int]:
    return int(tensor.shape[1]), int(tensor.shape[3])


def _say(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


def count_dropped(model: Any, config: Mapping[str, Any]) -> int | None:
    """How many layers the config has where the model was made with fewer to try it; None where it has all."""
    made = getattr(model.config, "num_hidden_layers", None)
    for name in ("num_hidden_layers", "num_layers", "n_layer", "n_layers"):
        wanted = config.get(name)
        if isinstance(wanted, int) and isinstance(made, int):
            return wanted if made < wanted else None
    return None
