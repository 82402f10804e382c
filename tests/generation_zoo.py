"""Small real models that generate text: a decoder with a cache, and an encoder with a decoder."""

from __future__ import annotations

import itertools
import json
import math
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import data_zoo
import model_zoo
from data_zoo import IDS, WORDS
from task_zoo import with_values
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.measurement import Arm, SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.evaluation.generation.run import run
from winml.modelkit.evaluation.report import RunArguments, RunReport
from winml.modelkit.session.arm import arm_arguments

START, END = IDS["[CLS]"], IDS["[SEP]"]
DRIFT = 0.01
CONTEXT = 32


def tokenizer(folder: Path, *, end: bool = False) -> Path:
    """The words of `data_zoo`; a text begins with `[CLS]`, and ends with `[SEP]` where it is asked for."""
    from tokenizers import Tokenizer, processors

    data_zoo.tokenizer(folder)
    made = Tokenizer.from_file(str(folder / "tokenizer.json"))
    made.post_processor = processors.TemplateProcessing(  # type: ignore[assignment]
        single="[CLS] $A [SEP]" if end else "[CLS] $A", special_tokens=[("[CLS]", START), ("[SEP]", END)]
    )
    made.save(str(folder / "tokenizer.json"))
    return folder


def chain(**following: str) -> np.ndarray:
    """Logits after each word: 5 for the one that follows it, else 0."""
    table = np.zeros((len(WORDS), len(WORDS)), np.float32)
    for word, after in following.items():
        table[IDS[word], IDS[after]] = 5.0
    return table


def random_table(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((len(WORDS), len(WORDS))).astype(np.float32)


def losses(table: np.ndarray, ids: Sequence[int], drift: float = DRIFT) -> list[float]:
    """The loss of every token but the first, as the decoder below has it."""
    found = []
    for row, after in _rows(table, ids, drift):
        most = max(row)
        found.append(math.log(sum(math.exp(value - most) for value in row)) + most - row[after])
    return found


def hits(table: np.ndarray, ids: Sequence[int], last: int, drift: float = DRIFT) -> int:
    """How many of the last tokens are the likeliest."""
    return sum(row.index(max(row)) == after for row, after in _rows(table, ids, drift)[-last:])


def _rows(table: np.ndarray, ids: Sequence[int], drift: float) -> list[tuple[list[float], int]]:
    """The logits after each token, and the token that comes."""
    found, total = [], 0.0
    for token, after in itertools.pairwise(ids):
        total += token
        found.append(([float(value) + drift * total * place for place, value in enumerate(table[token])], after))
    return found


def decoder(folder: Path, table: np.ndarray, *, drift: float = DRIFT, context: int = CONTEXT) -> Path:
    """Logits are those of the last word, and drift by the sum of all words so far: a cache that is lost shows."""
    model = with_values(
        model_zoo.text_model(
            """g (int64[batch,sequence] input_ids, int64[batch,total] attention_mask,
                  float[batch,1,past,1] past_0_key, float[batch,1,past,1] past_0_value)
            => (float[batch,sequence,words] logits, float[batch,1,total,1] present_0_key,
                float[batch,1,total,1] present_0_value)
            <int64[2] axes = {1, 3}, int64[1] first = {1}, int64 two = {2}, int64[1] ends = {1000000},
             int64[1] axis = {2}>
            { number = Cast<to = 1>(input_ids)  key = Unsqueeze(number, axes)
              present_0_key = Concat<axis = 2>(past_0_key, key)  present_0_value = Concat<axis = 2>(past_0_value, key)
              sums = CumSum(present_0_key, two)  past = Shape<start = 2, end = 3>(past_0_key)
              mine = Slice(sums, past, ends, axis)  so_far = Squeeze(mine, first)
              drifted = Mul(so_far, drift)  row = Gather(table, input_ids)  logits = Add(row, drifted) }"""
        ),
        table=table,
        drift=(drift * np.arange(len(WORDS), dtype=np.float32)).reshape(1, 1, -1),
    )
    tokenizer(folder)
    model_zoo.saved(model, folder / "model.onnx")
    config = {
        "model": {
            "type": "test",
            "bos_token_id": START,
            "eos_token_id": END,
            "pad_token_id": 0,
            "context_length": context,
            "vocab_size": len(WORDS),
            "decoder": {
                "session_options": {"provider_options": []},
                "filename": "model.onnx",
                "num_hidden_layers": 1,
                "num_key_value_heads": 1,
                "head_size": 1,
                "inputs": {"past_key_names": "past_%d_key", "past_value_names": "past_%d_value"},
                "outputs": {"present_key_names": "present_%d_key", "present_value_names": "present_%d_value"},
            },
        },
        "search": {},
    }
    (folder / "genai_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


_PART = """g (int64[1,NEW] input_ids, int64[1,TOTAL] attention_mask, float[1,1,PAST,1] past_0_key)
    => (float[1,NEW,words] logits, float[1,1,TOTAL,1] present_0_key)
    <int64[2] axes = {1, 3}, int64[1] first = {1}, int64 two = {2}, int64[1] ends = {1000000}, int64[1] axis = {2},
     int64[1] past = {PAST}>
    { number = Cast<to = 1>(input_ids)  key = Unsqueeze(number, axes)
      present_0_key = Concat<axis = 2>(past_0_key, key)
      m = Cast<to = 1>(attention_mask)  visible = Unsqueeze(m, axes)  shown = Mul(present_0_key, visible)
      sums = CumSum(shown, two)  mine = Slice(sums, past, ends, axis)  so_far = Squeeze(mine, first)
      drifted = Mul(so_far, drift)  row = Gather(table, input_ids)  logits = Add(row, drifted) }"""


def decoder_parts(folder: Path, table: np.ndarray, *, drift: float = DRIFT, total: int = CONTEXT, new: int = 4) -> Path:
    """The decoder above in two graphs of fixed shapes, as for an NPU: `new` tokens of a prompt at once, then one."""
    parts: dict[str, Any] = {}
    weights = {"table": table, "drift": (drift * np.arange(len(WORDS), dtype=np.float32)).reshape(1, 1, -1)}
    for name, width in (("prefill", new), ("decode", 1)):
        body = _PART
        for word, size in (("NEW", width), ("TOTAL", total), ("PAST", total - width)):
            body = body.replace(word, str(size))
        (folder / name).mkdir(parents=True)
        model_zoo.saved(with_values(model_zoo.text_model(body), **weights), folder / name / "model.onnx")
        parts[name] = {"folder": name, "file": "model.onnx", "digest": f"sha256:{'0' * 64}"}
    config = {"eos_token_id": END, "pad_token_id": 0, "bos_token_id": START, "vocab_size": len(WORDS)}
    (folder / "decode" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    listed = {"schema": "winml/parts/1", "model": "decoder", "target": "cpu", "parts": parts}
    (folder / "parts.json").write_text(json.dumps(listed), encoding="utf-8")
    tokenizer(folder / "decode")
    return folder


_ENCODERS = {
    "text": """g (int64[batch,sequence] input_ids, int64[batch,sequence] attention_mask)
    => (float[batch,sequence,1] last_hidden_state) <int64[1] last = {2}>
    { number = Cast<to = 1>(input_ids)  last_hidden_state = Unsqueeze(number, last) }""",
    "speech": """g (float[batch,samples] input_values) => (float[batch,moments,1] last_hidden_state)
    <int64[3] frames = {1, -1, 4}, int64[1] axis = {2}, float sixteen = {16.0}>
    { f = Reshape(input_values, frames)  loud = ReduceMean<keepdims = 1>(f, axis)
      scaled = Mul(loud, sixteen)  last_hidden_state = Round(scaled) }""",
}
_PREFILL = """g (int64[batch,1] input_ids, float[batch,sequence,1] encoder_hidden_states)
    => (float[batch,1,words] logits, float[batch,sequence,1] present_0_encoder, float[batch,1,1] present_0_decoder)
    <int64[1] place = {1}, int64[1] last = {2}>
    { present_0_encoder = Identity(encoder_hidden_states)
      n = Cast<to = 1>(input_ids)  present_0_decoder = Unsqueeze(n, last)
      word = Gather<axis = 1>(encoder_hidden_states, place)  w = Squeeze(word, last)  number = Cast<to = 7>(w)
      logits = Gather(table, number) }"""
_DECODE = """g (int64[batch,1] input_ids, float[batch,sequence,1] past_0_encoder, float[batch,past,1] past_0_decoder)
    => (float[batch,1,words] logits, float[batch,total,1] present_0_decoder)
    <int64[1] one = {1}, int64[1] last = {2}>
    { n = Cast<to = 1>(input_ids)  new = Unsqueeze(n, last)
      present_0_decoder = Concat<axis = 1>(past_0_decoder, new)
      done = Shape<start = 1, end = 2>(past_0_decoder)  place = Add(done, one)
      word = Gather<axis = 1>(past_0_encoder, place)  w = Squeeze(word, last)  number = Cast<to = 7>(w)
      logits = Gather(table, number) }"""


def pair(folder: Path, said: Mapping[str, str] | None = None, *, takes: str = "text") -> Path:
    """Says every word of its input again, or what a word is in the other language, and ends where it ends."""
    table = np.eye(len(WORDS), dtype=np.float32)
    for word, other in (said or {}).items():
        table[IDS[word]] = np.eye(len(WORDS), dtype=np.float32)[IDS[other]]
    parts: dict[str, Any] = {}
    for name, body in (("encoder", _ENCODERS[takes]), ("prefill", _PREFILL), ("decode", _DECODE)):
        (folder / name).mkdir(parents=True)
        model = model_zoo.text_model(body)
        model_zoo.saved(model if name == "encoder" else with_values(model, table=table), folder / name / "model.onnx")
        parts[name] = {"folder": name, "file": "model.onnx", "digest": f"sha256:{'0' * 64}"}
    config = {"eos_token_id": END, "pad_token_id": 0, "decoder_start_token_id": START, "vocab_size": len(WORDS)}
    (folder / "decode" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    listed = {"schema": "winml/parts/1", "model": "pair", "target": "cpu", "parts": parts}
    (folder / "parts.json").write_text(json.dumps(listed), encoding="utf-8")
    return tokenizer(folder, end=True)


class Context:
    """Collects events."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.events: list[object] = []

    def tell(self, event: object) -> None:
        self.events.append(event)


def judged(model: Path, data: Path | str, task: str | None, **more: Any) -> RunReport:
    arm = Arm(artifact=str(model), target=Target("cpu", "cpu"), session=SessionSection(threads=1))
    section = DataSection(str(data), **more.pop("section", {}))
    given: dict[str, Any] = {"reference": False, "runtime": None, **more}
    asked = RunArguments(arm=arm_arguments(arm, None), data=section, folder=str(model), task=task, **given)
    return run(to_json(asked), Context())
