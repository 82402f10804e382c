"""Every family of Hugging Face models exports, part by part, and computes what PyTorch computes."""

from __future__ import annotations

import importlib.util
import json
import pickle
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import hf_zoo
from winml.modelkit.building.export import resolve
from winml.modelkit.building.export.folder import ModelFolder
from winml.modelkit.building.export.loading import block_kernels
from winml.modelkit.building.export.resolve import ExportOptions
from winml.modelkit.building.export.result import FailedParity
from winml.modelkit.building.export.stage import require_memory
from winml.modelkit.core.build_folder import PARTS, PartEntry, PartsFile
from winml.modelkit.core.errors import CheckFailed, ModelFileError, RequestError, RunFailedError, UnavailableError
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.session.composite import Composite
from winml.modelkit.store import digest
from winml.modelkit.worker.client import Worker

pytestmark = [pytest.mark.hf, pytest.mark.xdist_group("hf")]

SINGLE = [name for name in hf_zoo.FAMILIES if name not in hf_zoo.GENERATING]
LIKE_ANOTHER = ("convnext", "dinov2", "yolos", "distilbert", "minilm")
"""Families that the exporter treats as it treats resnet, vit, detr and bert."""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """One process for all exports, which imports torch once."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in hf_zoo.ONE_THREAD.items():
            patch.setenv(name, value)
        with Worker() as process:
            yield process


class Exports:
    """Exports models of the zoo into a folder per model; what was exported as it is before comes from `kept`."""

    def __init__(self, worker: Worker, models: Path, folder: Path, kept: Path) -> None:
        self.worker, self.models, self.folder, self.kept = worker, models, folder, kept
        self._zoo = models

    def export(self, name: str, part: str = "model", **options: Any) -> tuple[Path, dict[str, Any]]:
        """The file of a part and the report about it."""
        source = ModelFolder(self.models / name)
        section = resolve.resolve(source, ExportOptions(**options), part)
        output = self.folder / name / part / "model.onnx"
        output.parent.mkdir(parents=True)
        stored = self.kept / name / part
        as_it_is = self.models == self._zoo and not options
        if as_it_is and stored.exists():
            shutil.copy(stored / "model.onnx", output)
            return output, json.loads((stored / "report.json").read_text())
        args = {"model": str(source.path / "config.json"), "output": str(output), "section": to_json(section)}
        report = self.worker.call("stages.export", args)
        if as_it_is:
            stored.mkdir(parents=True)
            shutil.copy(output, stored)
            (stored / "report.json").write_text(json.dumps(report))
        return output, report

    def composite(self, name: str) -> Path:
        """The folder with all parts of a model and their manifest, as a build leaves them."""
        parts = resolve.parts_of(ModelFolder(self.models / name), ExportOptions())
        for part in parts:
            _, report = self.export(name, part)
            assert report["parity"]["difference"] < 1e-5
            (self.folder / name / part / "config.json").write_bytes((self.models / name / "config.json").read_bytes())
        entries = {p: PartEntry(folder=p, file="model.onnx", digest=digest.of_bytes(b"")) for p in parts}
        manifest = PartsFile(model=name, target="cpu", parts=entries)
        (self.folder / name / PARTS).write_text(json.dumps(to_json(manifest)))
        return self.folder / name


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def exports(worker: Worker, hf_folders: Path, tmp_path: Path, kept: Path) -> Exports:
    return Exports(worker, hf_folders, tmp_path, kept)


def shapes(model: onnx.ModelProto) -> dict[str, list[int | str]]:
    values = (*model.graph.input, *model.graph.output)
    return {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LIKE_ANOTHER else []) for name in SINGLE]
)
def test_a_family_exports_and_agrees_with_pytorch(name: str, exports: Exports) -> None:
    path, report = exports.export(name)
    assert report["parity"]["status"] == "passed"
    assert report["parity"]["difference"] < 1e-5
    assert all(row["largest"] > 1e-5 for row in report["parity"]["outputs"]), "outputs that are all zero prove nothing"
    model = onnx.load(path)
    assert next(o.version for o in model.opset_import if o.domain == "") == 20
    assert not any(node.metadata_props or node.doc_string for node in model.graph.node)
    names = {str(d) for dims in shapes(model).values() for d in dims if isinstance(d, str)}
    assert not any(n[:1] == "s" and n[1:].isdigit() for n in names), "the exporter's symbols are renamed"


QUICK_TO_GENERATE = ("qwen2",)
"""A decoder alone; tests/e2e/test_hf.py has an encoder with a decoder. The others are exported in the same two ways."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK_TO_GENERATE else pytest.mark.slow) for name in hf_zoo.GENERATING],
)
def test_parts_together_say_what_pytorch_says(name: str, exports: Exports) -> None:
    folder = exports.composite(name)
    with np.load(exports.models / name / hf_zoo.ANSWER) as stored:
        inputs = dict(stored)
    words = inputs.pop("words")
    with Composite(folder, target=Target("cpu", "cpu")) as composite:
        made = composite.generate(inputs, new_tokens=12)
    assert made.tolist() == words.tolist()


def test_masks_of_text_models_need_no_gather_nd(exports: Exports) -> None:
    path, report = exports.export("gpt2", shapes={"sequence": (8,)})
    model = onnx.load(path)
    assert not Counter(node.op_type for node in model.graph.node)["GatherND"]
    assert shapes(model)["input_ids"] == ["batch", 8]
    assert report["sizes"] == {"batch": 2}


def test_halves_of_a_dual_encoder_live_in_one_space(exports: Exports) -> None:
    from winml.modelkit.session.session import WinMLSession

    paths = {part: exports.export("clip", part)[0] for part in ("model", "image", "text")}
    rng = np.random.default_rng(0)
    pixels = rng.normal(size=(1, 3, 32, 32)).astype(np.float32)
    words = {"input_ids": rng.integers(3, 117, (2, 9)), "attention_mask": np.ones((2, 9), np.int64)}
    cpu = Target("cpu", "cpu")
    with (
        WinMLSession(paths["model"], target=cpu) as whole,
        WinMLSession(paths["image"], target=cpu) as image,
        WinMLSession(paths["text"], target=cpu) as text,
    ):
        together = whole.run({**words, "pixel_values": pixels})
        a = image.run({"pixel_values": pixels})["image_embeds"]
        b = text.run(words)["text_embeds"]
    cosine = (a / np.linalg.norm(a)) @ (b / np.linalg.norm(b, axis=1, keepdims=True)).T
    scale = together["logits_per_image"] / cosine
    assert np.allclose(scale, scale[0, 0], rtol=1e-3)


@pytest.mark.parametrize("opset", [17, 23])
def test_the_opset_is_the_one_asked_for(opset: int, exports: Exports) -> None:
    path, report = exports.export("bert", opset=opset)
    assert report["opset"] == opset
    assert next(o.version for o in onnx.load(path).opset_import if o.domain == "") == opset


def test_an_opset_out_of_reach_is_refused(exports: Exports) -> None:
    with pytest.raises(
        RequestError, match="cannot be converted from opset 18 to 17: onnx cannot convert `Split`"
    ) as caught:
        exports.export("gpt2", opset=17)
    assert caught.value.hint == "export with `--opset 18`, or try `--exporter legacy`"


def test_the_other_exporter_gives_the_same_outputs(exports: Exports) -> None:
    _, report = exports.export("bert", exporter="legacy", opset=17)
    assert report["parity"]["status"] == "passed"
    assert report["opset"] == 17


def test_an_axis_that_the_model_needs_fixed_is_named(exports: Exports) -> None:
    specs = {"pixel_values": {"shape": ["batch", 3, "height", 32]}}
    with pytest.raises(Exception, match="cannot be exported with `batch`, `height` open") as caught:
        exports.export("vit", input_specs=specs)
    assert "--dynamic-axes" in caught.value.hint


def test_a_task_without_weights_is_an_error(exports: Exports) -> None:
    with pytest.raises(ModelFileError, match="has no weights for question-answering: .* tensors are missing"):
        exports.export("bert", task="question-answering")


def test_a_difference_from_pytorch_is_a_failed_check(exports: Exports) -> None:
    path, report = exports.export("resnet")
    model = onnx.load(path)
    weight = next(tensor for tensor in model.graph.initializer if len(tensor.dims) == 4)
    weight.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weight) * np.float32(1.05), weight.name))
    onnx.save(model, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from winml.modelkit.building.export import parity
        from winml.modelkit.building.export.loading import load
        from winml.modelkit.building.export.parts import part_of

        source = ModelFolder(exports.models / "resnet")
        section = resolve.resolve(source, ExportOptions())
        reference = part_of(load(source.path, section, attention=None, trust=False), section)
        with pytest.raises(CheckFailed, match="output `logits` differs from PyTorch by .* at batch") as caught:
            parity.check_parity(path, parity.answer(reference, section), section)
    assert isinstance(caught.value.result, FailedParity)
    assert report["parity"]["difference"] < 1e-5


def test_a_model_that_refuses_its_sample_inputs_is_told_what_would_help(exports: Exports) -> None:
    from winml.modelkit.building.export import parity

    def stubborn(**inputs: Any) -> Any:
        raise ValueError("All examples must have the same number of <eos> tokens.")

    section = resolve.resolve(ModelFolder(exports.models / "resnet"), ExportOptions())
    with pytest.raises(RunFailedError, match="refuses its sample inputs: All examples must") as caught:
        parity.answer(stubborn, section)
    assert "--input-specs" in (caught.value.hint or "")


def _copied(exports: Exports, name: str, **config: Any) -> Path:
    """A copy of a model in a folder of its own, whose config says something else."""
    copy = exports.folder / "models" / name
    shutil.copytree(exports.models / name, copy)
    path = copy / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | config))
    exports.models = copy.parent
    return copy


def test_an_attention_of_the_hub_is_never_loaded_and_that_is_told(exports: Exports) -> None:
    _copied(exports, "bert", attn_implementation="org/evil")
    _, report = exports.export("bert")
    assert report["parity"]["status"] == "passed"
    assert any("`org/evil`" in note and "not loaded" in note for note in report["notes"])


def test_the_package_that_loads_kernels_cannot_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    witness = tmp_path / "loaded"
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "__init__.py").write_text(f"open({str(witness)!r}, 'w').close()")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "kernels", raising=False)
    block_kernels()
    with pytest.raises(ImportError):
        importlib.import_module("kernels")
    assert importlib.util.find_spec("kernels") is None
    assert not witness.exists()


class _Command:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("ran"),)


@pytest.mark.parametrize(
    "content", [b"", b"\x80", b"not a pickle", b"PK\x03\x04", pickle.dumps(_Command()), pickle.dumps({"a": 7})]
)
def test_weights_that_are_none_are_an_invalid_model(exports: Exports, content: bytes) -> None:
    copy = _copied(exports, "bert")
    (copy / "model.safetensors").unlink()
    (copy / "pytorch_model.bin").write_bytes(content)
    with pytest.raises(ModelFileError, match="cannot be loaded: "):
        exports.export("bert")
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    ("name", "exporter"),
    [
        ("llama", "genai"),
        # Its layers look back over 8 tokens, which the texts are longer than.
        ("mistral", "genai"),
        pytest.param("qwen2", "transformers", marks=pytest.mark.slow),
        ("gpt2", "transformers"),
    ],
)
def test_a_decoder_is_one_graph_whose_tokens_are_those_of_pytorch(name: str, exporter: str, exports: Exports) -> None:
    if exporter == "genai":
        pytest.importorskip("onnxruntime_genai", reason="the extra `genai` is not installed")
    path, report = exports.export(name, "decoder", exporter=exporter)
    assert report["exporter"] == exporter
    assert not report["warnings"]
    tokens = report["parity"]["tokens"]
    assert tokens["equal"] == tokens["prompts"] * tokens["tokens"] > 40
    types = {node.op_type for node in onnx.load(path).graph.node}
    assert ("GroupQueryAttention" in types) == (exporter == "genai")
    assert shapes(onnx.load(path))["past_key_values.0.key"][2] == "past"


def test_a_model_that_cannot_fit_is_refused_before_it_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    header = json.dumps({"w": {"dtype": "BF16", "shape": [2**24], "data_offsets": [0, 2**25]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(2**25))
    folder = ModelFolder(tmp_path)
    with pytest.raises(UnavailableError, match=r"takes 0\.6 GiB of memory, and 0\.5 GiB are free") as refused:
        require_memory(folder, 2**29)
    assert "--no-parity" in (refused.value.hint or "")
    require_memory(folder, 2**30)
    require_memory(folder, None)
