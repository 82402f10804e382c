"""Train the digits classifier that ships as `winml.modelkit.sample`, verify it and put its three files in place.

    python scripts/train_sample.py            train, verify, and only then replace the shipped files
    python scripts/train_sample.py --verify   verify the files that ship

Needs torch, scikit-learn, onnx and onnxruntime. A broken promise is named and ends the script with exit code 1.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import onnx
import onnxruntime as ort
import torch
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Images = NDArray[np.float32]
    Labels = NDArray[np.int64]

REPOSITORY = Path(__file__).resolve().parents[1]
SAMPLE = REPOSITORY / "src/winml/modelkit/sample"
MODEL, CALIBRATION, TEST = "digits.onnx", "calibration.npz", "test.npz"

SEED = 17
THREADS = 2  # fixed: the number of threads decides the order of sums, and so the trained bytes
EPOCHS = 7
BATCH = 32
PEAK_LEARNING_RATE = 1e-2
SATURATION_WEIGHT = 0.1

PIXELS = 8
SCALE = 6
SIDE = PIXELS * SCALE
LEVELS = 16
TEST_COUNT = 500
CALIBRATION_COUNT = 128

MAX_TOTAL_KB = 1500
MIN_ACCURACY_PCT = 97.0
MAX_INT8_DROP_PCT = 1.0
COST_MS = (2.0, 5.0)
MIN_INT8_SPEEDUP = 2.0


class Split(NamedTuple):
    """Images [N,1,S,S] in 0..1 and their digits."""

    image: Images
    label: Labels


class Splits(NamedTuple):
    """Three disjoint parts of the dataset."""

    train: Split
    calibration: Split
    test: Split


class Promise(NamedTuple):
    """One property of the shipped files: what was measured, what is wanted, and whether it holds."""

    name: str
    measured: str
    wanted: str
    held: bool


def digits() -> Splits:
    """Return scikit-learn's 1797 digits, split with equal shares of each class."""
    bunch = load_digits()
    # Nearest neighbour keeps the 17 grey levels: a float32 image then packs into about 120 bytes.
    image = np.kron(bunch.images / LEVELS, np.ones((SCALE, SCALE)))[:, None].astype(np.float32)
    label = bunch.target.astype(np.int64)
    image, test_image, label, test_label = train_test_split(
        image, label, test_size=TEST_COUNT, stratify=label, random_state=SEED
    )
    image, calibration_image, label, calibration_label = train_test_split(
        image, label, test_size=CALIBRATION_COUNT, stratify=label, random_state=SEED
    )
    return Splits(Split(image, label), Split(calibration_image, calibration_label), Split(test_image, test_label))


def conv(inputs: int, outputs: int, *, kernel: int, stride: int = 1) -> list[nn.Module]:
    """Return a padded convolution and its batch normalisation, which the export folds into it."""
    return [
        nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False),
        nn.BatchNorm2d(outputs),
    ]


class Residual(nn.Module):
    """Two 5x5 convolutions around a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*conv(channels, channels, kernel=5), nn.ReLU(), *conv(channels, channels, kernel=5))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.body(x))


class DigitsNet(nn.Module):
    """A ResNet of four convolutions, 154 730 parameters.

    5x5 kernels on 48 channels give int8 the most to win where the CPU has AVX2 but no VNNI: measured on 24x24
    maps 2.1 to 2.2 times per convolution, against 1.9 for 3x3 on 64 channels and 1.7 for 3x3 on 32.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(*conv(1, 32, kernel=3, stride=2), nn.ReLU())
        self.widen = nn.Sequential(*conv(32, 48, kernel=5), nn.ReLU())
        self.block = Residual(48)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(48, 10)

    def forward(self, image: Tensor) -> Tensor:
        features = self.block(self.widen(self.stem(image)))
        return self.head(torch.flatten(self.pool(features), 1))


def saturation(stem: nn.Conv2d) -> Tensor:
    """Return by how much pairs of stem weights exceed what int8 kernels without VNNI can add.

    Those kernels add two products u8 x s8 in 16 bits: beside full-scale pixels, two weights that follow each other
    saturate when their sum passes 128 steps, and a channel's largest weight is 127. The strokes of a digit are
    full-scale neighbours. Free stems lost 0.6 to 1.8 points in int8 (three seeds), all of it in this convolution.
    """
    weight = stem.weight.flatten(1)
    pairs = weight[:, :-1].unflatten(1, (-1, 2)).sum(dim=2).abs()
    return torch.relu(pairs - weight.abs().amax(dim=1, keepdim=True)).sum()


def train(split: Split) -> DigitsNet:
    """Return a classifier trained on `split`, the same for the same machine and torch version."""
    torch.manual_seed(SEED)
    torch.set_num_threads(THREADS)
    torch.use_deterministic_algorithms(True)
    image, label = torch.from_numpy(split.image), torch.from_numpy(split.label)
    # channels_last trains a fifth faster on CPU than the default layout.
    net = DigitsNet().to(memory_format=torch.channels_last).train()
    steps = len(image) // BATCH
    optimizer = torch.optim.AdamW(net.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, PEAK_LEARNING_RATE, total_steps=EPOCHS * steps)
    for epoch in range(EPOCHS):
        losses = []
        for picked in torch.randperm(len(image))[: steps * BATCH].split(BATCH):
            loss = nn.functional.cross_entropy(net(image[picked]), label[picked])
            loss = loss + SATURATION_WEIGHT * saturation(net.stem[0])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        say(f"epoch {epoch + 1}/{EPOCHS}: loss {statistics.fmean(losses):.3f}")
    return net.eval().to(memory_format=torch.contiguous_format)


def export(net: DigitsNet, path: Path) -> None:
    """Write `net` as one ONNX file with a dynamic leading axis and no trace of this machine."""
    # The exporter that torch prefers needs onnxscript, a dependency for this one file.
    warnings.filterwarnings("ignore", message="You are using the legacy TorchScript-based ONNX export")
    torch.onnx.export(
        net,
        (torch.zeros(1, 1, SIDE, SIDE),),
        path,
        dynamo=False,
        opset_version=17,
        input_names=["image"],
        output_names=["logits"],
        dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}},
    )
    model = onnx.load(path)
    del model.metadata_props[:]
    model.graph.ClearField("doc_string")
    for node in model.graph.node:
        node.ClearField("doc_string")
        del node.metadata_props[:]
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def build(folder: Path) -> None:
    """Train, and write the model and its two data files into `folder`."""
    splits = digits()
    started = time.perf_counter()
    net = train(splits.train)
    say(f"trained on {len(splits.train.label)} images in {time.perf_counter() - started:.0f} s")
    export(net, folder / MODEL)
    np.savez_compressed(folder / CALIBRATION, image=splits.calibration.image)
    np.savez_compressed(folder / TEST, image=splits.test.image, label=splits.test.label)


class Reader(CalibrationDataReader):
    """Feeds calibration images one at a time."""

    def __init__(self, image: Images) -> None:
        self._feeds = iter([{"image": one[None]} for one in image])

    def get_next(self) -> dict[str, Images] | None:
        return next(self._feeds, None)


def quantize(model: Path, image: Images, path: Path) -> None:
    """Write the u8s8 per-channel QDQ model that `image` calibrates."""
    quantize_static(
        model,
        path,
        Reader(image),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        per_channel=True,
    )


def open_session(path: Path) -> ort.InferenceSession:
    """Return a session on the CPU execution provider with one thread."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def accuracy_pct(session: ort.InferenceSession, test: Split) -> float:
    """Return the share of `test` that the session names correctly."""
    (logits,) = session.run(None, {"image": test.image})
    return float(np.mean(logits.argmax(axis=1) == test.label)) * 100


def costs_ms(
    sessions: Iterable[ort.InferenceSession], image: Images, *, rounds: int = 150, runs: int = 8
) -> list[list[float]]:
    """Return, per session, the CPU time of one inference of `image` in each round, measured interleaved."""
    feed = {"image": image}
    samples: list[tuple[ort.InferenceSession, list[float]]] = [(session, []) for session in sessions]
    for _ in range(rounds):
        for session, cost in samples:
            session.run(None, feed)  # brings this session's weights back into the cache
            started = time.process_time()
            for _ in range(runs):
                session.run(None, feed)
            cost.append((time.process_time() - started) / runs * 1e3)
    return [cost for _, cost in samples]


def verify(folder: Path) -> list[Promise]:
    """Return every promise of the sample, measured on the files in `folder`."""
    with np.load(folder / CALIBRATION) as calibration, np.load(folder / TEST) as test:
        calibration_image = calibration["image"]
        held_out = Split(test["image"], test["label"])
    return [
        *file_promises(folder),
        *data_promises(calibration_image, held_out),
        *speed_promises(folder / MODEL, calibration_image, held_out),
    ]


def file_promises(folder: Path) -> list[Promise]:
    """Return what the files promise: their size, and a model that names nothing of this machine."""
    kb = {name: (folder / name).stat().st_size / 1e3 for name in (MODEL, CALIBRATION, TEST)}
    model = onnx.load(folder / MODEL)
    shapes = [
        f"{value.name} [{', '.join(d.dim_param or str(d.dim_value) for d in value.type.tensor_type.shape.dim)}]"
        for value in (*model.graph.input, *model.graph.output)
    ]
    wanted = [f"image [batch, 1, {SIDE}, {SIDE}]", "logits [batch, 10]"]
    content = (folder / MODEL).read_bytes()
    traces = [text for text in (str(REPOSITORY), str(Path.home()), "site-packages", ".py") if text.encode() in content]
    return [
        *(Promise(name, f"{size:.0f} kB", "", True) for name, size in kb.items()),
        Promise("size", f"{sum(kb.values()):.0f} kB", f"< {MAX_TOTAL_KB} kB", sum(kb.values()) < MAX_TOTAL_KB),
        Promise("interface", ", ".join(shapes), ", ".join(wanted), shapes == wanted),
        Promise("machine paths", ", ".join(traces) or "none", "none", not traces),
    ]


def data_promises(calibration_image: Images, test: Split) -> list[Promise]:
    """Return what the data promises: enough images, and none in two of the three splits."""
    parts = [{one.tobytes() for one in image} for image in (digits().train.image, calibration_image, test.image)]
    shared = sum(map(len, parts)) - len(set.union(*parts))
    counts = [len(part) for part in parts]
    return [
        Promise("images", "train {}, calibration {}, test {}".format(*counts), "", True),
        Promise("images in two splits", str(shared), "0", shared == 0),
        Promise("calibration images", str(counts[1]), f">= {CALIBRATION_COUNT}", counts[1] >= CALIBRATION_COUNT),
        Promise("test images", str(counts[2]), f">= {TEST_COUNT}", counts[2] >= TEST_COUNT),
    ]


def speed_promises(model: Path, calibration_image: Images, test: Split) -> list[Promise]:
    """Return what the model promises, in float and in int8: accuracy and the cost of one inference."""
    with tempfile.TemporaryDirectory() as scratch:
        int8_path = Path(scratch) / "int8.onnx"
        quantize(model, calibration_image, int8_path)
        fp32, int8 = open_session(model), open_session(int8_path)
    gc.collect()  # the calibrator's session has threads of its own, which the process clock would count
    fp32_pct, int8_pct = accuracy_pct(fp32, test), accuracy_pct(int8, test)
    drop = fp32_pct - int8_pct
    fp32_cost, int8_cost = costs_ms([fp32, int8], test.image[:1])
    # The least, because whatever else runs on the machine only adds to a round.
    fp32_ms, int8_ms = min(fp32_cost), min(int8_cost)
    low, high = COST_MS
    return [
        Promise("fp32 accuracy", f"{fp32_pct:.1f} %", f"> {MIN_ACCURACY_PCT} %", fp32_pct > MIN_ACCURACY_PCT),
        Promise("int8 accuracy", f"{int8_pct:.1f} %", f"> {MIN_ACCURACY_PCT} %", int8_pct > MIN_ACCURACY_PCT),
        Promise("int8 drop", f"{drop:.1f} points", f"< {MAX_INT8_DROP_PCT}", drop < MAX_INT8_DROP_PCT),
        Promise("fp32 cost", spread(fp32_cost), f"{low} to {high} ms", low <= fp32_ms <= high),
        Promise("int8 cost", spread(int8_cost), "", True),
        Promise(
            "int8 speedup",
            f"{fp32_ms / int8_ms:.2f}",
            f">= {MIN_INT8_SPEEDUP}",
            fp32_ms / int8_ms >= MIN_INT8_SPEEDUP,
        ),
    ]


def spread(cost_ms: list[float]) -> str:
    """Return the least and the median of `cost_ms` as text."""
    return f"{min(cost_ms):.2f} ms (median {statistics.median(cost_ms):.2f})"


def say(text: str) -> None:
    """Print progress for people."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Train unless told only to verify; return 1 when a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verify", action="store_true", help="verify the files that ship, train nothing")
    only_verify = parser.parse_args().verify
    with tempfile.TemporaryDirectory() as scratch:
        folder = SAMPLE if only_verify else Path(scratch)
        if not only_verify:
            build(folder)
        promises = verify(folder)
        for promise in promises:
            wanted = f"  ({promise.wanted})" if promise.wanted else ""
            print(f"{'ok' if promise.held else 'BROKEN':<7}{promise.name:<22}{promise.measured}{wanted}")
        broken = [promise.name for promise in promises if not promise.held]
        if broken:
            say(f"error: {', '.join(broken)} not as promised; no file was replaced")
            say("hint: cost and speedup need an idle machine; `--verify` measures again without training")
            return 1
        if not only_verify:
            for name in (MODEL, CALIBRATION, TEST):
                shutil.copyfile(folder / name, SAMPLE / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
