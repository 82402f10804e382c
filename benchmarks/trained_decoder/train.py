"""Trains a small Llama on the CPU and saves it as a Hugging Face folder, with texts that it has not seen.

    python benchmarks/trained_decoder/train.py DIR

What int8, int4 and fp16 cost is seen only in weights that mean something, and no trained model can be downloaded here.
The corpus is the standard library of the Python that runs this: modules in their order, every tenth held out, and sums
of two numbers. A token is a byte. DIR gets the model (`config.json`, `model.safetensors`, `tokenizer.json`),
`heldout.jsonl` for task `perplexity` and `sums.jsonl` for task `text-generation`.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

HELD_OUT = 10
"""Every tenth module is not trained on."""
TEXT = 1200
"""Characters of a held-out text."""
TEXTS, SUMS = 64, 200
LARGEST = 9
"""The largest number of a sum: all sums are seen while training, and are to be kept by what is built of it."""
CONTEXT, LENGTH, BATCH = 256, 256, 8
SUM_ROWS = 2
"""Rows of a batch that are sums."""
RATE = 3e-3


def read_modules() -> tuple[list[str], list[str]]:
    """The text of the modules to train on, and of those that are held out."""
    library = Path(sysconfig.get_paths()["stdlib"])
    files = [path for path in sorted(library.glob("*.py")) if path.stat().st_size > 2000]
    texts = [path.read_text(encoding="utf-8", errors="ignore") for path in files]
    train = [text for number, text in enumerate(texts) if number % HELD_OUT]
    return train, [text for number, text in enumerate(texts) if not number % HELD_OUT]


def make_tokenizer() -> Any:
    """A token for every byte; a text begins with `<s>`."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    names = ["<pad>", "<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE(vocab={name: i for i, name in enumerate(names)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>", model_max_length=CONTEXT
    )


def make_model(vocabulary: int) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=96,
        intermediate_size=256,
        num_hidden_layers=3,
        num_attention_heads=3,
        num_key_value_heads=1,
        max_position_embeddings=CONTEXT,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        tie_word_embeddings=False,
    )
    return LlamaForCausalLM(config)


def sum_line(draw: random.Random) -> tuple[str, str]:
    first, second = draw.randint(0, LARGEST), draw.randint(0, LARGEST)
    return f"{first}+{second}=", f"{first + second}"


def train(model: Any, tokenizer: Any, texts: list[str], steps: int) -> None:
    """Texts at random places with a sum now and then; the rate rises, then falls to zero."""
    import torch

    draw = random.Random(0)
    corpus = torch.tensor(tokenizer("\n".join(texts), add_special_tokens=False)["input_ids"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    warm = max(steps // 20, 1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda n: min((n + 1) / warm, 0.5 * (1 + math.cos(math.pi * n / steps)))
    )
    started, model = time.monotonic(), model.train()
    for step in range(steps):
        rows = []
        for row in range(BATCH):
            if row < SUM_ROWS:
                line = "".join("".join(sum_line(draw)) + "\n" for _ in range(LENGTH // 4))
                ids = tokenizer(line)["input_ids"][:LENGTH]
                rows.append(torch.tensor(ids))
            else:
                place = draw.randrange(len(corpus) - LENGTH)
                rows.append(torch.cat([torch.tensor([1]), corpus[place : place + LENGTH - 1]]))
        ids = torch.stack(rows)
        loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 20 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.3f}, {time.monotonic() - started:.0f} s", file=sys.stderr)


def write_data(folder: Path, held_out: list[str]) -> list[str]:
    """Texts and sums that were not trained on as such; returns the texts."""
    draw = random.Random(1)
    texts = []
    for number in range(TEXTS):
        source = held_out[number % len(held_out)]
        place = draw.randrange(max(len(source) - TEXT, 1))
        texts.append(source[place : place + TEXT])
    rows = [{"text": text} for text in texts]
    (folder / "heldout.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    sums = []
    for _ in range(SUMS):
        shown = "".join("".join(sum_line(draw)) + "\n" for _ in range(3))
        asked, right = sum_line(draw)
        sums.append({"prompt": shown + asked, "label": right})
    (folder / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in sums), encoding="utf-8")
    return texts


def measure(model: Any, tokenizer: Any, texts: list[str]) -> float:
    """The perplexity that PyTorch finds, with windows of the context that share half."""
    import torch

    loss, count = 0.0, 0
    with torch.no_grad():
        for text in texts:
            ids = torch.tensor(tokenizer(text)["input_ids"])
            done = 1
            for start in range(0, len(ids), CONTEXT // 2):
                window = ids[start : start + CONTEXT]
                logits = model.eval()(input_ids=window[None]).logits[0].float()
                first = max(done - start, 1)
                losses = torch.nn.functional.cross_entropy(
                    logits[first - 1 : len(window) - 1], window[first:], reduction="sum"
                )
                loss, count = loss + losses.item(), count + len(window) - first
                done = start + len(window)
                if done >= len(ids):
                    break
    return math.exp(loss / count)


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=700)
    asked = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the same sums on every machine, and no waiting for a core that others use
    asked.folder.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer()
    model = make_model(len(tokenizer))
    texts, held_out = read_modules()
    train(model, tokenizer, texts, asked.steps)
    model.save_pretrained(asked.folder)
    tokenizer.save_pretrained(asked.folder)
    found = measure(model, tokenizer, write_data(asked.folder, held_out))
    print(f"perplexity of {TEXTS} held-out texts: {found:.4f}")


if __name__ == "__main__":
    main()
