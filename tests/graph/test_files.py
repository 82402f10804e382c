from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, numpy_helper, parser

from winml.modelkit.core.errors import DiskFull, ModelFileError, ModelkitError, RequestError, UnavailableError
from winml.modelkit.core.values import to_json
from winml.modelkit.graph import files
from winml.modelkit.graph.facts import facts
from winml.modelkit.graph.fingerprint import fingerprint

posix = pytest.mark.posix("no mode bits forbid reading a file or writing to a folder there")


def make_external(tensor: TensorProto, **entries: object) -> None:
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))


def write_external(model: ModelProto, folder: Path, **entries: object) -> Path:
    """Write `m.onnx` whose weights `w1` are in `w.bin`, unless `entries` say otherwise."""
    tensor = model.graph.initializer[0]
    data = tensor.raw_data
    make_external(tensor, **({"location": "w.bin", "offset": 0, "length": len(data)} | entries))
    (folder / "w.bin").write_bytes(data)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    return folder / "m.onnx"


@contextmanager
def another_user() -> Iterator[None]:
    """Permissions count inside, for the super-user too."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


# --- what is not a model


def test_a_missing_file_is_named_with_the_models_beside_it(tmp_path: Path) -> None:
    (tmp_path / "resnet.onnx").touch()
    with pytest.raises(ModelFileError, match="`.*resnt.onnx` does not exist") as caught:
        files.load(tmp_path / "resnt.onnx")
    assert "resnet.onnx`" in (caught.value.hint or "")


def test_a_path_through_a_file_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(ModelFileError, match="does not exist"):
        files.load(tmp_path / "a" / "m.onnx")


def test_a_folder_is_refused_with_the_models_in_it(tmp_path: Path) -> None:
    (tmp_path / "resnet.onnx").touch()
    with pytest.raises(ModelFileError, match="is a folder") as caught:
        files.load(tmp_path)
    assert "`resnet.onnx`" in (caught.value.hint or "")


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").touch()
    with pytest.raises(ModelFileError, match="is empty"):
        files.load(tmp_path / "m.onnx")


def test_a_truncated_model_is_reported_as_cut_off(perceptron: ModelProto, tmp_path: Path) -> None:
    whole = perceptron.SerializeToString()
    for size in (1, 20, len(whole) // 2, len(whole) - 40):
        (tmp_path / "m.onnx").write_bytes(whole[:size])
        with pytest.raises(ModelFileError, match="is truncated after"):
            files.load(tmp_path / "m.onnx")


def test_every_truncation_is_refused(parse: Any, tmp_path: Path) -> None:
    model = parse('<ir_version: 10, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) { y = Relu(x) }')
    whole = model.SerializeToString()
    for size in range(len(whole)):
        (tmp_path / "m.onnx").write_bytes(whole[:size])
        with pytest.raises(ModelFileError):
            files.load(tmp_path / "m.onnx")


def test_a_damaged_model_is_reported_as_damaged(perceptron: ModelProto, tmp_path: Path) -> None:
    damaged = perceptron.SerializeToString().replace(b"MatMul", b"\xff" * 6)
    damaged = damaged.replace(b"\x22\x06\xff", b"\x27\x06\xff")  # the wire type of the operator's name
    (tmp_path / "m.onnx").write_bytes(damaged)
    with pytest.raises(ModelFileError, match="is damaged"):
        files.load(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"hello world, this is text", "is not an ONNX model"),
        (b'{"irVersion": "8"}', "is not an ONNX model"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        (b"PK\x03\x04\x00\x00", "zip archive"),
        (b"\x20\x00\x00\x00ORTM\x00\x00", "ORT format"),
        (b"<!DOCTYPE html><html>", "web page"),
    ],
)
def test_another_kind_of_file_is_named(content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(ModelFileError, match=says) as caught:
        files.load(tmp_path / "m.onnx")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("field", "says"), [("ir_version", "IR version"), ("graph", "graph"), ("opset_import", "opset import")]
)
def test_a_message_without_what_a_model_needs_is_refused(
    perceptron: ModelProto, field: str, says: str, tmp_path: Path
) -> None:
    perceptron.ClearField(field)
    (tmp_path / "m.onnx").write_bytes(perceptron.SerializeToString())
    with pytest.raises(ModelFileError, match=f"it has no {says}"):
        files.load(tmp_path / "m.onnx")


def test_a_newer_ir_version_is_refused(perceptron: ModelProto, tmp_path: Path) -> None:
    perceptron.ir_version = onnx.IR_VERSION + 1
    (tmp_path / "m.onnx").write_bytes(perceptron.SerializeToString())
    with pytest.raises(ModelFileError, match=f"IR version {onnx.IR_VERSION + 1}"):
        files.load(tmp_path / "m.onnx")


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_a_newer_opset_is_refused(perceptron: ModelProto, domain: str, tmp_path: Path) -> None:
    newer = onnx.defs.onnx_opset_version() + 1
    del perceptron.opset_import[:]
    perceptron.opset_import.add(domain=domain, version=newer)
    (tmp_path / "m.onnx").write_bytes(perceptron.SerializeToString())
    with pytest.raises(ModelFileError, match=f"needs opset {newer}"):
        files.load(tmp_path / "m.onnx")


def test_any_opset_of_another_domain_is_accepted(perceptron: ModelProto, tmp_path: Path) -> None:
    perceptron.opset_import.add(domain="com.example", version=900)
    files.save(perceptron, tmp_path / "m.onnx")
    assert files.load(tmp_path / "m.onnx") == perceptron


def test_names_that_are_not_text_are_refused(perceptron: ModelProto, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(perceptron.SerializeToString().replace(b"Relu", b"\xff\xfe\xfd\xfc"))
    with pytest.raises(ModelFileError, match="not UTF-8"):
        files.load(tmp_path / "m.onnx")


def test_documentation_that_is_not_text_keeps_a_model_from_nothing(perceptron: ModelProto, tmp_path: Path) -> None:
    perceptron.graph.doc_string = perceptron.graph.node[0].doc_string = "latin"
    (tmp_path / "m.onnx").write_bytes(perceptron.SerializeToString().replace(b"latin", b"lat\xedn"))
    model = files.load(tmp_path / "m.onnx")
    assert facts(model).macs.macs == 2 * 36 * 36
    assert fingerprint(model) == fingerprint(perceptron)
    files.save(model, tmp_path / "saved.onnx", external_data="always")
    assert fingerprint(files.load(tmp_path / "saved.onnx")) == fingerprint(perceptron)


def test_a_file_past_2_gb_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "m.onnx").open("wb") as file:
        file.truncate(2**31)
    with pytest.raises(ModelFileError, match="limited to 2,147,483,647") as caught:
        files.load(tmp_path / "m.onnx")
    assert "external data" in (caught.value.hint or "")


@posix
def test_a_file_without_permission_is_unavailable(perceptron: ModelProto, tmp_path: Path) -> None:
    files.save(perceptron, tmp_path / "m.onnx")
    (tmp_path / "m.onnx").chmod(0o000)
    with another_user(), pytest.raises(UnavailableError, match="permission denied"):
        files.load(tmp_path / "m.onnx")


@pytest.fixture(scope="module")
def rich() -> bytes:
    """A model with a function, branches, constants and contrib operators."""
    return parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 17, "local" : 1, "com.microsoft" : 1]>
        g (float[N,3] x, bool c) => (float[N,5] y)
        <float[3,5] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}, int64[2] s = {-1,5}> {
            q = local.product(x, w)
            i = If(c) <
                then_branch = t () => (float[N,5] a) { z = Relu(q)  a = Identity(z) },
                else_branch = e () => (float[N,5] b) { b = MatMul(x, w) }
            >
            k = Constant<value = float[5] {1,2,3,4,5}>()
            j = com.microsoft.BiasGelu(i, k)
            y = Reshape(j, s)
        }
        <domain: "local", opset_import: ["" : 17]> product (a, b) => (c) { c = MatMul(a, b) }
    """).SerializeToString()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
def test_changed_bytes_give_a_model_or_a_clear_error(
    rich: bytes, changes: list[tuple[int, int]], tmp_path: Path
) -> None:
    data = bytearray(rich)
    for position, value in changes:
        data[position % len(data)] = value
    (tmp_path / "m.onnx").write_bytes(data)
    for use in (lambda model: to_json(facts(model)), fingerprint):
        with suppress(ModelkitError):
            use(files.load(tmp_path / "m.onnx"))


# --- external data


def test_external_data_is_read_into_the_model(perceptron: ModelProto, tmp_path: Path) -> None:
    expected = fingerprint(perceptron)
    loaded = files.load(write_external(perceptron, tmp_path))
    assert fingerprint(loaded) == expected
    assert not loaded.graph.initializer[0].external_data


def test_without_weights_external_data_stays_where_it_is(perceptron: ModelProto, tmp_path: Path) -> None:
    loaded = files.load(write_external(perceptron, tmp_path), weights=False)
    assert loaded == perceptron
    assert not loaded.graph.initializer[0].raw_data


def test_data_in_subfolders_and_at_offsets_is_found(perceptron: ModelProto, tmp_path: Path) -> None:
    expected = fingerprint(perceptron)
    first, second = perceptron.graph.initializer
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "all.bin").write_bytes(b"junk" + first.raw_data + second.raw_data)
    size = len(first.raw_data)
    make_external(first, location="sub/all.bin", offset=4, length=size)
    make_external(second, location="sub/all.bin", offset=4 + size)
    (tmp_path / "m.onnx").write_bytes(perceptron.SerializeToString())
    assert fingerprint(files.load(tmp_path / "m.onnx")) == expected
    assert files.external_files(tmp_path / "m.onnx") == (tmp_path / "sub" / "all.bin",)


@pytest.mark.parametrize("weights", [True, False])
def test_a_missing_data_file_is_named(perceptron: ModelProto, weights: bool, tmp_path: Path) -> None:
    path = write_external(perceptron, tmp_path)
    (tmp_path / "w.bin").unlink()
    with pytest.raises(ModelFileError, match=r"`.*w\.bin` of `.*` does not exist; tensor `w1`"):
        files.load(path, weights=weights)


@pytest.mark.parametrize("weights", [True, False])
def test_a_short_data_file_is_refused(perceptron: ModelProto, weights: bool, tmp_path: Path) -> None:
    path = write_external(perceptron, tmp_path)
    os.truncate(tmp_path / "w.bin", 5183)
    with pytest.raises(ModelFileError, match=r"has 5,183 bytes; tensor `w1` needs it to reach 5,184"):
        files.load(path, weights=weights)


def test_a_data_file_that_ends_at_the_last_byte_is_long_enough(perceptron: ModelProto, tmp_path: Path) -> None:
    path = write_external(perceptron, tmp_path)
    assert (tmp_path / "w.bin").stat().st_size == 36 * 36 * 4
    files.load(path)


@pytest.mark.parametrize(
    "location", ["/etc/passwd", "../w.bin", "a/../../w.bin", "C:\\w.bin", "..\\w.bin", "\\\\host\\w.bin", "C:w.bin", ""]
)
def test_a_location_that_leaves_the_folder_is_refused(perceptron: ModelProto, location: str, tmp_path: Path) -> None:
    path = write_external(perceptron, tmp_path, location=location)
    with pytest.raises(ModelFileError, match="not a path inside the model's folder"):
        files.load(path, weights=False)


@pytest.mark.parametrize("entries", [{"offset": -4}, {"length": -1}, {"offset": "x"}, {"length": "1.5"}])
def test_numbers_of_external_data_must_be_whole_and_not_negative(
    perceptron: ModelProto, entries: dict[str, object], tmp_path: Path
) -> None:
    with pytest.raises(ModelFileError, match="whole numbers from 0"):
        files.load(write_external(perceptron, tmp_path, **entries))


def test_a_folder_in_place_of_the_data_file_is_refused(perceptron: ModelProto, tmp_path: Path) -> None:
    path = write_external(perceptron, tmp_path)
    (tmp_path / "w.bin").unlink()
    (tmp_path / "w.bin").mkdir()
    with pytest.raises(ModelFileError, match="is not a file in the model's folder"):
        files.load(path)


@pytest.mark.symlink
def test_a_link_out_of_the_folder_is_refused(perceptron: ModelProto, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    path = write_external(perceptron, tmp_path / "model")
    shutil.move(tmp_path / "model" / "w.bin", tmp_path / "elsewhere.bin")
    (tmp_path / "model" / "w.bin").symlink_to(tmp_path / "elsewhere.bin")
    with pytest.raises(ModelFileError, match="is not a file in the model's folder"):
        files.load(path)


@pytest.mark.symlink
def test_links_of_the_hugging_face_cache_are_followed(perceptron: ModelProto, tmp_path: Path) -> None:
    expected = fingerprint(perceptron)
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshot").mkdir()
    write_external(perceptron, tmp_path / "snapshot")
    for name in ("m.onnx", "w.bin"):
        shutil.move(tmp_path / "snapshot" / name, tmp_path / "blobs" / f"digest-of-{name}")
        (tmp_path / "snapshot" / name).symlink_to(f"../blobs/digest-of-{name}")
    assert fingerprint(files.load(tmp_path / "snapshot" / "m.onnx")) == expected


def test_hard_links_of_the_store_are_followed(perceptron: ModelProto, tmp_path: Path) -> None:
    expected = fingerprint(perceptron)
    path = write_external(perceptron, tmp_path)
    os.link(tmp_path / "w.bin", tmp_path / "second-name")
    assert fingerprint(files.load(path)) == expected


@posix
def test_a_data_file_without_permission_is_unavailable(perceptron: ModelProto) -> None:
    with TemporaryDirectory() as name:  # `tmp_path` is closed to another user, model file and all
        folder = Path(name)
        folder.chmod(0o755)
        path = write_external(perceptron, folder)
        (folder / "w.bin").chmod(0o000)
        with another_user(), pytest.raises(UnavailableError, match=r"w\.bin` cannot be read: permission denied"):
            files.load(path)


def test_context_binaries_belong_to_a_compiled_model(parse: Any, tmp_path: Path) -> None:
    model = parse("""g (float[1] x) => (float[1] y) {
        y = com.microsoft.EPContext<embed_mode = 0, ep_cache_context = "m_qnn.bin", source = "QNN">(x)
    }""")
    (path,) = files.save(model, tmp_path / "m.onnx")
    assert files.external_files(path) == ()
    (tmp_path / "m_qnn.bin").touch()
    assert files.external_files(path) == (tmp_path / "m_qnn.bin",)


# --- saving


def offsets(path: Path) -> dict[str, int]:
    """The offset of every external tensor of a model file, by name."""
    return {
        tensor.name: int(next(entry.value for entry in tensor.external_data if entry.key == "offset"))
        for tensor in files.load(path, weights=False).graph.initializer
        if tensor.external_data
    }


@pytest.mark.parametrize("name", ["m.onnx", "with space.onnx", "模型-modèle-ü.onnx", "no extension"])
@pytest.mark.parametrize("external_data", ["never", "always"])
def test_a_saved_model_loads_as_it_was(
    perceptron: ModelProto, name: str, external_data: files.ExternalData, tmp_path: Path
) -> None:
    folder = tmp_path / "a folder ü"
    folder.mkdir()
    written = files.save(perceptron, os.fspath(folder / name), external_data=external_data)
    assert written == (folder / name, folder / f"{name}.data")[: len(written)]
    assert sorted(folder.iterdir()) == sorted(written)
    assert files.load(os.fspath(folder / name)) == perceptron


def test_onnx_runtime_reads_what_was_saved_with_external_data(perceptron: ModelProto, tmp_path: Path) -> None:
    files.save(perceptron, tmp_path / "m.onnx", external_data="always")
    session = ort.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {"x": np.ones((2, 36), np.float32)})
    weights = [numpy_helper.to_array(tensor) for tensor in perceptron.graph.initializer]
    np.testing.assert_allclose(result, np.ones((2, 36), np.float32) @ weights[0] @ weights[1], rtol=1e-5)


def test_sizes_that_the_runtime_infers_shapes_from_stay_in_the_model_file(tmp_path: Path) -> None:
    outputs = [f"y{index}" for index in range(128)]
    node = onnx.helper.make_node("Split", ["x", "sizes"], outputs, axis=0)
    make = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node],
        "split",
        [make("x", TensorProto.FLOAT, [128])],
        [make(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.ones(128, np.int64), "sizes")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    files.save(model, tmp_path / "m.onnx", external_data="always")
    session = ort.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    assert session.run(["y127"], {"x": np.arange(128, dtype=np.float32)})[0] == [127]


def test_weights_that_were_not_loaded_go_from_file_to_file(
    perceptron: ModelProto, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = files.save(perceptron, tmp_path / "source.onnx", external_data="always")[0]
    monkeypatch.setattr(files, "STREAMED_BYTES", 1)
    model = files.load(source, weights=False)
    names = [tensor.name for tensor in model.graph.initializer if tensor.external_data]
    files.read_weights(model, source, besides=names[1:])
    assert not model.graph.initializer[0].external_data
    written = files.save(model, tmp_path / "copy.onnx", source=source)
    assert [path.name for path in written] == ["copy.onnx", "copy.onnx.data"]
    assert files.load(written[0]) == files.load(source)


def test_a_small_model_has_its_weights_in_one_file_again(perceptron: ModelProto, tmp_path: Path) -> None:
    source = files.save(perceptron, tmp_path / "source.onnx", external_data="always")[0]
    written = files.save(files.load(source, weights=False), tmp_path / "copy.onnx", source=source)
    assert [path.name for path in written] == ["copy.onnx"]
    assert files.load(written[0]) == perceptron


def test_a_data_file_that_is_too_short_to_be_copied_leaves_nothing_behind(
    perceptron: ModelProto, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = files.save(perceptron, tmp_path / "source.onnx", external_data="always")[0]
    monkeypatch.setattr(files, "STREAMED_BYTES", 1)
    model = files.load(source, weights=False)
    source.with_name("source.onnx.data").write_bytes(b"short")
    (tmp_path / "out").mkdir()
    with pytest.raises(ModelFileError, match=r"needs it to reach"):
        files.save(model, tmp_path / "out" / "copy.onnx", source=source)
    assert not list((tmp_path / "out").iterdir())


def test_weights_go_to_a_file_of_their_own_past_the_limit(
    perceptron: ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(files.save(perceptron, tmp_path / "small.onnx")) == 1
    monkeypatch.setattr(files, "EMBED_LIMIT_BYTES", 10_000)
    model, data = files.save(perceptron, tmp_path / "m.onnx")
    assert data.name == "m.onnx.data"
    assert model.stat().st_size < 1000
    assert files.load(model) == perceptron


def test_the_limit_counts_typed_fields_by_what_they_take(
    parse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = parse("g (int8[2000] x) => (int8[2000] y) { y = Add(x, w) }")
    model.graph.initializer.add(name="w", data_type=TensorProto.INT8, dims=[2000], int32_data=[-1] * 2000)
    assert model.ByteSize() > 20_000  # a negative number takes ten bytes there, and one in `raw_data`
    monkeypatch.setattr(files, "EMBED_LIMIT_BYTES", 10_000)
    _, data = files.save(model, tmp_path / "m.onnx")
    assert data.read_bytes() == b"\xff" * 2000


def test_a_model_past_the_limit_is_not_forced_into_one_file(
    perceptron: ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "EMBED_LIMIT_BYTES", 10_000)
    with pytest.raises(RequestError, match="does not fit into one file"):
        files.save(perceptron, tmp_path / "m.onnx", external_data="never")
    assert not list(tmp_path.iterdir())


def test_a_graph_past_the_limit_without_weights_is_refused(
    perceptron: ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "EMBED_LIMIT_BYTES", 100)
    with pytest.raises(RequestError, match="the graph alone"):
        files.save(perceptron, tmp_path / "m.onnx")


def test_offsets_allow_mapping_the_file(parse: Any, tmp_path: Path) -> None:
    model = parse(
        "g (float[1] x) => (float[1] y) { a = Add(x, small)  b = Add(a, page)  c = Add(b, large)  y = Add(c, last) }",
        small=np.zeros(8, np.float32),
        page=np.ones(300, np.float32),
        large=np.ones(2**18, np.float32),
        last=np.ones(300, np.float32),
    )
    files.save(model, tmp_path / "m.onnx", external_data="always")
    assert offsets(tmp_path / "m.onnx") == {"page": 0, "large": 65536, "last": 65536 + 2**20}
    assert (tmp_path / "m.onnx.data").read_bytes()[1200:65536] == bytes(65536 - 1200)


def test_weights_inside_nodes_move_out_only_when_they_must(
    parse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = parse("g (float[1] x) => (float[1] y) { c = Constant<value = float[1] {0}>()  y = Add(x, c) }")
    model.graph.node[0].attribute[0].t.CopyFrom(numpy_helper.from_array(np.ones(2000, np.float32)))
    assert len(files.save(model, tmp_path / "embedded.onnx", external_data="always")) == 1
    monkeypatch.setattr(files, "EMBED_LIMIT_BYTES", 4000)
    assert len(files.save(model, tmp_path / "m.onnx")) == 2
    assert files.load(tmp_path / "m.onnx") == model


def test_strings_stay_in_the_model_file(parse: Any, tmp_path: Path) -> None:
    model = parse("g (float[1] x) => (string[300] y) { y = Identity(s) }", s=np.array(["abcdef"] * 300, dtype=object))
    assert len(files.save(model, tmp_path / "m.onnx", external_data="always")) == 1
    assert files.load(tmp_path / "m.onnx") == model


def test_equal_models_give_equal_bytes(perceptron: ModelProto, tmp_path: Path) -> None:
    perceptron.metadata_props.add(key="b", value="1")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        files.save(perceptron, tmp_path / name / "m.onnx", external_data="always")
    for name in ("m.onnx", "m.onnx.data"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize("external_data", ["never", "always"])
def test_saving_leaves_the_model_of_the_caller_alone(
    perceptron: ModelProto, external_data: files.ExternalData, tmp_path: Path
) -> None:
    before = perceptron.SerializeToString()
    files.save(perceptron, tmp_path / "m.onnx", external_data=external_data)
    assert perceptron.SerializeToString() == before


def test_a_model_without_its_weights_is_not_saved(perceptron: ModelProto, tmp_path: Path) -> None:
    loaded = files.load(write_external(perceptron, tmp_path), weights=False)
    with pytest.raises(RequestError, match="was not loaded"):
        files.save(loaded, tmp_path / "other.onnx")


@pytest.mark.parametrize("existing", ["m.onnx", "m.onnx.data"])
def test_existing_files_stay_without_leave_to_overwrite(perceptron: ModelProto, existing: str, tmp_path: Path) -> None:
    (tmp_path / existing).write_text("mine")
    with pytest.raises(RequestError, match=f"{existing}` exists"):
        files.save(perceptron, tmp_path / "m.onnx", external_data="always")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["mine"]


def test_with_leave_to_overwrite_both_files_are_replaced(perceptron: ModelProto, tmp_path: Path) -> None:
    files.save(perceptron, tmp_path / "m.onnx", external_data="always")
    perceptron.graph.initializer[0].raw_data = bytes(36 * 36 * 4)
    files.save(perceptron, tmp_path / "m.onnx", external_data="always", overwrite=True)
    assert files.load(tmp_path / "m.onnx") == perceptron
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.symlink
def test_overwriting_a_link_leaves_the_file_behind_it_alone(perceptron: ModelProto, tmp_path: Path) -> None:
    (tmp_path / "stored").write_text("mine")
    (tmp_path / "m.onnx").symlink_to("stored")
    files.save(perceptron, tmp_path / "m.onnx", overwrite=True)
    assert (tmp_path / "stored").read_text() == "mine"
    assert not (tmp_path / "m.onnx").is_symlink()


def test_a_folder_that_is_not_there_is_named(perceptron: ModelProto, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="folder `.*absent` does not exist"):
        files.save(perceptron, tmp_path / "absent" / "m.onnx")


def test_a_folder_is_not_a_file_name(perceptron: ModelProto, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="is a folder"):
        files.save(perceptron, tmp_path, overwrite=True)


@posix
def test_a_folder_without_permission_is_unavailable(perceptron: ModelProto, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with another_user(), pytest.raises(UnavailableError, match="permission denied"):
        files.save(perceptron, tmp_path / "m.onnx")


def fail_at(call: int, error: BaseException, function: Any) -> Any:
    """`function`, but its call number `call` raises."""
    calls = iter(range(1, 1000))

    def failing(*args: Any) -> Any:
        if next(calls) == call:
            raise error
        return function(*args)

    return failing


@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize("overwrite", [True, False])
def test_a_full_disk_is_unavailable_and_leaves_no_half_files(
    perceptron: ModelProto, call: int, overwrite: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if overwrite:
        files.save(perceptron, tmp_path / "m.onnx", external_data="always")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    perceptron.graph.initializer[0].raw_data = bytes(36 * 36 * 4)
    monkeypatch.setattr(os, "fsync", fail_at(call, OSError(errno.ENOSPC, "No space left on device"), os.fsync))
    with pytest.raises(DiskFull, match="disk full while writing"):
        files.save(perceptron, tmp_path / "m.onnx", external_data="always", overwrite=overwrite)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("call", [1, 2, 3])
def test_an_interruption_between_two_moves_restores_what_was_there(
    perceptron: ModelProto, overwrite: bool, call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if overwrite:
        files.save(perceptron, tmp_path / "m.onnx", external_data="always")
    elif call == 3:
        call = 2
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    perceptron.graph.initializer[0].raw_data = bytes(36 * 36 * 4)
    monkeypatch.setattr(Path, "replace", fail_at(call, KeyboardInterrupt(), Path.replace))
    with pytest.raises(KeyboardInterrupt):
        files.save(perceptron, tmp_path / "m.onnx", external_data="always", overwrite=overwrite)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_the_data_file_is_in_place_before_the_model_file(
    perceptron: ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: list[str] = []
    replace = Path.replace

    def record(path: Path, target: Path) -> Path:
        moved.append(target.name)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", record)
    files.save(perceptron, tmp_path / "m.onnx", external_data="always")
    assert moved == ["m.onnx.data", "m.onnx"]


def test_damaged_weights_are_found_before_anything_is_written(perceptron: ModelProto, tmp_path: Path) -> None:
    perceptron.graph.initializer[1].raw_data = b"short"
    with pytest.raises(ModelFileError, match="has 5 bytes of data"):
        files.save(perceptron, tmp_path / "m.onnx", external_data="always")
    assert not list(tmp_path.iterdir())
