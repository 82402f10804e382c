"""Tiny decoders with a cache, as folders that both runtimes open; made in milliseconds, of random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEADS, SIZE, WIDTH, VOCABULARY = 2, 8, 16, 64
"""Of keys and values, of a head, of the hidden state, and tokens."""
MICROSOFT = "com.microsoft"


def decoder_folder(
    folder: Path, *, layers: int = 2, context: int = 128, in_place: bool = True, seed: int = 0, **changes: Any
) -> Path:
    """A folder with `genai_config.json` and a model; `in_place` has GroupQueryAttention, else the cache grows.

    `changes` are other values of `model` in the config.
    """
    folder.mkdir(parents=True, exist_ok=True)
    net = _Decoder(seed)
    hidden = net.add("Gather", "hidden", net.weight("embedding", VOCABULARY, WIDTH), "input_ids")
    attention = net.grouped if in_place else net.growing
    for layer in range(layers):
        hidden = net.add("Add", f"hidden.{layer}", hidden, attention(layer, hidden))
    net.add("MatMul", "logits", hidden, net.weight("head", WIDTH, VOCABULARY))
    onnx.save(net.model(layers), folder / "model.onnx")
    (folder / "genai_config.json").write_text(json.dumps(_config(layers, context, in_place, changes)), encoding="utf-8")
    return folder


class _Decoder:
    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, name: str, *shape: int) -> str:
        values = self._random.normal(0, 1.2 if name.startswith("w.out") else 0.4, shape).astype(np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def constant(self, name: str, value: Any) -> str:
        if all(weight.name != name for weight in self.weights):
            self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, op: str, name: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, inputs, [name], f"/{name}", domain=domain, **attributes))
        return name

    def grouped(self, layer: int, hidden: str) -> str:
        """GroupQueryAttention as onnxruntime-genai's builder makes it: lengths come from the mask."""
        if layer == 0:
            total = self.add(
                "ReduceSum", "total", "attention_mask", self.constant("last_axis", np.array([1])), keepdims=0
            )
            less = self.add("Sub", "less", total, self.constant("one", np.array(1)))
            self.add("Cast", "lengths", less, to=TensorProto.INT32)
            shape = self.add("Shape", "shape", "attention_mask")
            longest = self.add("Gather", "longest", shape, self.constant("index", np.array(1)))
            self.add("Cast", "longest32", longest, to=TensorProto.INT32)
        packed = self.add("MatMul", f"qkv.{layer}", hidden, self.weight(f"w.qkv.{layer}", WIDTH, 3 * HEADS * SIZE))
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        outputs = [f"attended.{layer}", f"present.{layer}.key", f"present.{layer}.value"]
        self.nodes.append(
            helper.make_node(
                "GroupQueryAttention",
                [packed, "", "", *past, "lengths", "longest32"],
                outputs,
                f"/attention.{layer}",
                domain=MICROSOFT,
                num_heads=HEADS,
                kv_num_heads=HEADS,
            )
        )
        return self.add("MatMul", f"out.{layer}", outputs[0], self.weight(f"w.out.{layer}", HEADS * SIZE, WIDTH))

    def growing(self, layer: int, hidden: str) -> str:
        """Attention of plain operators over a cache that grows; masked tokens and those that follow weigh nothing."""
        flat = self.constant("heads", np.array([0, 0, HEADS, SIZE]))
        parts = {}
        for part in ("query", "key", "value"):
            made = self.add("MatMul", f"{part}.{layer}", hidden, self.weight(f"w.{part}.{layer}", WIDTH, HEADS * SIZE))
            cut = self.add("Reshape", f"{part}.{layer}.cut", made, flat)
            parts[part] = self.add("Transpose", f"{part}.{layer}.t", cut, perm=[0, 2, 1, 3])
        key, value = (
            self.add("Concat", f"present.{layer}.{part}", f"past_key_values.{layer}.{part}", parts[part], axis=2)
            for part in ("key", "value")
        )
        turned = self.add("Transpose", f"key.{layer}.turned", key, perm=[0, 1, 3, 2])
        scores = self.add("MatMul", f"scores.{layer}", parts["query"], turned)
        if layer == 0:
            self._add_bias(key)
        masked = self.add("Add", f"masked.{layer}", scores, "bias")
        shares = self.add("Softmax", f"shares.{layer}", masked, axis=-1)
        seen = self.add("MatMul", f"seen.{layer}", shares, value)
        back = self.add("Transpose", f"seen.{layer}.t", seen, perm=[0, 2, 1, 3])
        joined = self.add("Reshape", f"joined.{layer}", back, self.constant("joined", np.array([0, 0, HEADS * SIZE])))
        return self.add("MatMul", f"out.{layer}", joined, self.weight(f"w.out.{layer}", HEADS * SIZE, WIDTH))

    def _add_bias(self, key: str) -> None:
        """A large negative number where a token must not look: (batch, 1, new, all)."""
        whole = self.add("Gather", "all", self.add("Shape", "key.shape", key), self.constant("two", np.array(2)))
        new = self.add("Gather", "new", self.add("Shape", "ids.shape", "input_ids"), self.constant("one", np.array(1)))
        zero = self.constant("zero", np.array(0))
        columns = self.add("Range", "columns", zero, whole, self.constant("one", np.array(1)))
        rows = self.add("Range", "rows", self.add("Sub", "before", whole, new), whole, "one")
        upright = self.add("Unsqueeze", "upright", rows, self.constant("last_axis", np.array([1])))
        later = self.add("Cast", "later", self.add("Greater", "follows", columns, upright), to=TensorProto.FLOAT)
        hidden = self.add("Sub", "padding", self.constant("one32", np.float32(1)),
                          self.add("Cast", "mask32", "attention_mask", to=TensorProto.FLOAT))  # fmt: skip
        wide = self.add("Unsqueeze", "wide", hidden, self.constant("middle", np.array([1, 2])))
        self.add("Mul", "bias", self.add("Add", "unseen", wide, later), self.constant("low", np.float32(-1e9)))

    def model(self, layers: int) -> onnx.ModelProto:
        def value(name: str, kind: int, *shape: int | str) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(name, kind, shape)

        cache = [f"{n}.{part}" for n in range(layers) for part in ("key", "value")]
        ids = value("input_ids", TensorProto.INT64, "batch", "length")
        mask = value("attention_mask", TensorProto.INT64, "batch", "total")
        past = [value(f"past_key_values.{c}", TensorProto.FLOAT, "batch", HEADS, "past", SIZE) for c in cache]
        present = [value(f"present.{c}", TensorProto.FLOAT, "batch", HEADS, "total", SIZE) for c in cache]
        logits = value("logits", TensorProto.FLOAT, "batch", "length", VOCABULARY)
        graph = helper.make_graph(self.nodes, "decoder", [ids, mask, *past], [logits, *present], self.weights)
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _config(layers: int, context: int, in_place: bool, changes: dict[str, Any]) -> dict[str, Any]:
    decoder = {
        "session_options": {"provider_options": []},
        "filename": "model.onnx",
        "head_size": SIZE,
        "hidden_size": WIDTH,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "num_hidden_layers": layers,
        "inputs": {
            "input_ids": "input_ids",
            "attention_mask": "attention_mask",
            "past_key_names": "past_key_values.%d.key",
            "past_value_names": "past_key_values.%d.value",
        },
        "outputs": {
            "logits": "logits",
            "present_key_names": "present.%d.key",
            "present_value_names": "present.%d.value",
        },
    }
    tokens = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "vocab_size": VOCABULARY}
    model = {"type": "llama", "context_length": context, **tokens, "decoder": decoder}
    search = {"do_sample": False, "max_length": context, "past_present_share_buffer": in_place}
    return {"model": {**model, **changes}, "search": search}
