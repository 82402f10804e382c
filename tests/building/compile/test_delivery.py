"""Names of compiled models and the order in which they appear."""

from __future__ import annotations

from pathlib import Path

import pytest

from winml.modelkit.building.compile.delivery import deliver, output_names
from winml.modelkit.core.errors import RequestError
from winml.modelkit.store.objects import ObjectMissing, Objects


def _names(*models: str) -> list[str]:
    return output_names([Path(m) for m in models])[0]


def test_models_keep_their_names() -> None:
    assert output_names([Path("a.onnx"), Path("x/b.onnx")]) == (["a_ctx.onnx", "b_ctx.onnx"], [])


def test_equal_names_get_a_number_and_a_warning() -> None:
    names, warnings = output_names([Path("a/m.onnx"), Path("b/m.onnx"), Path("c/M.onnx")])
    assert names == ["m_ctx.onnx", "m_1_ctx.onnx", "M_2_ctx.onnx"]
    assert len(warnings) == 2
    assert "b/m.onnx" in warnings[0].replace("\\", "/")


def test_a_number_never_takes_the_name_of_another_model() -> None:
    assert _names("a/m.onnx", "b/m.onnx", "m_1.onnx") == ["m_ctx.onnx", "m_2_ctx.onnx", "m_1_ctx.onnx"]


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects(tmp_path / "objects")


class _Recorder(Objects):
    """Notes what appears, and fails at a file when told so."""

    def __init__(self, folder: Path, fail_at: str | None = None) -> None:
        super().__init__(folder)
        self.seen: list[str] = []
        self._fail_at = fail_at

    def link_out(self, name: str, destination: Path) -> str:
        if destination.name == self._fail_at:
            raise ObjectMissing("gone")
        self.seen.append(destination.name)
        return super().link_out(name, destination)


def _files(objects: Objects) -> dict[str, str]:
    return {n: objects.put_bytes(n.encode()) for n in ("a_ctx.onnx", "b_ctx.onnx", "z.bin")}


def _deliver(objects: Objects, files: dict[str, str], folder: Path, *, overwrite: bool = False) -> None:
    deliver(objects, files, wrappers={"a_ctx.onnx", "b_ctx.onnx"}, folder=folder, overwrite=overwrite)


def test_the_binary_comes_before_the_models(tmp_path: Path) -> None:
    objects = _Recorder(tmp_path / "objects")
    (tmp_path / "out").mkdir()
    _deliver(objects, _files(objects), tmp_path / "out")
    assert objects.seen == ["z.bin", "a_ctx.onnx", "b_ctx.onnx"]


def test_no_model_is_ever_there_without_its_binary(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for fail_at in ("z.bin", "a_ctx.onnx", "b_ctx.onnx"):
        objects = _Recorder(tmp_path / "objects", fail_at)
        with pytest.raises(ObjectMissing):
            _deliver(objects, _files(objects), out, overwrite=True)
        there = {p.name for p in out.iterdir()}
        assert "z.bin" in there or not there


def test_an_old_model_goes_before_its_binary_is_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in ("a_ctx.onnx", "z.bin"):
        (out / name).write_bytes(b"old")
    objects = _Recorder(tmp_path / "objects", "z.bin")
    with pytest.raises(ObjectMissing):
        _deliver(objects, _files(objects), out, overwrite=True)
    assert {p.name for p in out.iterdir()} == {"z.bin"}


@pytest.mark.parametrize("name", ["a_ctx.onnx", "z.bin"])
def test_what_exists_is_not_replaced_by_accident(objects: Objects, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_bytes(b"mine")
    with pytest.raises(RequestError, match="output file exists"):
        _deliver(objects, _files(objects), out)
    assert [(p.name, p.read_bytes()) for p in out.iterdir()] == [(name, b"mine")]
    _deliver(objects, _files(objects), out, overwrite=True)
    assert (out / name).read_bytes() == name.encode()
