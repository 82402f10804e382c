"""Perplexity of a built decoder against PyTorch's own loss."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

import data_zoo
from generation_zoo import judged
from winml.modelkit.evaluation.metrics import estimate


@pytest.mark.slow
def test_perplexity_is_that_of_pytorch(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime_genai")
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    source = data_zoo.tokenizer(tmp_path / "source")
    transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(source / "tokenizer.json"), pad_token="[PAD]", bos_token="[CLS]", eos_token="[SEP]"
    ).save_pretrained(source)
    torch.manual_seed(0)
    # More tokens than any layer is wide: the builder takes a layer as wide as the vocabulary for the last one.
    config = transformers.LlamaConfig(
        vocab_size=80, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=64, bos_token_id=2, eos_token_id=3,
        pad_token_id=0, initializer_range=0.5,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    model.save_pretrained(source)
    built = tmp_path / "built"
    program = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", str(source), "-o", str(built)]
    subprocess.run([*program, "-p", "fp32", "-e", "cpu"], check=True, capture_output=True)

    words = [word for word in data_zoo.WORDS if word.isalpha()]
    texts = [" ".join(words[(place * step + step) % len(words)] for place in range(40)) for step in range(1, 9)]
    report = judged(built, data_zoo.jsonl(tmp_path / "data.jsonl", [{"text": text} for text in texts]), "perplexity")
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(source)
    loss, count = 0.0, 0
    with torch.no_grad():
        for text in texts:
            ids = torch.tensor([tokenizer(text)["input_ids"]])
            loss += model(input_ids=ids, labels=ids).loss.item() * (ids.shape[1] - 1)
            count += ids.shape[1] - 1
    found = estimate(report.metrics[0], report.series)
    assert count == sum(report.series["tokens"])
    assert found.value == pytest.approx(math.exp(loss / count), rel=1e-4)
