"""Every reader of bytes that others wrote, seeds for it, and damage that its inputs may have.

Used by the short run in `tests/e2e/test_fuzz.py` and by `benchmarks/robustness/fuzz.py`, which runs for
minutes or hours.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import json
import random
import struct
import tempfile
import wave
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from build_values import manifest
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.core.values import to_json

CORPUS = Path(__file__).parent / "fuzz_corpus"
Read = Callable[[Path, bytes], None]
"""Reads bytes as its kind of file; the folder is the one place where it may write."""


@dataclass(frozen=True)
class Reader:
    """A reader with its inputs."""

    read: Read
    seeds: Callable[[], list[bytes]]
    form: str = "bytes"
    """`json`, `lines` of JSON, `text` or `bytes`: what damage makes sense."""
    errors: tuple[type[Exception], ...] = ()
    """Errors besides ours that are its answer to a bad file."""


# Reading


def _file(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _config(folder: Path, data: bytes) -> None:
    from winml.modelkit.building import config

    config.load(str(_file(folder, "config.json", data)))


def _build_folder(folder: Path, data: bytes) -> None:
    from winml.modelkit.building.model_argument import model_argument

    _file(folder, "model.onnx", b"\x08")
    _file(folder, "build_config.json", data)
    model_argument(str(folder))


def _manifest(folder: Path, data: bytes) -> None:
    from winml.modelkit.building.pipeline import folder as folders
    from winml.modelkit.feed.feed_command import Wanted, coordinates
    from winml.modelkit.store.cache import Cache

    _file(folder, "build/build_manifest.json", data)
    coordinates(folder / "build", Wanted())
    folders.look(folder / "build")
    _file(folder, "cache/builds/b/build_manifest.json", data)
    list(Cache(folder / "cache").iter_builds())


def _compile_config(folder: Path, data: bytes) -> None:
    from winml.modelkit.building.compile.command import load_settings
    from winml.modelkit.core.config import check_compile
    from winml.modelkit.ep.trust import NOTHING

    check_compile(load_settings(str(_file(folder, "c.json", data))).section, NOTHING.gate("c.json"))


def _input_specs(folder: Path, data: bytes) -> None:
    from winml.modelkit.building.export.resolve import _apply_specs
    from winml.modelkit.cli.option_values import input_specs

    _apply_specs((), input_specs(str(_file(folder, "s.json", data))))


def _space(folder: Path, data: bytes) -> None:
    from winml.modelkit.core.target import Target
    from winml.modelkit.search.knob_table import make_space

    make_space({}, (Target("cpu", "cpu"),), str(_file(folder, "space.json", data)))


def _trace(folder: Path, data: bytes) -> None:
    from winml.modelkit.core import plain_text
    from winml.modelkit.core.values import to_json
    from winml.modelkit.measuring.trace import diff_traces
    from winml.modelkit.render.trace import diff_text

    path = str(_file(folder, "t.json", data))
    result = diff_traces(path, path)
    diff_text(plain_text.values(result.diff), 10)
    json.dumps(to_json(result), allow_nan=False)


def _comparison(folder: Path, data: bytes) -> None:
    from winml.modelkit.core import plain_text
    from winml.modelkit.measuring.rejudge import rejudge
    from winml.modelkit.render.compare import compare_text

    compare_text(plain_text.values(rejudge(_file(folder, "c.json", data))))


def _finding(folder: Path, data: bytes) -> None:
    from winml.modelkit.knowledge import files, findings

    files.read(_file(folder, "cpu-001.json", data), findings._read_finding)


def _recipe(folder: Path, data: bytes) -> None:
    from winml.modelkit.knowledge import recipes

    recipes.find_recipe(str(_file(folder, "r.json", data)))


def _family(folder: Path, data: bytes) -> None:
    from winml.modelkit.knowledge import files, models

    files.load(_file(folder, "f.json", data), models.FamilyFile)


def _sessions(folder: Path, data: bytes) -> None:
    from winml.modelkit.findings import judge as kb_judge

    kb_judge.group_rows(kb_judge.load_record(_file(folder, "r.json", data)))


def _trials(folder: Path, data: bytes) -> None:
    from winml.modelkit.findings import draft as kb_draft

    _file(folder, f"run/{kb_draft.TRIALS}", data)
    kb_draft.draft_findings(folder / "run")


def _contribution(folder: Path, data: bytes) -> None:
    from winml.modelkit.render.contribution import contribution_markdown
    from winml.modelkit.support.review.contribution import FILE
    from winml.modelkit.support.review.dossier import Dossier

    _file(folder, f"contribution/{FILE}", data)
    contribution_markdown(Dossier(folder / "contribution").contribution)


def _search_journal(folder: Path, data: bytes) -> None:
    from winml.modelkit.search.records import read_records, replay
    from winml.modelkit.store import journal

    replay(read_records(journal.read(_file(folder, "journal.jsonl", _summed(data))).records, "journal.jsonl"))


def _matrix_journal(folder: Path, data: bytes) -> None:
    _raw_journal(folder, _summed(data))


def _raw_journal(folder: Path, data: bytes) -> None:
    from winml.modelkit.build_matrix.command import read_status
    from winml.modelkit.core import plain_text
    from winml.modelkit.render.matrix import cells_text

    _file(folder, "matrix/journal.jsonl", data)
    cells_text(plain_text.values(read_status(str(folder / "matrix"))))


def _summed(data: bytes) -> bytes:
    """Lines of records with numbers and checksums that fit; bytes that are no records stay as they are."""
    from winml.modelkit.store import journal

    try:
        return b"".join(journal.encode(seq, json.loads(line)) for seq, line in enumerate(data.splitlines()))
    except (ValueError, TypeError, RecursionError):
        return data


def _parts(folder: Path, data: bytes) -> None:
    from winml.modelkit.core.build_folder import load_parts

    _file(folder, "parts.json", data)
    load_parts(folder)


def _environment(folder: Path, data: bytes) -> None:
    from winml.modelkit.ep.environments import python_in, read_environment

    _file(folder, f"e/{python_in(Path()).as_posix()}", b"")
    _file(folder, "e/winml-environment.json", data)
    read_environment(folder / "e")


def _content(folder: Path, data: bytes) -> None:
    from winml.modelkit.feed.content import decode

    decode(data, source="a feed")


def _oci(folder: Path, data: bytes) -> None:
    from winml.modelkit.feed.oci import content_of

    content_of(data, source="a feed")


def _tags(folder: Path, data: bytes) -> None:
    from winml.modelkit.feed.names import parse_version
    from winml.modelkit.feed.registry import Registry

    registry: Any = SimpleNamespace(base="http://x")
    for tag in Registry._names(registry, data, "tags", "p"):
        parse_version(tag)


def _logins(folder: Path, data: bytes) -> None:
    from winml.modelkit.feed.credentials import _in_file

    _in_file(_file(folder, "auth.json", data), "host")


def _samples(folder: Path, name: str, data: bytes, specs: tuple[Any, ...], **section: Any) -> None:
    from winml.modelkit.core.config import DataSection
    from winml.modelkit.data.dataset import open_dataset

    found = open_dataset(
        DataSection(str(_file(folder, name, data)), **section), specs, model_folder=folder, labels=True
    )
    for _, sample in zip(range(20), found, strict=False):
        assert sample.inputs


def _spec(name: str, kind: str, *shape: Any) -> Any:
    from winml.modelkit.graph.inputs import InputSpec

    return InputSpec(name, f"tensor({kind})", shape)


def _npz(folder: Path, data: bytes) -> None:
    _samples(folder, "d.npz", data, (_spec("x", "float", "batch", 3),))


def _npz_inputs(folder: Path, data: bytes) -> None:
    from winml.modelkit.graph.inputs import from_npz

    from_npz(_file(folder, "d.npz", data), [_spec("x", "float", "batch", 3)])


def _npz_outputs(folder: Path, data: bytes) -> None:
    from winml.modelkit.evaluation import kept_outputs

    kept_outputs.read(_file(folder, "o.npz", data))


def _package(folder: Path, data: bytes) -> None:
    """A package whose manifest is the data, with the files that its first seed lists."""
    from winml.modelkit.packaging import loader

    place = folder / "package"
    _file(place, loader.MANIFEST, data)
    _file(place, "models/m.onnx", PACKED)
    manifest, _ = loader.verify_package(loader.FolderFiles(place))
    for artifact in manifest["artifacts"]:
        loader._unmet(artifact["conditions"])


def _package_archive(folder: Path, data: bytes) -> None:
    from winml.modelkit.packaging import loader

    path = _file(folder, "p.zip", data)
    files = loader.open_files(path)
    try:
        loader.verify_package(files)
    finally:
        files.close()


def _package_signature(folder: Path, data: bytes) -> None:
    from winml.modelkit.packaging import loader

    loader.verify_signature(b"{}", data.decode("utf-8", "replace"), _fixed_key().public_text)


def _public_key(folder: Path, data: bytes) -> None:
    from winml.modelkit.packaging import loader

    loader.read_public_key(data.decode("utf-8", "replace"))


def _secret_key(folder: Path, data: bytes) -> None:
    from winml.modelkit.packaging import keys

    keys.load_secret_key(_file(folder, "key", data), None)


def _named_files(folder: Path, data: bytes) -> None:
    from winml.modelkit.packaging import loader

    loader.named_files(data)


def _request_head(folder: Path, data: bytes) -> None:
    from winml.modelkit.serving import http_messages

    http_messages.parse_head(data)


def _chat_request(chat: bool, folder: Path, data: bytes) -> None:
    from winml.modelkit.serving import openai_form

    openai_form.read_request(data, chat=chat, has_template=True)


def _table(name: str, folder: Path, data: bytes) -> None:
    _samples(folder, name, data, (_spec("x", "float", "batch", 3), _spec("t", "string", "batch")))


def _image(folder: Path, data: bytes) -> None:
    from winml.modelkit.data.image_config import Steps
    from winml.modelkit.data.images import decode_image, pixels

    image = decode_image(data, "RGB", "an image")
    steps = Steps(resize=(8, 8), resample=2, crop=None, scale=1 / 255, mean=None, std=None)
    pixels(image, steps, channels=3)
    decode_image(data, None, "an image")


def _image_processor(folder: Path, data: bytes) -> None:
    from PIL import Image

    from winml.modelkit.data.image_config import read_steps
    from winml.modelkit.data.images import _for_channels, pixels

    path = _file(folder, "preprocessor_config.json", data)
    pixels(Image.new("RGB", (20, 30)), _for_channels(read_steps(path), 3, path), channels=3)


def _recording(folder: Path, data: bytes) -> None:
    from winml.modelkit.data.audio import SpeechEncoder

    SpeechEncoder(_spec("input_values", "float", 1, None), None, 16_000, True, {}).encode(data, "a recording")


def _labels(folder: Path, data: bytes) -> None:
    from winml.modelkit.evaluation.labels import class_names

    _file(folder, "config.json", data)
    class_names(folder)


WEIGHTS = json.dumps({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}}).encode()


def _described(folder: Path) -> None:
    from winml.modelkit.building.export.describe import describe
    from winml.modelkit.building.export.folder import ModelFolder
    from winml.modelkit.core import plain_text
    from winml.modelkit.render.inspect import folder_text

    found = describe(ModelFolder(folder / "hf"))
    json.dumps(to_json(found))
    folder_text(plain_text.values(found))


def _hf_config(folder: Path, data: bytes) -> None:
    _file(folder, "hf/config.json", data)
    _file(folder, "hf/model.safetensors", struct.pack("<Q", len(WEIGHTS)) + WEIGHTS + bytes(12))
    _described(folder)


BERT = json.dumps({"model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 99}).encode()


def _hf_index(folder: Path, data: bytes) -> None:
    _hf_config(folder, BERT)
    _file(folder, "hf/model.safetensors.index.json", data)
    _described(folder)


def _safetensors(folder: Path, data: bytes) -> None:
    _file(folder, "hf/config.json", BERT)
    _file(folder, "hf/model.safetensors", data)
    _described(folder)


def _qnn_csv(folder: Path, data: bytes) -> None:
    from winml.modelkit.session.monitor.qnn.csv_parser import QnnCsv

    list(QnnCsv(_file(folder, "p.csv", data)).runs())


def _qhas(folder: Path, data: bytes) -> None:
    from winml.modelkit.session.monitor.qnn.qhas_parser import read_qhas

    json.dumps(read_qhas(_file(folder, "q.json", data)).summary)


def _qnn_types(folder: Path, data: bytes) -> None:
    from winml.modelkit.session.monitor.qnn.op_trace_file import qnn_types

    qnn_types(_file(folder, "q.json", data))


def _vitisai(folder: Path, data: bytes) -> None:
    from winml.modelkit.session.monitor.vitisai_monitor import read_report

    read_report(_file(folder, "v.json", data))


def _ort_profile(folder: Path, data: bytes) -> None:
    from winml.modelkit.session.monitor.ort_profile import read_profile

    read_profile(_file(folder, "p.json", data))


def _skill(folder: Path, data: bytes) -> None:
    from winml.modelkit.knowledge.skill_command import check_skills

    _file(folder, "skills/a/SKILL.md", data)
    check_skills(str(folder / "skills"), lambda words, whole: None, lambda option: None)


def _model_list(folder: Path, data: bytes) -> None:
    from winml.modelkit.build_matrix.models import check_models, parse_list

    _file(folder, "m.onnx", b"\x08")
    _file(folder, "a b.onnx", b"\x08")
    check_models(parse_list(data.decode(errors="replace"), folder, source="list"))


def _outline(folder: Path, data: bytes) -> None:
    from winml.modelkit.graph.outline import outline

    outline(_file(folder, "m.onnx", data))


class _Workers:
    """One worker for all models; a model may end it, which is an answer too."""

    worker: Any = None

    @classmethod
    def describe(cls, folder: Path, data: bytes) -> None:
        from winml.modelkit.core import plain_text
        from winml.modelkit.render.inspect import inspect_text
        from winml.modelkit.worker.client import Worker

        if cls.worker is None or not cls.worker.alive:
            cls.close()
            cls.worker = Worker(preload=("winml.modelkit.graph.describe",))
        path = _file(folder, "m.onnx", data)
        found = cls.worker.call("graph.describe", {"path": str(path), "dims": {}}, timeout_s=20)
        inspect_text(plain_text.values({"model": "m.onnx", **found}))

    @classmethod
    def close(cls) -> None:
        if cls.worker is not None:
            cls.worker.close()
            cls.worker = None


# Seeds


def _json(*values: Any) -> Callable[[], list[bytes]]:
    return lambda: [json.dumps(value).encode() for value in values]


def _shipped(folder: str, count: int = 4) -> Callable[[], list[bytes]]:
    def read() -> list[bytes]:
        from winml.modelkit import knowledge

        root = Path(str(knowledge.__file__)).parent / folder
        return [path.read_bytes() for path in sorted(root.glob("*.json"))[:count]]

    return read


def _saved_npz() -> list[bytes]:
    found = []
    for save in (np.savez, np.savez_compressed):
        stream = io.BytesIO()
        save(stream, x=np.arange(30, dtype=np.float32).reshape(10, 3), label=np.arange(10))
        found.append(stream.getvalue())
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00v\x00{}")
    return [*found, stream.getvalue()]


def _of_parquet() -> dict[str, Reader]:
    """The reader of parquet, where its package is."""
    return {} if find_spec("pyarrow") is None else {"parquet table": Reader(_parquet, _parquets)}


def _parquet(folder: Path, data: bytes) -> None:
    from winml.modelkit.data.tables import open_table

    table = open_table(_file(folder, "d.parquet", data))
    list(table.rows(None, range(min(table.count, 50))))


def _parquets() -> list[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    objects = [{"bbox": [[0.0, 0.0, 2.0, 3.0]] * n, "category": [1] * n} for n in (1, 2, 0)]
    features = {"label": {"names": ["a", "b"], "_type": "ClassLabel"}}
    table = pa.table(
        {"x": ["a", "b", None], "file": [{"bytes": b"1", "path": "p"}] * 3, "label": [0, 1, 1], "o": objects}
    )
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    found = []
    for packed in ("none", "snappy", "zstd"):
        stream = io.BytesIO()
        pq.write_table(table, stream, compression=packed, row_group_size=2, write_page_checksum=packed == "zstd")
        found.append(stream.getvalue())
    return found


def _packed() -> list[bytes]:
    return [gzip.compress(lines, mtime=0) for lines in _lines({"x": [1, 2, 3], "t": "a", "label": 0})()]


def _images() -> list[bytes]:
    from PIL import Image

    image = Image.effect_noise((24, 16), 40).convert("RGB")
    found = []
    for kind in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"):
        stream = io.BytesIO()
        image.save(stream, kind)
        found.append(stream.getvalue())
    return found


def _waves() -> list[bytes]:
    found = []
    for width in (1, 2, 3):
        stream = io.BytesIO()
        with wave.open(stream, "wb") as out:
            out.setnchannels(width)
            out.setsampwidth(width)
            out.setframerate(16_000)
            out.writeframes(bytes(range(36)) * width)
        found.append(stream.getvalue())
    return found


def _models() -> list[bytes]:
    import model_zoo

    made = [model_zoo.conv_net(channels=4), model_zoo.embedding(), model_zoo.relu(), model_zoo.divides_int_min()]
    return [model.SerializeToString() for model in made]


_DIGEST = "sha256:" + "0" * 64
SESSION = {
    "ep": "cpu", "device": "cpu", "model": "m", "hypothesis": "h1", "opset": 17, "passes": None,
    "session_p50s_ms": [1.0, 1.1, 1.2],
}  # fmt: skip
CONFIG = {
    "schema": "winml/build-config/1", "model": "m.onnx", "target": "cpu", "precision": "fp32", "export": None,
    "optimize": {"passes": [], "fixed_dims": {}, "opset": None}, "quantize": {"mode": "dynamic"}, "compile": {},
    "session": {"threads": 1, "config_entries": {}, "ep_options": {}}, "eval": None,
}  # fmt: skip
MANIFEST = to_json(manifest())
CELL = {
    "version": "v1", "package": "p", "run_stamp": "s", "hf_id": "m", "source": "m.onnx", "task": None, "priority": None,
    "ep": "cpu", "device": "cpu", "combo": "cpu", "target": "cpu", "precision": "fp32", "compile": False, "folder": "m",
}  # fmt: skip
MATRIX = [
    {"record": "run", "run_stamp": "s", "feed": None, "cells": [CELL], "jobs": 1, "max_disk": None, "keep_local": False,
     "cluster": None, "at": "t"},
    {"record": "node", "name": "n", "environment": {}},
    {"record": "build", "version": "v1", "status": "ok", "stage": "complete", "seconds": 2.0, "at": "t", "error": None,
     "digest": _DIGEST, "bytes": 7, "objects": [_DIGEST], "shared": [], "files_by": "link", "computed": ["optimize"]},
    {"record": "upload", "version": "v1", "status": "uploaded", "feed": "f", "at": "t", "digest": _DIGEST,
     "reference": "r", "sent_bytes": 7},
]  # fmt: skip
SERIES = {"metric": "cpu", "values": {"cpu": [0.1, 0.2], "wall": [0.1, 0.2]}, "disturbed": None}
ENVIRONMENT = {
    "machine": {"system": "Linux", "release": "6", "architecture": "x86_64", "cpu": "x", "cores": 2}, "winml": "0.1.0",
    "python": "3.11", "numpy": "2", "runtime": {"name": "onnxruntime", "version": "1"}, "priority": None, "load": 1.0,
    "ep": {"name": "cpu", "version": "1"}, "power": {"governor": None}, "pressure_pct": None,
}  # fmt: skip
TRIAL = {
    "id": "h0", "choice": [], "outcome": "baseline", "reason": "", "option": None, "same_as": None, "series": None,
    "facts": {"config": {}, "environment": ENVIRONMENT, "ms": {"wall": 1.0}}, "because": [], "seconds": 1.0,
}  # fmt: skip
IDENTITY = {
    "model": "sha256:1", "targets": [{"target": "cpu", "simulated": False}], "objective": "size", "calibration": None,
    "baseline": {"target": "cpu"}, "knobs": {"a": ["default", "b"]}, "inputs": {}, "versions": {"cpu": {"cpu": "1"}},
    "gate": {"kind": "agreement", "data": None, "task": "outputs", "min_metric": None, "max_drop": None,
             "min_agreement": 0.99, "judge": "interval", "digest": None},
}  # fmt: skip
SEARCH = [
    {"kind": "study", "winml": "0.1.0", "identity": IDENTITY},
    {"kind": "calibration", "values": {"cpu": [0.1], "wall": [0.1]}},
    {"kind": "trial", "trial": TRIAL, "seconds": 1.0},
    {"kind": "trial", "trial": TRIAL | {"id": "h1", "outcome": "measured", "choice": [["a", "b"]], "series": SERIES}},
    {"kind": "rounds", "trial": "h1", "series": SERIES, "seconds": 1.0},
    {"kind": "confirmation", "trial": "h1", "confirmed": True, "measured": {}, "seconds": 1.0,
     "verdict": {"verdict": "KEEP", "reason": "r", "gain_pct": 9.0, "interval_pct": [8.0, 10.0], "rounds": 3}},
    {"kind": "preparation", "seconds": 2.0},
    {"kind": "evidence", "finding": "cpu-001", "holds": True, "words": "w"},
]  # fmt: skip


def _lines(*records: Any) -> Callable[[], list[bytes]]:
    return lambda: [b"".join(json.dumps(record).encode() + b"\n" for record in records)]


def _text(*texts: str) -> Callable[[], list[bytes]]:
    return lambda: [text.encode() for text in texts]


QHAS_ROW = {
    "qnn_op": "a", "num_dominant_path_cycles_htp_0": 5, "dram_read": 1, "dram_write": 2, "vtcm_read": 3,
    "vtcm_write": 4, "num_htp_ops": 1,
}  # fmt: skip
QHAS_SUM = {
    "time_us": 1, "graph_execute_us": 2, "percent_utilization": 3, "total_dram_read": 4, "total_dram_write": 5,
    "peak_vtcm_alloc": 6, "timeline_cycles": 7,
}  # fmt: skip
QHAS = {"data": {"htp_overall_summary": {"data": [QHAS_SUM]}, "qnn_op_instances_nodes": {"data": [QHAS_ROW]}}}
PROFILE = [
    {"cat": "Session", "pid": 1, "tid": 2, "dur": 5, "ts": 1, "ph": "X", "name": "model_loading"},
    {"cat": "Node", "pid": 1, "tid": 2, "dur": 5, "ts": 9, "ph": "X", "name": "n_kernel_time",
     "args": {"op_name": "Conv", "provider": "CPUExecutionProvider", "node_index": "0",
              "output_type_shape": [{"float": [1, 2]}]}},
    {"cat": "Session", "pid": 1, "tid": 2, "dur": 50, "ts": 8, "ph": "X", "name": "model_run", "args": {}},
]  # fmt: skip
CSV = (
    "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier\n"
    "1,NODE,120,CYCLES,BACKEND,SUB-EVENT,a:OpId_1 (cycles)\n"
    "2,BACKEND,12,US,BACKEND,ROOT,Accelerator (execute) time\n"
    "3,EXECUTE,50,US,BACKEND,ROOT,graph\n"
)
LAYER = {"digest": _DIGEST, "size": 3, "annotations": {"org.opencontainers.image.title": "model.onnx"}}
PREPROCESSOR = {
    "image_processor_type": "ViTImageProcessor", "do_resize": True, "size": {"height": 8, "width": 8}, "resample": 2,
    "do_rescale": True, "rescale_factor": 0.00392, "do_normalize": True, "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5], "do_center_crop": False, "crop_size": {"height": 8, "width": 8},
}  # fmt: skip
VIT = {"model_type": "vit", "architectures": ["ViTForImageClassification"], "image_size": 32, "vision_config": {}}
CLIP = {
    "model_type": "clip", "architectures": ["CLIPModel"], "text_config": {"vocab_size": 9}, "auto_map": {},
    "vision_config": {"image_size": 32},
}  # fmt: skip


PACKED = b"\x08\x08\x3a\x00"
PACKAGE = {
    "schema": "winml/package-manifest/1", "winml": "0.1.0", "name": "m",
    "files": {"models/m.onnx": {"digest": f"sha256:{hashlib.sha256(PACKED).hexdigest()}", "bytes": len(PACKED)}},
    "artifacts": [
        {
            "target": "qnn/npu", "model": "models/m.onnx", "files": ["models/m.onnx"],
            "session": {
                "threads": None, "optimization_level": "all", "config_entries": {}, "ep_options": {"soc_model": "60"},
            },
            "conditions": {
                "provider": "QNNExecutionProvider", "device": "npu", "systems": ["Linux"], "soc": "soc_model=60",
                "onnxruntime_at_least": "1.24", "provider_package": "onnxruntime-qnn", "provider_at_least": "2.7.0",
                "memory_bytes": 1,
            },
        }
    ],
}  # fmt: skip
HEAD = b"POST /predict?values=true HTTP/1.1\r\nHost: 127.0.0.1:1\r\nContent-Length: 3\r\nConnection: close\r\n\r\n"
CHAT = {
    "model": "m", "stream": True, "stream_options": {"include_usage": True}, "stop": ["x"], "max_tokens": 3, "n": 1,
    "messages": [{"role": "user", "content": "a"}, {"role": "user", "content": [{"type": "text", "text": "b"}]}],
    "temperature": 0.5,
}  # fmt: skip


def _archives() -> list[bytes]:
    made = []
    for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", kind) as archive:
            archive.writestr("package.json", json.dumps(PACKAGE))
            archive.writestr("models/m.onnx", PACKED)
        made.append(stream.getvalue())
    return made


def _signatures() -> list[bytes]:
    from winml.modelkit.packaging import keys

    return [keys.sign(_fixed_key(), b"{}", "a comment").encode()]


def _fixed_key() -> Any:
    from winml.modelkit.packaging import keys

    seed = bytes(32)
    return keys.SecretKey(b"fakenumb", seed, keys.ed25519_public(seed))


def _secret_keys() -> list[bytes]:
    from winml.modelkit.packaging import keys

    with tempfile.TemporaryDirectory() as name:
        keys.write_key(_fixed_key(), Path(name) / "key", Path(name) / "key.pub")
        return [(Path(name) / "key").read_bytes()]


def _models_that_name_files() -> list[bytes]:
    location = b"\x0a\x08location\x12\x01w"
    tensor = b"\x6a" + bytes([len(location)]) + location
    graph = b"\x2a" + bytes([len(tensor)]) + tensor
    return [PACKED, b"\x08\x08\x3a" + bytes([len(graph)]) + graph]


def _contents() -> list[bytes]:
    from winml.modelkit.feed.content import Content, FileEntry, encode

    return [encode(Content({"a/b.onnx": FileEntry(_DIGEST, 3), "c": FileEntry(_DIGEST, 0)}))]


def _monitor_errors() -> dict[str, tuple[type[Exception], ...]]:
    from winml.modelkit.session.monitor.qnn.csv_parser import CsvError
    from winml.modelkit.session.monitor.qnn.qhas_parser import QhasError
    from winml.modelkit.session.monitor.vitisai_monitor import ReportError

    return {"csv": (CsvError,), "qhas": (QhasError,), "vitisai": (ReportError,)}


PARTS = {
    "schema": "winml/parts/1",
    "model": "org/name",
    "target": "cpu",
    "parts": {"a": {"folder": "a", "file": "model.onnx", "digest": f"sha256:{64 * '0'}", "sizes": {}, "ranges": {}}},
}


@functools.cache
def readers() -> dict[str, Reader]:
    """All readers by name."""
    from winml.modelkit.packaging.loader import PackageError
    from winml.modelkit.serving.http_messages import Refused
    from winml.modelkit.support.review.dossier import NotAContribution

    errors = _monitor_errors()
    return {
        "manifest of a package": Reader(_package, _json(PACKAGE), "json", (PackageError,)),
        "package as an archive": Reader(_package_archive, _archives, errors=(PackageError,)),
        "signature of a package": Reader(_package_signature, _signatures, "text", (PackageError,)),
        "public key": Reader(_public_key, lambda: [_fixed_key().public_text.encode()], "text", (PackageError,)),
        "secret key": Reader(_secret_key, _secret_keys, "text"),
        "files that a model names": Reader(
            _named_files, _models_that_name_files, errors=(IndexError, ValueError, RecursionError)
        ),
        "head of a request": Reader(_request_head, lambda: [HEAD], "text", (Refused,)),
        "chat request": Reader(functools.partial(_chat_request, True), _json(CHAT), "json", (Refused,)),
        "completion request": Reader(
            functools.partial(_chat_request, False), _json({"prompt": ["a"], "max_tokens": 1}), "json", (Refused,)
        ),
        "build config": Reader(_config, _json(CONFIG), "json"),
        "build folder": Reader(_build_folder, _json(CONFIG), "json"),
        "build manifest": Reader(_manifest, _json(MANIFEST), "json"),
        "compile config": Reader(_compile_config, _json({"target": "cpu", "compile": {"compiler": "ort"}}), "json"),
        "input specs": Reader(_input_specs, _json({"ids": {"dtype": "int64", "shape": ["batch", 3]}}), "json"),
        "search space": Reader(_space, _json({"schema": "winml/space/1", "knobs": {"session.threads": ["1"]}}), "json"),
        "operator trace": Reader(_trace, list, "json"),
        "stored comparison": Reader(_comparison, list, "json"),
        "finding": Reader(_finding, _shipped("findings"), "json"),
        "recipe": Reader(_recipe, _shipped("recipes"), "json"),
        "model family": Reader(_family, _shipped("models"), "json"),
        "recorded sessions": Reader(
            _sessions, _json({"kind": "medians", "rows": [SESSION, SESSION | {"hypothesis": "h0", "opset": "auto"}]}),
            "json",
        ),
        "trials of a run": Reader(_trials, _lines({"hypothesis": "h", "target": "cpu", "verdict": {}}), "lines"),
        "contribution": Reader(_contribution, list, "json", (NotAContribution,)),
        "journal of a search": Reader(_search_journal, _lines(*SEARCH), "lines"),
        "journal of a matrix": Reader(_matrix_journal, _lines(*MATRIX), "lines"),
        "raw journal": Reader(_raw_journal, lambda: [_summed(_lines(*MATRIX)()[0])], "bytes"),
        "parts": Reader(_parts, _json(PARTS), "json"),
        "environment": Reader(
            _environment, _json({"schema": "winml/environment/1", "ep": "e", "distribution": "d", "version": "1"}),
            "json",
        ),
        "content of a feed": Reader(
            _content,
            _contents,
            "json",
        ),
        "OCI manifest": Reader(_oci, _json({"schemaVersion": 2, "layers": [LAYER]}), "json"),
        "tags": Reader(_tags, _json({"name": "r", "tags": ["0.0.0-20260101-cpu-cpu-model", "x"]}), "json"),
        "logins": Reader(_logins, _json({"auths": {"host": {"auth": "YTpi"}}}), "json"),
        "npz data": Reader(_npz, _saved_npz),
        "npz inputs": Reader(_npz_inputs, _saved_npz),
        "npz outputs": Reader(_npz_outputs, _saved_npz),
        "CSV table": Reader(
            functools.partial(_table, "d.csv"), _text('x,t,label\n"[1,2,3]",a,0\n"[4,5,6]","b ""c""",1\n'), "text"
        ),
        "TSV table": Reader(functools.partial(_table, "d.tsv"), _text("x\tt\tlabel\n[1,2,3]\ta\t0\n"), "text"),
        "JSONL table": Reader(
            functools.partial(_table, "d.jsonl"), _lines({"x": [1, 2, 3], "t": "a", "label": 0}), "lines"
        ),
        **_of_parquet(),
        "packed JSONL table": Reader(functools.partial(_table, "d.jsonl.gz"), _packed),
        "image": Reader(_image, _images),
        "image processor": Reader(_image_processor, _json(PREPROCESSOR), "json"),
        "recording": Reader(_recording, _waves),
        "names of classes": Reader(_labels, _json({"id2label": {"0": "a", "1": "b"}}), "json"),
        "config of a model": Reader(_hf_config, _json(json.loads(BERT), VIT, CLIP), "json"),
        "index of weights": Reader(
            _hf_index, _json({"metadata": {"total_size": 1}, "weight_map": {"a": "model.safetensors"}}), "json"
        ),
        "header of weights": Reader(_safetensors, lambda: [struct.pack("<Q", len(WEIGHTS)) + WEIGHTS + bytes(12)]),
        "QNN profile": Reader(_qnn_csv, _text(CSV), "text", errors["csv"]),
        "QHAS summary": Reader(_qhas, _json(QHAS), "json", errors["qhas"]),
        "QNN types": Reader(
            _qnn_types, _json({"subgraph_traces": [{"op_mappings": [{"dst_name": "a", "dst_qnn_op_type": "b"}]}]}),
            "json",
        ),
        "Vitis AI report": Reader(
            _vitisai,
            _json({"deviceStat": [{"name": "all", "nodeNum": 1}, {"name": "CPU", "nodeNum": 1}],
                   "nodeStat": [{"opType": "::Conv", "device": "CPU", "output": "y"}]}),
            "json", errors["vitisai"],
        ),
        "runtime profile": Reader(_ort_profile, _lines(*PROFILE), "lines"),
        "skill": Reader(_skill, _text("---\nname: a\ndescription: b\n---\n\n# A\n\n`winml perf -m m.onnx`\n"), "text"),
        "list of models": Reader(_model_list, _text("m.onnx task=t priority=P0\n'a b.onnx' name=n # c\n"), "text"),
        "outline of a model": Reader(_outline, _models),
        "model": Reader(_Workers.describe, _models),
    }  # fmt: skip


def close() -> None:
    """End the worker that models were read in."""
    _Workers.close()


# Damage

_NUMBERS = [0, -1, 1, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, 10**30, 10**400, -(10**400), 1e308, 0.5]
_TEXTS = [
    "", " ", "x" * 5000, "\x1b[31m", "a\nb", "../../etc/passwd", "/etc/passwd", "..\\a", "C:\\a", "\0", "\ud800", "é",
    "\u202e", "NaN", "-", "$(touch ran)", "|`<b>", "sha256:x", "1e400", "{}", "%s{0}",
]  # fmt: skip
_RAW = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "9" * 5000,
    '"\\ud800"',
    "[" * 2000,
    '{"a":' * 500,
    "nul",
    "",
    "\ufeff",
]
_INTERESTING = [
    b"\0",
    b"\xff",
    b"\x7f",
    b"\x80",
    b"\xff\xff\xff\xff",
    b"\0\0\0\x80",
    b"\xff" * 8,
    b"\n",
    b"\r",
    b",",
    b'"',
]


def _nasty(rng: random.Random) -> Any:
    kind = rng.randrange(5)
    if kind == 0:
        return rng.choice(_NUMBERS)
    if kind == 1:
        return rng.choice(_TEXTS)
    if kind == 2:
        return rng.choice([None, True, False, [], {}, [[]], {"": None}, [None], {"a": {"b": []}}])
    if kind == 3:
        value: Any = 1
        for _ in range(rng.choice([3, 30, 90, 150])):
            value = [value] if rng.random() < 0.5 else {"a": value}
        return value
    return [_nasty(rng) for _ in range(rng.randrange(4))]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container with every key of it."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        keys = list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
        found += [(item, key) for key in keys]
        waiting += [item[key] for key in keys]
    return found


def _damage_json(data: bytes, rng: random.Random) -> bytes:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return _damage_bytes(data, rng)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        places = _places(value)
        if not places or rng.random() < 0.03:
            value = _nasty(rng)
            break
        holder, key = rng.choice(places)
        action = rng.randrange(6)
        if action <= 2:
            holder[key] = _nasty(rng)
        elif action == 3:
            other, place = rng.choice(places)
            holder[key] = json.loads(json.dumps(other[place]))
        elif action == 4:
            holder.pop(key)
        elif isinstance(holder, dict):
            holder[rng.choice(_TEXTS)] = holder[key]
        else:
            holder.append(_nasty(rng))
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    if rng.random() < 0.05:
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(_RAW) + text[at:]
    return text.encode("utf-8", "surrogatepass")


def _damage_bytes(data: bytes, rng: random.Random) -> bytes:
    raw = bytearray(data or b"\0")
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        at, action = rng.randrange(len(raw) or 1), rng.randrange(6)
        if action == 0 and raw:
            raw[at] = rng.randrange(256)
        elif action == 1 and raw:
            raw[at] ^= 1 << rng.randrange(8)
        elif action == 2:
            del raw[at : at + rng.randint(1, 64)]
        elif action == 3:
            raw[at:at] = rng.randbytes(rng.randint(1, 32))
        elif action == 4:
            raw[at:at] = raw[at : at + rng.randint(1, 128)]
        else:
            word = rng.choice(_INTERESTING)
            raw[at : at + len(word)] = word
    return bytes(raw)


def _damage_lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines() or [b""]
    action, at = rng.randrange(10), rng.randrange(len(lines))
    if action == 0:
        lines.insert(at, lines[rng.randrange(len(lines))])
    elif action == 1:
        lines.pop(at)
    elif action == 2:
        rng.shuffle(lines)
    else:
        lines[at] = _damage_json(lines[at], rng)
    return b"\n".join(lines) + b"\n" * (rng.random() < 0.9)


def _damage_text(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.4:
        return _damage_bytes(data, rng)
    text = data.decode(errors="replace")
    at = rng.randrange(len(text) + 1)
    word = rng.choice([*_TEXTS, *_RAW, ",", '"', "\n", "\t", "'", "`", "---\n", "=", "#", "9" * 30])
    end = at + rng.choice([0, 0, 1, 5, 30])
    return (text[:at] + word + text[end:]).encode("utf-8", "surrogatepass")


DAMAGE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "json": _damage_json,
    "lines": _damage_lines,
    "text": _damage_text,
    "bytes": _damage_bytes,
}


def stored(name: str) -> list[bytes]:
    """The inputs that the repository keeps for a reader: those that once ended it, and some that it reads."""
    folder = CORPUS / name.replace(" ", "-").lower()
    return [path.read_bytes() for path in sorted(folder.glob("*"))] if folder.is_dir() else []


@functools.cache
def corpus(name: str) -> tuple[bytes, ...]:
    """Everything that damage starts from."""
    return (*readers()[name].seeds(), *stored(name))


def make(name: str, number: int) -> bytes:
    """The input of a number, the same in every run."""
    rng = random.Random(f"{name} {number}")
    known = corpus(name)
    if number < len(known):
        return known[number]
    reader, data = readers()[name], rng.choice(known)
    if reader.form != "bytes" and rng.random() < 0.15:
        return _damage_bytes(data, rng)
    return DAMAGE[reader.form](data, rng)


def answer(name: str, folder: Path, data: bytes) -> str:
    """`read` or `refused`; anything else that is raised is a bug of the reader."""
    reader = readers()[name]
    try:
        reader.read(folder, data)
    except ModelkitError as error:
        assert error.message
        assert error.exit_code != 70
        return "refused"
    except reader.errors:
        return "refused"
    return "read"
