"""Parts of a decoder that generate together, with open and with fixed shapes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import model_zoo
from task_zoo import with_values
from winml.modelkit.core.errors import ModelFileError, RequestError
from winml.modelkit.core.target import Target
from winml.modelkit.session.composite import Composite
from winml.modelkit.session.part_texts import fit_past

VOCABULARY = 31
TOTAL, CHUNK = 24, 4
TABLES = {
    "table": np.random.default_rng(0).standard_normal((VOCABULARY, VOCABULARY)).astype(np.float32),
    "seen": np.linspace(0.1, 3.0, VOCABULARY, dtype=np.float32).reshape(1, 1, -1),
    "place": np.linspace(3.0, 0.1, VOCABULARY, dtype=np.float32).reshape(1, 1, -1),
}
GRAPH = """g (int64[BATCH,NEW] input_ids, int64[BATCH,TOTAL] attention_mask, int64[BATCH,NEW] position_ids, PAST)
    => (float[BATCH,NEW,words] logits, float[BATCH,1,TOTAL,1] present_0_key)
    <int64[2] outer = {1, 3}, int64[1] one = {1}, int64[1] axis = {2}, int64 two = {2}, int64[1] ends = {1000000}>
    { number = Cast<to = 1>(input_ids)  key = Unsqueeze(number, outer)
      CACHE
      m = Cast<to = 1>(attention_mask)  visible = Unsqueeze(m, outer)  shown = Mul(present_0_key, visible)
      sums = CumSum(shown, two)  all = Shape<start = 1, end = 2>(attention_mask)
      count = Shape<start = 1, end = 2>(input_ids)  first = Sub(all, count)
      mine = Slice(sums, first, ends, axis)  so_far = Squeeze(mine, one)
      p = Cast<to = 1>(position_ids)  position = Unsqueeze(p, axis)
      a = Mul(so_far, seen)  b = Mul(position, place)  c = Cos(a)  d = Cos(b)
      row = Gather(table, input_ids)  rc = Add(row, c)  logits = Add(rc, d) }"""


def write_part(folder: Path, name: str, *, batch: int | str, new: int | str, total: int | str, past: bool) -> None:
    """Logits depend on the last word, on the sum of all words that the mask shows, and on the position."""
    before = total - new if isinstance(total, int) and isinstance(new, int) else "before"
    text = GRAPH.replace("CACHE", f"present_0_key = {'Concat<axis = 2>(past_0_key, key)' if past else 'Identity(key)'}")
    text = text.replace("PAST", f"float[BATCH,1,{before},1] past_0_key" if past else "").replace(", )", ")")
    for word, size in (("BATCH", batch), ("NEW", new), ("TOTAL", total)):
        text = text.replace(word, str(size))
    (folder / name).mkdir(parents=True)
    model_zoo.saved(with_values(model_zoo.text_model(text), **TABLES), folder / name / "model.onnx")


def decoder(folder: Path, *, fixed: bool = True, batch: int = 1, past: bool = True) -> Path:
    """`past` is whether the graph for prompts takes a cache; those of older folders do not."""
    size: int | str = batch if fixed else "batch"
    width: int | str = CHUNK if fixed else "sequence"
    length: int | str = (TOTAL if past else CHUNK) if fixed else "total" if past else "sequence"
    write_part(folder, "prefill", batch=size, new=width, total=length, past=past)
    write_part(folder, "decode", batch=size, new=1, total=TOTAL if fixed else "total", past=True)
    parts = {
        name: {"folder": name, "file": "model.onnx", "digest": f"sha256:{'0' * 64}"} for name in ("prefill", "decode")
    }
    listed = {"schema": "winml/parts/1", "model": "m", "target": "cpu", "parts": parts}
    (folder / "parts.json").write_text(json.dumps(listed), encoding="utf-8")
    return folder


def continue_text(words: list[int], new_tokens: int) -> list[int]:
    """What the graphs say after a text, without a cache and without padding."""
    words = list(words)
    for _ in range(new_tokens):
        seen = np.cos(np.float32(sum(words)) * TABLES["seen"][0, 0])
        place = np.cos(np.float32(len(words) - 1) * TABLES["place"][0, 0])
        words.append(int((TABLES["table"][words[-1]] + seen + place).argmax()))
    return words[-new_tokens:]


def padded(*texts: list[int]) -> dict[str, np.ndarray]:
    width = max(map(len, texts)) + 1  # one column is padding in every row
    ids, mask = np.zeros((2, len(texts), width), np.int64)
    for row, text in enumerate(texts):
        ids[row, width - len(text) :], mask[row, width - len(text) :] = text, 1
    return {"input_ids": ids, "attention_mask": mask}


def words(count: int, seed: int = 0) -> list[int]:
    return [int(word) for word in np.random.default_rng(seed).integers(1, VOCABULARY, count)]


@pytest.mark.parametrize("past", [True, False], ids=["with a cache", "of an older folder"])
@pytest.mark.parametrize("length", [1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 2, TOTAL - 5])
def test_a_prompt_longer_than_its_graph_is_read_in_pieces(length: int, past: bool, tmp_path: Path) -> None:
    text = words(length)
    with Composite(decoder(tmp_path / "m", past=past), target=Target("cpu", "cpu")) as parts:
        made = parts.generate(padded(text), new_tokens=6)
    assert made.tolist() == [continue_text(text, 6)]


@pytest.mark.parametrize("past", [True, False], ids=["with a cache", "of an older folder"])
def test_texts_of_a_batch_have_their_padding_on_the_left(past: bool, tmp_path: Path) -> None:
    long, short = words(3 * CHUNK + 1), words(2, seed=1)
    with Composite(decoder(tmp_path / "m", batch=2, past=past), target=Target("cpu", "cpu")) as parts:
        made = parts.generate(padded(long, short), new_tokens=8)
    assert made.tolist() == [continue_text(long, 8), continue_text(short, 8)]


@pytest.mark.parametrize("past", [True, False])
def test_graphs_with_open_shapes_read_a_prompt_at_once(past: bool, tmp_path: Path) -> None:
    texts = words(3 * CHUNK + 1), words(2, seed=1)
    with Composite(decoder(tmp_path / "m", fixed=False, past=past), target=Target("cpu", "cpu")) as parts:
        made = parts.generate(padded(*texts), new_tokens=40)
    assert made.tolist() == [continue_text(text, 40) for text in texts]


def test_a_text_that_does_not_fit_names_the_size_and_how_to_build_for_it(tmp_path: Path) -> None:
    with Composite(decoder(tmp_path / "m"), target=Target("cpu", "cpu")) as parts:
        text = words(TOTAL - 4)
        assert parts.generate(padded(text), new_tokens=5).tolist() == [continue_text(text, 5)]
        with pytest.raises(RequestError, match=f"need room for 25, and .* was built for {TOTAL}") as caught:
            parts.generate(padded(text), new_tokens=6)
        assert "`--dim total=25`" in (caught.value.hint or "")
        with pytest.raises(RequestError, match="2 texts were given, and .* was built for 1 at a time") as caught:
            parts.generate(padded(text, text), new_tokens=1)
        assert "`--dim batch=2`" in (caught.value.hint or "")


def test_the_newest_words_of_a_cache_stay() -> None:
    cache = np.arange(6, dtype=np.float32).reshape(1, 1, 6, 1)
    assert fit_past(cache, 4).ravel().tolist() == [2, 3, 4, 5]
    assert fit_past(cache, 0).size == 0


def test_a_short_cache_is_filled_up_before_its_words() -> None:
    cache = np.arange(1, 3, dtype=np.float32).reshape(1, 1, 2, 1)
    assert fit_past(cache, 4).ravel().tolist() == [0, 0, 1, 2]


SOURCE, SAID = 6, 12
"""Tokens that the encoder of the pair below reads, and that its decoder says."""
PAIR_PARTS = {
    "encoder": """g (int64[1,SOURCE] input_ids, int64[1,SOURCE] attention_mask) => (float[1,SOURCE,1] last_hidden_state)
        <int64[1] last = {2}> { x = Cast<to = 1>(input_ids)  last_hidden_state = Unsqueeze(x, last) }""",
    "prefill": """g (int64[1,1] input_ids, float[1,SOURCE,1] encoder_hidden_states,
                    int64[1,SOURCE] encoder_attention_mask)
        => (float[1,1,words] logits, float[1,1,1,1] present_0_decoder_key, float[1,1,SOURCE,1] present_0_encoder_key)
        <int64[2] outer = {1, 3}, int64[1] one = {1}, int64[1] two = {2}>
        { n = Cast<to = 1>(input_ids)  present_0_decoder_key = Unsqueeze(n, outer)
          present_0_encoder_key = Unsqueeze(encoder_hidden_states, one)
          m = Cast<to = 1>(encoder_attention_mask)  visible = Unsqueeze(m, two)
          shown = Mul(encoder_hidden_states, visible)  sum = ReduceSum(shown, one)
          a = Mul(sum, seen)  c = Cos(a)  row = Gather(table, input_ids)  logits = Add(row, c) }""",
    "decode": """g (int64[1,1] input_ids, int64[1,SOURCE] encoder_attention_mask, int64[1,SAID] decoder_attention_mask,
                   int64[1,1] position_ids, float[1,1,PAST,1] past_0_decoder_key,
                   float[1,1,SOURCE,1] past_0_encoder_key)
        => (float[1,1,words] logits, float[1,1,SAID,1] present_0_decoder_key)
        <int64[2] outer = {1, 3}, int64[1] one = {1}, int64[1] two = {2}>
        { n = Cast<to = 1>(input_ids)  new = Unsqueeze(n, outer)
          present_0_decoder_key = Concat<axis = 2>(past_0_decoder_key, new)
          e = Squeeze(past_0_encoder_key, one)  em = Cast<to = 1>(encoder_attention_mask)  ev = Unsqueeze(em, two)
          es = Mul(e, ev)  source = ReduceSum(es, one)
          d = Squeeze(present_0_decoder_key, one)  dm = Cast<to = 1>(decoder_attention_mask)  dv = Unsqueeze(dm, two)
          ds = Mul(d, dv)  said = ReduceSum(ds, one)
          p = Cast<to = 1>(position_ids)  q = Unsqueeze(p, two)
          a = Mul(source, seen)  b = Mul(said, place)  f = Mul(q, seen)  c = Cos(a)  g = Cos(b)  h = Cos(f)
          row = Gather(table, input_ids)  rc = Add(row, c)  rg = Add(rc, g)  logits = Add(rg, h) }""",
}


def fixed_pair(folder: Path) -> Path:
    """What it says depends on all of the source, on all that was said, and on how much that was."""
    parts = {}
    for name, text in PAIR_PARTS.items():
        for word, size in (("SOURCE", SOURCE), ("SAID", SAID), ("PAST", SAID - 1)):
            text = text.replace(word, str(size))
        (folder / name).mkdir(parents=True)
        model = model_zoo.text_model(text)
        used = {key: value for key, value in TABLES.items() if f"{key})" in text or f"({key}," in text}
        model_zoo.saved(with_values(model, **used), folder / name / "model.onnx")
        parts[name] = {"folder": name, "file": "model.onnx", "digest": f"sha256:{'0' * 64}"}
    config = {"decoder_start_token_id": 1, "pad_token_id": 7, "vocab_size": VOCABULARY}
    (folder / "decode" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    listed = {"schema": "winml/parts/1", "model": "m", "target": "cpu", "parts": parts}
    (folder / "parts.json").write_text(json.dumps(listed), encoding="utf-8")
    return folder


def say(source: list[int], new_tokens: int) -> list[int]:
    """What the pair says, without a cache and without padding."""
    seen, place = TABLES["seen"][0, 0], TABLES["place"][0, 0]
    told = np.cos(np.float32(sum(source)) * seen)
    said = [1]
    for number in range(new_tokens):
        logits = TABLES["table"][said[-1]] + told
        if number:
            logits = logits + np.cos(np.float32(sum(said)) * place) + np.cos(np.float32(number) * seen)
        said.append(int(logits.argmax()))
    return said[1:]


@pytest.mark.parametrize("length", [1, 4, SOURCE])
def test_a_pair_of_fixed_shapes_says_what_it_says_without_them(length: int, tmp_path: Path) -> None:
    text = words(length, seed=2)
    given = {"input_ids": np.array([text]), "attention_mask": np.ones((1, length), np.int64)}
    with Composite(fixed_pair(tmp_path / "m"), target=Target("cpu", "cpu")) as parts:
        made = parts.generate(given, new_tokens=SAID)
        assert made.tolist() == [say(text, SAID)]
        padded_text = {name: np.pad(array, ((0, 0), (0, 9))) for name, array in given.items()}
        assert parts.generate(padded_text, new_tokens=SAID).tolist() == made.tolist(), "longer than the graph, masked"


def test_what_a_pair_of_fixed_shapes_cannot_take_names_the_size(tmp_path: Path) -> None:
    with Composite(fixed_pair(tmp_path / "m"), target=Target("cpu", "cpu")) as parts:
        with pytest.raises(
            RequestError, match=f"a text of 7 tokens was given, and .* was built for {SOURCE}"
        ) as caught:
            parts.generate({"input_ids": np.ones((1, 7), np.int64)}, new_tokens=2)
        assert "`--dim sequence=7`" in (caught.value.hint or "")
        with pytest.raises(RequestError, match=f"13 tokens were asked for, and .* was built for {SAID}") as caught:
            parts.generate({"input_ids": np.ones((1, 2), np.int64)}, new_tokens=13)
        assert "`--dim total=13`" in (caught.value.hint or "")
        with pytest.raises(RequestError, match="2 texts were given, and .* was built for 1 at a time"):
            parts.generate({"input_ids": np.ones((2, 2), np.int64)}, new_tokens=2)


def test_a_closed_cache_without_a_mask_is_refused(tmp_path: Path) -> None:
    """As parts of earlier versions have it: what fills the cache up would be read as words."""
    folder = fixed_pair(tmp_path / "m")
    text = """g (int64[1,1] input_ids, float[1,1,11,1] past_0_decoder_key) => (float[1,1,1,1] present_0_decoder_key)
        <int64[2] outer = {1, 3}> { n = Cast<to = 1>(input_ids)  present_0_decoder_key = Unsqueeze(n, outer) }"""
    model_zoo.saved(model_zoo.text_model(text), folder / "decode" / "model.onnx")
    with (
        Composite(folder, target=Target("cpu", "cpu")) as parts,
        pytest.raises(ModelFileError, match="a cache of fixed length .* takes no `decoder_attention_mask`") as caught,
    ):
        parts.generate({"input_ids": np.ones((1, 2), np.int64)}, new_tokens=2)
    assert caught.value.hint == "build the folder again"
