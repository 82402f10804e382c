"""What `winml build` of a Hugging Face folder costs on top of what it wraps, as a ratio of processor time.

    python benchmarks/build/run.py [--rounds 3] [--json FILE]

The plain arm is a script with only the calls that the result needs: load the model, export it, let onnxruntime optimize
it, and run it beside PyTorch. The other is `winml build -m FOLDER --target cpu` with an empty cache. Both are fresh
processes, in turn; the limit is 1.5.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import record

LIMIT = 1.5
MODEL = """
import sys, torch, transformers
torch.manual_seed(0)
config = transformers.BertConfig(num_hidden_layers=2)
transformers.BertForSequenceClassification(config).save_pretrained(sys.argv[1])
"""
PLAIN = """
import sys, numpy, onnxruntime, torch, transformers
from torch.export import Dim
from transformers.exporters import OnnxConfig, OnnxExporter

folder, output = sys.argv[1:]
cls = transformers.BertForSequenceClassification
model = cls.from_pretrained(folder, attn_implementation="eager").eval()
inputs = {
    "input_ids": torch.randint(3, 1000, (2, 16)),
    "attention_mask": torch.ones(2, 16, dtype=torch.long),
    "token_type_ids": torch.zeros(2, 16, dtype=torch.long),
}
axes = {name: {0: Dim.DYNAMIC, 1: Dim.DYNAMIC} for name in inputs}
program = OnnxExporter().export(model, dict(inputs), config=OnnxConfig(dynamic_shapes=axes, opset_version=20))
program.save(output + "/export.onnx", external_data=False)
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
options.optimized_model_filepath = output + "/optimized.onnx"
session = onnxruntime.InferenceSession(output + "/export.onnx", options, providers=["CPUExecutionProvider"])
made = session.run(None, {name: tensor.numpy() for name, tensor in inputs.items()})
with torch.no_grad():
    wanted = cls.from_pretrained(folder).eval()(**inputs).logits.numpy()
assert numpy.abs(made[0] - wanted).max() < 1e-3
"""


def cpu_s(argv: list[str], env: dict[str, str]) -> float:
    """Processor time of a command with everything that it starts."""
    before = os.times()
    subprocess.run(argv, check=True, capture_output=True, env=env)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="winml-build-") as temporary:
        folder = Path(temporary)
        subprocess.run([sys.executable, "-c", MODEL, folder / "bert"], check=True, capture_output=True)
        ratios = []
        for number in range(options.rounds):
            place = folder / str(number)
            place.mkdir()
            env = {**os.environ, "WINML_CACHE": str(place / "cache")}
            build = ["build", "-m", str(folder / "bert"), "--target", "cpu", "-o", str(place / "out")]
            arms = {
                "plain": [sys.executable, "-c", PLAIN, str(folder / "bert"), str(place)],
                "winml": [sys.executable, "-m", "winml.modelkit", *build],
            }
            names = list(arms) if number % 2 else list(arms)[::-1]
            took = {name: cpu_s(arms[name], env) for name in names}
            ratios.append(took["winml"] / took["plain"])
            print(f"round {number + 1}: plain {took['plain']:.1f} s, winml {took['winml']:.1f} s, {ratios[-1]:.2f}x")
    print(f"median {statistics.median(ratios):.2f}x of plain, limit {LIMIT}x")
    if options.json:
        rows = [("winml build / plain script, CPU", ratios)]
        record.write_results(options.json, f"python benchmarks/build/run.py --rounds {options.rounds}", rows)


if __name__ == "__main__":
    main()
