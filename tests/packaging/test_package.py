"""`winml package` as a user runs it, and the loader on whole and on damaged packages."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from program import Done, valid, winml

import winml.modelkit as wk
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.ep import catalog
from winml.modelkit.packaging import keys, loader

SAMPLE = Path(wk.sample.__file__).parent


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build for the CPU, its evaluation, a key and a signed package."""
    folder = tmp_path_factory.mktemp("package")
    built = winml("build", "--sample", "--target", "cpu", "-p", "fp32", "--no-analyze", "-o", folder / "build")
    assert built.returncode == 0, built.stderr
    data = ("--data", SAMPLE / "test.npz", "--task", "image-classification", "--samples", "20")
    reference = ("--reference", SAMPLE / "digits.onnx")
    scored = winml("eval", "-m", folder / "build", *data, *reference, "-o", folder / "eval.json")
    assert scored.returncode == 0, scored.stderr
    assert winml("package", "create-key", "-o", folder / "key").returncode == 0
    result = winml("package", folder / "build", *_evidence(folder), "--key", folder / "key", "-o", folder / "package")
    assert result.returncode == 0, result.stderr
    return folder


def _refusal(done: Done) -> dict[str, Any]:
    """The JSON of a command whose check failed."""
    assert done.returncode == 5, done.stderr
    return valid(done.stdout)


def _evidence(folder: Path) -> tuple[str | Path, ...]:
    return ("--evidence", folder / "eval.json", "--max-drop", "0.2")


@pytest.fixture
def package(made: Path, tmp_path: Path) -> Path:
    """A copy of the package, without its signature, that a test may damage."""
    copied = tmp_path / "package"
    shutil.copytree(made / "package", copied)
    (copied / loader.SIGNATURE).unlink()
    return copied


def _image() -> np.ndarray[Any, Any]:
    return ((np.arange(48 * 48) * 31 % 97) / 97.0).astype(np.float32).reshape(1, 1, 48, 48)


def _manifest(package: Path) -> dict[str, Any]:
    return json.loads((package / loader.MANIFEST).read_text("utf-8"))


def _write(package: Path, manifest: dict[str, Any]) -> None:
    (package / loader.MANIFEST).write_text(json.dumps(manifest), "utf-8")


def _edit(package: Path, change: Callable[[dict[str, Any]], object]) -> None:
    manifest = _manifest(package)
    change(manifest)
    _write(package, manifest)


def test_a_package_says_what_it_holds_and_is_verified(made: Path) -> None:
    result = winml("package", "verify", made / "package", "--public-key", made / "key.pub", "--json")
    value = valid(result.stdout)
    assert (value["signature"], value["targets"]) == ("fits", ["cpu"])
    files = [path for path in (made / "package").rglob("*") if path.is_file()]
    assert (value["files"], value["bytes"]) == (len(files), sum(path.stat().st_size for path in files))
    manifest = _manifest(made / "package")
    assert manifest["artifacts"][0]["gates"][4]["answer"] == "passed"
    card = (made / "package/README.md").read_text("utf-8")
    assert "accuracy" in card
    assert "no licence file" in card


def test_a_build_without_evidence_is_not_packaged_and_nothing_is_written(made: Path, tmp_path: Path) -> None:
    result = winml("package", made / "build", "-o", tmp_path / "out", "--json")
    value = _refusal(result)
    assert "accuracy not known" in value["error"]["message"]
    assert {one["gate"]: one["answer"] for one in value["builds"][0]["gates"]}["accuracy"] == "not known"
    assert list(tmp_path.iterdir()) == []


def test_no_build_is_called_packaged_where_nothing_is_written(made: Path, tmp_path: Path) -> None:
    result = winml("package", made / "build", *_evidence(made), "--max-bytes", "1", "-o", tmp_path / "out")
    assert result.returncode == 5
    assert "cpu fp32  not passed" in result.stdout
    assert "packaged" not in result.stdout
    assert "  builds    passed" in result.stdout


def test_a_changed_build_is_not_packaged(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "build", tmp_path / "build")
    model = tmp_path / "build/model.onnx"
    model.chmod(0o644)
    raw = model.read_bytes()
    model.unlink()
    model.write_bytes(raw + b"\x00" * 0 + b"\x7a\x00")
    result = winml("package", tmp_path / "build", *_evidence(made), "-o", tmp_path / "out", "--json")
    assert "builds failed" in _refusal(result)["error"]["message"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: m.update(build=f"sha256:{64 * '0'}"), "is of another build than the one that is in the folder now"),
        (lambda m: m.pop("build"), "does not say which build it is of"),
        (lambda m: m["reference"].update(target="qnn/npu"), "its reference ran on qnn/npu as well"),
        (lambda m: m["reference"].update(model=m["model"]), "is not the model that it was built from"),
    ],
)
def test_a_result_that_is_not_about_the_build_or_its_source_does_not_count(
    made: Path, tmp_path: Path, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    result = json.loads((made / "eval.json").read_text("utf-8"))
    change(result)
    (tmp_path / "eval.json").write_text(json.dumps(result), "utf-8")
    evidence = ("--evidence", tmp_path / "eval.json", "--max-drop", "0.2")
    said = _refusal(winml("package", made / "build", *evidence, "-o", tmp_path / "out", "--json"))
    assert "accuracy not known" in said["error"]["message"]
    assert reason in said["error"]["message"]
    assert not (tmp_path / "out").exists()


def test_a_process_that_is_ended_while_it_writes_leaves_no_package(made: Path, tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom pathlib import Path\nimport winml.modelkit as wk\n"
        "def end(path, data):\n"
        "    path.open('wb').write(data[:10])\n"
        "    os._exit(9 if path.name == 'package.json' else 0)\n"
        "write = Path.write_bytes\n"
        "Path.write_bytes = lambda path, data: (end if path.name == 'package.json' else write)(path, data)\n"
        f"wk.package({str(made / 'build')!r}, output=sys.argv[1], evidence=[{str(made / 'eval.json')!r}], max_drop=0.2)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "out")], capture_output=True, text=True)
    assert done.returncode == 9, done.stderr
    assert not (tmp_path / "out").exists()
    with pytest.raises(loader.PackageError, match="package not found"):
        loader.load_package(tmp_path / "out")


def test_the_loader_opens_the_package_as_the_source_computes(made: Path) -> None:
    import onnxruntime

    opened = wk.load_package(made / "package", public_key=str(made / "key.pub"))
    assert (opened.target, opened.skipped, opened.signed) == ("cpu", (), "winml package digits")
    source = onnxruntime.InferenceSession(str(SAMPLE / "digits.onnx"), providers=["CPUExecutionProvider"])
    expected = source.run(None, {"image": _image()})[0]
    np.testing.assert_allclose(opened.run({"image": _image()})["logits"], expected, rtol=1e-4, atol=1e-5)


def test_an_archive_holds_the_same_and_has_the_same_bytes_each_time(made: Path, tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        wk.package(made / "build", output=tmp_path / name, evidence=[made / "eval.json"], max_drop=0.2)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert wk.load_package(tmp_path / "a.zip").target == "cpu"
    loader.unpack_package(tmp_path / "a.zip", tmp_path / "unpacked")
    assert wk.verify_package(tmp_path / "unpacked").targets == ("cpu",)


def test_the_copied_loader_needs_nothing_of_winml(made: Path, tmp_path: Path) -> None:
    assert winml("package", "copy-loader", "-o", tmp_path / "winml_package.py").returncode == 0
    code = (
        "import sys; sys.modules['winml'] = None; import winml_package as w; import numpy as np\n"
        f"p = w.load_package({str(made / 'package')!r}); print(p.target)\n"
        "print(p.run({'image': np.zeros((1, 1, 48, 48), np.float32)})['logits'].shape)\n"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in ('onnx', 'click', 'torch')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": "."},
    )
    assert done.stdout.splitlines() == ["cpu", "(1, 10)", "[]"], done.stderr


# Each fallback


def _first(package: Path, target: str, **changes: Any) -> None:
    """Put an artifact before the one for the CPU."""

    def change(manifest: dict[str, Any]) -> None:
        cpu = manifest["artifacts"][0]
        conditions = {**cpu["conditions"], **changes.pop("conditions", {})}
        manifest["artifacts"].insert(0, {**cpu, "target": target, "conditions": conditions, **changes})

    _edit(package, change)


@pytest.mark.parametrize(
    ("target", "changes", "reason"),
    [
        ("dml/gpu", {}, "DmlExecutionProvider is not installed"),
        ("vitisai/npu", {"conditions": {"systems": ["Nowhere"]}}, "it is for Nowhere"),
        ("openvino/cpu", {"conditions": {"memory_bytes": 2**60}}, "of memory, this machine has"),
        ("openvino/cpu", {"conditions": {"onnxruntime_at_least": "99.1"}}, "it needs onnxruntime 99.1"),
    ],
)
def test_an_artifact_that_does_not_work_here_is_passed_over_with_the_reason(
    package: Path, target: str, changes: dict[str, Any], reason: str
) -> None:
    _first(package, target, **changes)
    opened = loader.load_package(package)
    assert opened.target == "cpu"
    assert [one.target for one in opened.skipped] == [target]
    assert reason in opened.skipped[0].reason


def test_a_model_that_does_not_open_is_passed_over(package: Path) -> None:
    raw = b"\x08\x08\x3a\x00"  # an IR version and an empty graph
    (package / "models/bad.onnx").write_bytes(raw)
    entry = {"digest": f"sha256:{hashlib.sha256(raw).hexdigest()}", "bytes": len(raw)}
    _edit(package, lambda m: m["files"].update({"models/bad.onnx": entry}))
    _first(package, "cpu", model="models/bad.onnx", files=["models/bad.onnx"])
    opened = loader.load_package(package)
    assert "it does not open" in opened.skipped[0].reason


@pytest.mark.qnn
def test_a_simulated_device_is_used_only_when_that_is_allowed(package: Path) -> None:
    _first(package, "qnn/npu")
    assert "only simulated" in loader.load_package(package).skipped[0].reason


@pytest.mark.qnn
def test_a_plugin_that_is_registered_already_opens_again(package: Path) -> None:
    model = onnx.load(SAMPLE / "digits.onnx")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    raw = model.SerializeToString()
    (package / "models/npu.onnx").write_bytes(raw)
    entry = {"digest": f"sha256:{hashlib.sha256(raw).hexdigest()}", "bytes": len(raw)}
    _edit(package, lambda m: m["files"].update({"models/npu.onnx": entry}))
    _first(package, "qnn/npu", model="models/npu.onnx", files=["models/npu.onnx"])
    code = (
        "from winml.modelkit.packaging.loader import load_package as load\n"
        f"print([load({str(package)!r}, allow_simulated=True).target for _ in range(2)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "['qnn/npu', 'qnn/npu']"


def test_a_compiled_artifact_is_passed_over_where_the_compiler_is_older(package: Path) -> None:
    _first(package, "cpu", conditions={"provider_package": "onnxruntime", "provider_at_least": "99.0"})
    opened = loader.load_package(package)
    assert "it was compiled by onnxruntime 99.0, this is" in opened.skipped[0].reason


def test_a_target_that_the_package_does_not_have_is_refused(package: Path) -> None:
    with pytest.raises(DataError, match="no artifact for `qnn/npu`; it has cpu"):
        wk.load_package(package, target="qnn/npu")


def test_nothing_that_works_is_an_error_with_every_reason(package: Path) -> None:
    _edit(package, lambda m: m["artifacts"][0]["conditions"].update(onnxruntime_at_least="99.0"))
    with pytest.raises(wk.ModelkitError, match="nothing in the package works here: cpu: it needs onnxruntime 99.0"):
        wk.load_package(package)


# Ways to damage a package


def _truncate(package: Path) -> None:
    path = package / "models/cpu_cpu.onnx"
    path.write_bytes(path.read_bytes()[:-1])


def _flip(package: Path) -> None:
    path = package / "models/cpu_cpu.onnx"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def _link(package: Path) -> None:
    path = package / "README.md"
    path.rename(package.parent / "outside.md")
    path.symlink_to(package.parent / "outside.md")


def _twice(package: Path) -> None:
    path = package / loader.MANIFEST
    path.write_text(path.read_text("utf-8").replace("{", '{"schema": "winml/package-manifest/1",', 1), "utf-8")


def _name_outside(package: Path) -> None:
    """A model whose weights are in a file outside, with digests that fit."""
    location = b"\x0a\x08location\x12\x0d../../weights"
    tensor = b"\x6a" + bytes([len(location)]) + location
    graph = b"\x2a" + bytes([len(tensor)]) + tensor
    raw = b"\x08\x08\x3a" + bytes([len(graph)]) + graph
    (package / "models/cpu_cpu.onnx").write_bytes(raw)
    entry = {"digest": f"sha256:{hashlib.sha256(raw).hexdigest()}", "bytes": len(raw)}
    _edit(package, lambda m: m["files"].update({"models/cpu_cpu.onnx": entry}))


def _artifact(**values: Any) -> Callable[[Path], None]:
    return lambda package: _edit(package, lambda m: m["artifacts"][0].update(values))


def _condition(**values: Any) -> Callable[[Path], None]:
    return lambda package: _edit(package, lambda m: m["artifacts"][0]["conditions"].update(values))


def _session(**values: Any) -> Callable[[Path], None]:
    return lambda package: _edit(package, lambda m: m["artifacts"][0]["session"].update(values))


def _listed(name: str) -> Callable[[Path], None]:
    return lambda package: _edit(package, lambda m: m["files"].update({name: m["files"]["README.md"]}))


def _set(**values: Any) -> Callable[[Path], None]:
    return lambda package: _edit(package, lambda m: m.update(values))


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "model missing": (lambda p: (p / "models/cpu_cpu.onnx").unlink(), "is missing"),
    "card missing": (lambda p: (p / "README.md").unlink(), "is missing"),
    "model truncated": (_truncate, "was changed"),
    "a bit of the model": (_flip, "was changed"),
    "card changed": (lambda p: (p / "README.md").write_text("better", "utf-8"), "was changed"),
    "a file more": (lambda p: (p / "models/extra.dll").write_bytes(b"MZ"), "is not listed"),
    "manifest missing": (lambda p: (p / loader.MANIFEST).unlink(), "is missing"),
    "manifest empty": (lambda p: (p / loader.MANIFEST).write_bytes(b""), "is not JSON"),
    "manifest a list": (lambda p: (p / loader.MANIFEST).write_text("[]"), "no schema"),
    "manifest huge": (lambda p: (p / loader.MANIFEST).write_bytes(b" " * (5 << 20)), "is larger"),
    "manifest deep": (lambda p: (p / loader.MANIFEST).write_text("[" * 100_000), "is not JSON"),
    "a key twice": (_twice, "given twice"),
    "newer schema": (_set(schema="winml/package-manifest/2"), "this loader reads"),
    "other schema": (_set(schema="winml/perf/1"), "no schema of a package"),
    "no artifacts": (_set(artifacts=[]), "holds no artifact"),
    "artifact no object": (_set(artifacts=[1]), "is not whole"),
    "unknown provider": (_artifact(target="evil/npu"), "no target"),
    "device of another": (_artifact(target="cpu/npu"), "no target"),
    "model not listed": (_artifact(model="models/other.onnx"), "is not listed"),
    "path above": (_listed("../outside"), "leads outside"),
    "absolute path": (_listed("/etc/passwd"), "leads outside"),
    "windows path": (_listed("C:\\Windows\\x"), "leads outside"),
    "device name": (_listed("models/nul.onnx"), "device on Windows"),
    "names differ in case": (_listed("readme.md"), "only in case"),
    "a library as an option": (
        lambda p: (_artifact(target="qnn/npu")(p), _session(ep_options={"backend_path": "/tmp/evil.so"})(p)),
        "may not set",
    ),
    "a value of an option": (
        lambda p: (_artifact(target="qnn/npu")(p), _session(ep_options={"soc_model": "../60"})(p)),
        "may not set",
    ),
    "a config entry that writes": (_session(config_entries={"ep.context_file_path": "/tmp/x"}), "may not set"),
    "conditions missing": (lambda p: _edit(p, lambda m: m["artifacts"][0].pop("conditions")), "is not whole"),
    "a version that is none": (_condition(onnxruntime_at_least="1" * 5000), "cannot be read"),
    "memory that is none": (_condition(memory_bytes=-1), "cannot be read"),
    "systems that are none": (_condition(systems=[{}]), "cannot be read"),
    "too many artifacts": (lambda p: _edit(p, lambda m: m.update(artifacts=m["artifacts"] * 101)), "more than 100"),
    "a name for a terminal": (_listed("models/\x1b[31m.onnx"), r"x1b\[31m.onnx` is refused"),
    "a size that is none": (lambda p: _edit(p, lambda m: m["files"]["README.md"].update(bytes=True)), "no size"),
    "threads": (_session(threads=-1), "settings of a session"),
    "weights outside": (_name_outside, "names the file"),
}


@pytest.mark.parametrize("way", [*DAMAGES, pytest.param("a link", marks=pytest.mark.symlink)])
def test_a_damaged_package_is_refused_with_the_reason(package: Path, way: str) -> None:
    damage, reason = (_link, "is a link") if way == "a link" else DAMAGES[way]
    damage(package)
    with pytest.raises(loader.PackageError, match=reason):
        loader.load_package(package)
    assert reason.replace("\\[", "[") in _refusal(winml("package", "verify", package, "--json"))["error"]["message"]


def _encrypt(raw: bytearray) -> None:
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = raw.find(mark)
        while at >= 0:
            raw[at + place] |= 1
            at = raw.find(mark, at + 4)


def _pack_strangely(raw: bytearray) -> None:
    for mark, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = raw.find(mark)
        while at >= 0:
            raw[at + place] = 99
            at = raw.find(mark, at + 4)


def _cut(raw: bytearray) -> None:
    del raw[len(raw) // 2 :]


def _flip_packed(raw: bytearray) -> None:
    raw[raw.find(b"models/cpu_cpu.onnx") + 2000] ^= 255


@pytest.mark.parametrize("damage", [_encrypt, _pack_strangely, _cut, _flip_packed])
def test_a_damaged_archive_is_refused_and_nothing_is_unpacked(
    made: Path, tmp_path: Path, damage: Callable[[bytearray], None]
) -> None:
    path = tmp_path / "package.zip"
    wk.package(made / "build", output=path, evidence=[made / "eval.json"], max_drop=0.2)
    raw = bytearray(path.read_bytes())
    damage(raw)
    path.write_bytes(raw)
    with pytest.raises(loader.PackageError):
        loader.load_package(path)
    with pytest.raises(loader.PackageError):
        loader.unpack_package(path, tmp_path / "out")
    assert [one.name for one in tmp_path.iterdir()] == ["package.zip"]
    _refusal(winml("package", "verify", path, "--json"))


def test_a_name_above_an_archive_is_refused(made: Path, tmp_path: Path) -> None:
    path = tmp_path / "package.zip"
    wk.package(made / "build", output=path, evidence=[made / "eval.json"], max_drop=0.2)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../outside\x1b", "x")
    with pytest.raises(loader.PackageError, match=r"`\.\./outside.x1b` is not listed"):
        loader.unpack_package(path, tmp_path / "out")
    assert [one.name for one in tmp_path.iterdir()] == ["package.zip"]


def test_a_signature_is_checked_against_the_key(made: Path, package: Path, tmp_path: Path) -> None:
    own, signed = (made / "key.pub").read_text("utf-8"), (made / "package" / loader.SIGNATURE).read_text("utf-8")
    with pytest.raises(loader.SignatureProblem, match="is not signed"):
        loader.load_package(package, public_key=own)
    (package / loader.SIGNATURE).write_text(signed, "utf-8")
    assert loader.load_package(package, public_key=own).signed == "winml package digits"
    other = keys.make_key()
    with pytest.raises(loader.SignatureProblem, match="signed with the key"):
        loader.load_package(package, public_key=other.public_text)
    (package / loader.SIGNATURE).write_text(signed.replace("package digits", "package other"), "utf-8")
    with pytest.raises(loader.SignatureProblem, match="comment of the signature"):
        loader.load_package(package, public_key=own)
    (package / loader.SIGNATURE).write_text(signed, "utf-8")
    _set(name="other")(package)
    with pytest.raises(loader.SignatureProblem, match="does not fit the manifest"):
        loader.load_package(package, public_key=own)
    with pytest.raises(RequestError, match="is not a public key"):
        wk.verify_package(package, public_key="nonsense")


def test_ed25519_gives_the_vectors_of_the_standard() -> None:
    seed = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    public = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    signature = (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    assert keys.ed25519_public(seed).hex() == public
    assert keys.ed25519_sign(seed, b"\x72").hex() == signature
    assert loader.ed25519_verify(bytes.fromhex(public), b"\x72", bytes.fromhex(signature))
    assert not loader.ed25519_verify(bytes.fromhex(public), b"\x73", bytes.fromhex(signature))


def test_the_table_of_the_loader_is_that_of_winml() -> None:
    assert frozenset(loader.CONFIG_ENTRIES) == catalog.DOCUMENT_ENTRIES
    assert set(loader.EPS) == set(catalog.BY_NAME)
    for info in catalog.TABLE:
        row = loader.EPS[info.name]
        assert (row["full_name"], tuple(row["devices"])) == (info.full_name, info.devices)
        # What is JSON for winml is a file for the provider, which a package cannot name.
        allowed = {n for n, o in info.options.items() if o.trust == "document" and not o.refused and o.type != "json"}
        assert set(row.get("options", {})) == allowed
        assert row.get("device_options", {}) == info.device_options


def test_a_feed_takes_a_package_and_verifies_everything(made: Path, tmp_path: Path) -> None:
    feed = ("--feed", tmp_path / "feed")
    pushed = valid(winml("feed", "push", made / "package", "--run-stamp", "20260609", *feed, "--json").stdout)
    assert pushed["version"] == "0.0.0-20260609-digits"
    assert winml("feed", "push", made / "build", "--package-name", "other", *feed).returncode == 0
    everything = valid(winml("feed", "verify", *feed, "--json").stdout)
    assert [one["package"] for one in everything["packages"]] == ["digits", "other"]
    pulled = winml("feed", "pull", "-m", "digits", "-o", tmp_path / "out", *feed)
    assert pulled.returncode == 0
    assert "next: winml package verify" in pulled.stderr
    assert wk.load_package(tmp_path / "out", public_key=str(made / "key.pub")).target == "cpu"
