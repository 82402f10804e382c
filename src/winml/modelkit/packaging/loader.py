"""Opens a package that `winml package` wrote: needs onnxruntime and numpy, nothing else of winml.

This file may be copied into an application (`winml package copy-loader -o winml_package.py`):

    import winml_package
    package = winml_package.load_package("digits", public_key=open("release.pub").read())
    print(package.target, [f"{one.target}: {one.reason}" for one in package.skipped])
    outputs = package.run({"pixels": pixels})

Everything is verified before anything is opened: the signature where a public key is given, then the digest of every
file, then that no model names a file that is not listed. A package is data: it can choose among the providers and
options of the tables below, and cannot name a library, a file outside of it, or code.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import os
import platform
import re
import shutil
import stat
import struct
import sys
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field  # noqa: TID251 - this module stands alone
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

SCHEMA = "winml/package-manifest/1"
MANIFEST = "package.json"
SIGNATURE = "package.json.minisig"
MOST_MANIFEST_BYTES = 4 * 2**20
MOST_SIGNATURE_BYTES = 4096
MOST_FILES = 10_000
MOST_ARTIFACTS = 100
_CHUNK = 1 << 20
_LEVELS = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
_RECORD = "session.record_ep_graph_assignment_info"
_WINDOWS_NAMES = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")
_VERSION = r"[0-9]{1,9}(\.[0-9A-Za-z+-]{1,20}){0,5}"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}")

EPS: dict[str, dict[str, Any]] = {
    "cpu": {
        "full_name": "CPUExecutionProvider",
        "devices": ["cpu"],
    },
    "qnn": {
        "full_name": "QNNExecutionProvider",
        "devices": ["npu", "gpu"],
        "module": "onnxruntime_qnn",
        "libraries": {"Linux": "libonnxruntime_providers_qnn.so", "Windows": "onnxruntime_providers_qnn.dll"},
        "device_options": {"npu": {"backend_type": "htp"}, "gpu": {"backend_type": "gpu"}},
        "simulated_on": {"npu": [["Linux", "x86_64"]]},
        "simulator_options": {"soc_model": "60"},
        "options": {
            "backend_type": r"htp|gpu",
            "soc_model": r"[0-9]{1,15}(,[0-9]{1,15})*",
            "htp_arch": r"[0-9]{1,15}(,[0-9]{1,15})*",
            "vtcm_mb": r"[0-9]{1,15}(,[0-9]{1,15})*",
            "htp_performance_mode": r"burst|balanced|default|high_performance|high_power_saver|"
            r"low_balanced|low_power_saver|power_saver|extreme_power_saver|sustained_high_performance",
            "htp_graph_finalization_optimization_mode": r"[0-9]{1,15}",
            "enable_htp_fp16_precision": r"[01]",
            "enable_htp_fp16_clamp_overflow": r"[01]",
            "htp_bf16_enable": r"[01]",
            "offload_graph_io_quantization": r"[01]",
            "qnn_context_priority": r"low|normal|normal_high|high",
            "rpc_control_latency": r"[0-9]{1,15}",
            "device_id": r"[0-9]{1,15}",
            "enable_htp_prepare_and_load": r"[01]",
            "enable_htp_spill_fill_buffer": r"[01]",
            "enable_htp_shared_memory_allocator": r"[01]",
            "enable_htp_graph_splitting": r"[01]",
            "enable_htp_monolithic_lstm": r"[01]",
            "enable_block_quant_weight_optimization": r"[01]",
            "enable_vtcm_backup_buffer_sharing": r"[01]",
            "htp_share_resource_optimization": r"[01]",
            "extended_udma": r"[01]",
            "disable_file_mapped_weights": r"[01]",
            "htp_reused_io_limit_mb": r"[0-9]{1,15}",
            "htp_graph_splitting_num_prepare_threads": r"[0-9]{1,15}",
            "num_graph_prepare_threads": r"[0-9]{1,15}",
            "enable_dx12_shared_memory_allocator": r"[01]",
        },
    },
    "openvino": {
        "full_name": "OpenVINOExecutionProvider",
        "devices": ["npu", "gpu", "cpu"],
        "module": "onnxruntime_ep_openvino",
        "libraries": {
            "Linux": "libonnxruntime_providers_openvino_plugin.so",
            "Windows": "onnxruntime_providers_openvino_plugin.dll",
        },
        "device_options": {"npu": {"device_type": "NPU"}, "gpu": {"device_type": "GPU"}, "cpu": {"device_type": "CPU"}},
        "options": {
            "device_type": r"CPU|GPU|GPU\.0|GPU\.1|NPU",
            "precision": r"FP32|FP16|ACCURACY",
            "num_of_threads": r"[0-9]{1,15}",
            "num_streams": r"[0-9]{1,15}",
            "enable_opencl_throttling": r"[01]",
            "enable_qdq_optimizer": r"[01]",
            "disable_dynamic_shapes": r"[01]",
            "model_priority": r"LOW|MEDIUM|HIGH|DEFAULT",
            "reshape_input": r"[A-Za-z0-9_:,.\[\] -]{1,400}",
            "layout": r"[A-Za-z0-9_:,.\[\] -]{1,400}",
        },
    },
    "dml": {
        "full_name": "DmlExecutionProvider",
        "devices": ["gpu"],
        "options": {
            "device_id": r"[0-9]{1,15}",
            "performance_preference": r"default|high_performance|minimum_power",
            "disable_metacommands": r"[01]",
            "enable_graph_capture": r"[01]",
        },
    },
    "vitisai": {
        "full_name": "VitisAIExecutionProvider",
        "devices": ["npu"],
        "options": {
            "xlnx_enable_py3_round": r"[01]",
            "log_level": r"info|warning|error|fatal",
        },
    },
    "webgpu": {
        "full_name": "WebGpuExecutionProvider",
        "devices": ["gpu"],
        "module": "onnxruntime_ep_webgpu",
        "libraries": {
            "Linux": "libonnxruntime_providers_webgpu.so",
            "Windows": "onnxruntime_providers_webgpu.dll",
            "Darwin": "libonnxruntime_providers_webgpu.dylib",
        },
        "options": {
            "preferredLayout": r"NCHW|NHWC",
            "enableGraphCapture": r"[01]",
            "dawnBackendType": r"Vulkan|D3D12|Metal",
            "powerPreference": r"high-performance|low-power",
            "validationMode": r"disabled|wgpuOnly|basic|full",
            "storageBufferCacheMode": r"disabled|lazyRelease|simple|bucket",
            "deviceId": r"[0-9]{1,15}",
        },
    },
    "nvtensorrtrtx": {
        "full_name": "NvTensorRTRTXExecutionProvider",
        "devices": ["gpu"],
        "module": "onnxruntime_ep_nv_tensorrt_rtx",
        "libraries": {
            "Linux": "libonnxruntime_providers_nv_tensorrt_rtx.so",
            "Windows": "onnxruntime_providers_nv_tensorrt_rtx.dll",
        },
        "options": {
            "device_id": r"[0-9]{1,15}",
            "nv_max_workspace_size": r"[0-9]{1,15}",
            "nv_max_shared_mem_size": r"[0-9]{1,15}",
            "enable_cuda_graph": r"[01]",
            "nv_profile_min_shapes": r"[A-Za-z0-9_:,.\[\] -]{1,400}",
            "nv_profile_max_shapes": r"[A-Za-z0-9_:,.\[\] -]{1,400}",
            "nv_profile_opt_shapes": r"[A-Za-z0-9_:,.\[\] -]{1,400}",
            "nv_multi_profile_enable": r"[01]",
            "nv_use_external_data_initializer": r"[01]",
        },
    },
    "migraphx": {
        "full_name": "MIGraphXExecutionProvider",
        "devices": ["gpu"],
        "options": {
            "device_id": r"[0-9]{1,15}",
            "migraphx_fp16_enable": r"[01]",
            "migraphx_bf16_enable": r"[01]",
            "migraphx_fp8_enable": r"[01]",
            "migraphx_int8_enable": r"[01]",
            "migraphx_exhaustive_tune": r"[01]",
            "migraphx_mem_limit": r"[0-9]{1,15}",
        },
    },
    "cuda": {
        "full_name": "CUDAExecutionProvider",
        "devices": ["gpu"],
        "options": {
            "device_id": r"[0-9]{1,15}",
            "gpu_mem_limit": r"[0-9]{1,15}",
            "arena_extend_strategy": r"kNextPowerOfTwo|kSameAsRequested",
            "cudnn_conv_algo_search": r"EXHAUSTIVE|HEURISTIC|DEFAULT",
            "do_copy_in_default_stream": r"[01]",
            "cudnn_conv_use_max_workspace": r"[01]",
            "cudnn_conv1d_pad_to_nc1d": r"[01]",
            "enable_cuda_graph": r"[01]",
            "prefer_nhwc": r"[01]",
            "use_tf32": r"[01]",
            "use_ep_level_unified_stream": r"[01]",
        },
    },
}
"""Execution providers that a package may name, and the values of options that it may set; a test compares it with the
table of `winml`. Neither a library nor a file can be named by a package: they are found by this table alone."""
CONFIG_ENTRIES = frozenset(
    {
        "mlas.enable_gemm_fastmath_arm64_bfloat16",
        "optimization.disable_specified_optimizers",
        "optimization.enable_gelu_approximation",
        "session.disable_aot_function_inlining",
        "session.disable_double_qdq_remover",
        "session.disable_prepacking",
        "session.disable_quant_qdq",
        "session.dynamic_block_base",
        "session.enable_quant_qdq_cleanup",
        "session.force_spinning_stop",
        "session.inter_op.allow_spinning",
        "session.intra_op.allow_spinning",
        "session.qdqisint8allowed",
        "session.set_denormal_as_zero",
        "session.x64quantprecision",
    }
)


class PackageError(Exception):
    """A package that is refused: damaged, changed, of a newer kind, or with nothing for this machine.

    Names of others are in the message: what would change a terminal is written as its number.
    """

    def __init__(self, message: str) -> None:
        super().__init__("".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in message))


# Signatures: Ed25519 (RFC 8032) in the format of minisign, with the standard library. Only public values are worked
# on, so the time it takes tells nobody anything.

PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, PRIME) % PRIME
_ROOT = pow(2, (PRIME - 1) // 4, PRIME)
Point = tuple[int, int, int, int]


class SignatureProblem(PackageError):
    """A key or a signature that is none, or one that does not fit."""


def _recover_x(y: int, sign: int) -> int | None:
    square = (y * y - 1) * pow(_D * y * y + 1, -1, PRIME) % PRIME
    if square == 0:
        return None if sign else 0
    x = pow(square, (PRIME + 3) // 8, PRIME)
    if (x * x - square) % PRIME:
        x = x * _ROOT % PRIME
    if (x * x - square) % PRIME:
        return None
    return PRIME - x if x & 1 != sign else x


_BASE_Y = 4 * pow(5, -1, PRIME) % PRIME
_BASE_X = _recover_x(_BASE_Y, 0) or 0
BASE: Point = (_BASE_X, _BASE_Y, 1, _BASE_X * _BASE_Y % PRIME)


def add_points(a: Point, b: Point) -> Point:
    left, right = (a[1] - a[0]) * (b[1] - b[0]) % PRIME, (a[1] + a[0]) * (b[1] + b[0]) % PRIME
    c, d = 2 * a[3] * b[3] * _D % PRIME, 2 * a[2] * b[2] % PRIME
    e, f, g, h = right - left, d - c, d + c, right + left
    return e * f % PRIME, g * h % PRIME, f * g % PRIME, e * h % PRIME


def multiply(scalar: int, point: Point) -> Point:
    result: Point = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = add_points(result, point)
        point = add_points(point, point)
        scalar >>= 1
    return result


def _decompress(raw: bytes) -> Point | None:
    value = int.from_bytes(raw, "little")
    y, sign = value & (1 << 255) - 1, value >> 255
    x = _recover_x(y, sign) if y < PRIME else None
    return None if x is None else (x, y, 1, x * y % PRIME)


def hash_to_scalar(*parts: bytes) -> int:
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % ORDER


def ed25519_verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature is that of the key; one whose number is out of range is none."""
    key, commitment = _decompress(public), _decompress(signature[:32])
    number = int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or key is None or commitment is None or number >= ORDER:
        return False
    challenge = hash_to_scalar(signature[:32], public, message)
    a, b = multiply(number, BASE), add_points(commitment, multiply(challenge, key))
    return (a[0] * b[2] - b[0] * a[2]) % PRIME == 0 and (a[1] * b[2] - b[1] * a[2]) % PRIME == 0


def _decode(line: str, length: int, what: str) -> bytes:
    try:
        raw = base64.b64decode(line.strip(), validate=True)
    except ValueError:
        raw = b""
    if len(raw) != length:
        raise SignatureProblem(f"{what} is not in the format of minisign")
    return raw


def read_public_key(text: str) -> tuple[bytes, bytes]:
    """Number and key of a public key: the file that minisign writes, or its last line alone."""
    lines = [line for line in text.splitlines() if line.strip()]
    raw = _decode(lines[-1] if lines else "", 42, "the public key")
    if raw[:2] != b"Ed":
        raise SignatureProblem("the public key is not one of Ed25519")
    return raw[2:10], raw[10:]


def verify_signature(message: bytes, signature: str, public_key: str) -> str:
    """The trusted comment of a signature that fits; raises otherwise."""
    number, key = read_public_key(public_key)
    lines = signature.splitlines()
    if len(lines) < 4 or not lines[2].startswith("trusted comment: "):
        raise SignatureProblem("the signature is not in the format of minisign")
    raw = _decode(lines[1], 74, "the signature")
    comment = lines[2].removeprefix("trusted comment: ")
    if raw[:2] not in (b"ED", b"Ed"):
        raise SignatureProblem("the signature is of a kind that is not known")
    if raw[2:10] != number:
        raise SignatureProblem(
            f"it was signed with the key {raw[2:10][::-1].hex().upper()}, not with {number[::-1].hex().upper()}"
        )
    signed = hashlib.blake2b(message).digest() if raw[:2] == b"ED" else message
    if not ed25519_verify(key, signed, raw[10:]):
        raise SignatureProblem("the signature does not fit the manifest")
    if not ed25519_verify(key, raw[10:] + comment.encode(), _decode(lines[3], 64, "the signature of the comment")):
        raise SignatureProblem("the comment of the signature was changed")
    return comment


# Files of a package: a folder or a zip archive.

_UNREADABLE = (
    OSError,
    zipfile.BadZipFile,
    ValueError,
    RuntimeError,
    EOFError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
)
"""What `zipfile` raises for damaged, encrypted and strangely packed archives."""


class FolderFiles:
    """The files of a package in a folder; links are refused."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def names(self) -> Iterator[str]:
        for folder, folders, files in os.walk(self.root):
            for name in (*folders, *files):
                path = Path(folder) / name
                if path.is_symlink() or not (path.is_file() or path.is_dir()):
                    raise PackageError(f"`{path.relative_to(self.root).as_posix()}` is a link or no plain file")
            yield from ((Path(folder) / name).relative_to(self.root).as_posix() for name in files)

    def open(self, name: str) -> BinaryIO:
        path = self.root / name
        if not stat.S_ISREG(path.lstat().st_mode):
            raise PackageError(f"`{name}` is a link or no plain file")
        return path.open("rb")

    def close(self) -> None:
        """Nothing is held open."""


class ZipFiles:
    """The files of a package in an archive; nothing is unpacked."""

    def __init__(self, path: Path) -> None:
        try:
            self._archive = zipfile.ZipFile(path)
        except _UNREADABLE as error:
            raise PackageError(f"`{path}` is not a package: {error}") from error
        if len(self._archive.infolist()) > 2 * MOST_FILES:
            self.close()
            raise PackageError(f"`{path}` holds more than {2 * MOST_FILES} names")

    def names(self) -> Iterator[str]:
        names = [info.filename for info in self._archive.infolist() if not info.is_dir()]
        if len(set(names)) != len(names):
            raise PackageError("the archive holds a name twice")
        yield from names

    def open(self, name: str) -> BinaryIO:
        try:
            return cast("BinaryIO", self._archive.open(name))
        except KeyError as error:
            raise FileNotFoundError(name) from error

    def close(self) -> None:
        self._archive.close()


Files = FolderFiles | ZipFiles


def open_files(path: str | os.PathLike[str]) -> Files:
    """The files of a package at a path."""
    place = Path(path)
    if place.is_dir():
        return FolderFiles(place)
    if not place.exists():
        raise PackageError(f"package not found: `{place}`")
    return ZipFiles(place)


def why_unsafe(name: object) -> str | None:
    """Why a name of a file cannot be used; None when it stays inside on every system."""
    if not isinstance(name, str) or not 0 < len(name) <= 240:
        return "it is no name of a file"
    parts = PurePosixPath(name).parts
    if name.startswith("/") or "/".join(parts) != name or not all(map(_PLAIN.fullmatch, parts)):
        return "it leads outside of the package or has characters that a name cannot have everywhere"
    if any(_WINDOWS_NAMES.fullmatch(part) or part.endswith(".") for part in parts):
        return "it is a device on Windows"
    return None


def _read_small(files: Files, name: str, most: int) -> bytes:
    try:
        with files.open(name) as stream:
            raw = stream.read(most + 1)
    except FileNotFoundError as error:
        raise PackageError(f"`{name}` is missing") from error
    except _UNREADABLE as error:
        raise PackageError(f"`{name}` cannot be read: {error}") from error
    if len(raw) > most:
        raise PackageError(f"`{name}` is larger than {most} bytes")
    return raw


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def parse_manifest(raw: bytes) -> dict[str, Any]:
    """The manifest, with what the loader relies on checked; raises for a newer schema."""
    try:
        value = json.loads(raw, object_pairs_hook=_once)  # noqa: TID251 - this module stands alone
    except (ValueError, RecursionError) as error:
        raise PackageError(f"`{MANIFEST}` is not JSON: {error}") from error
    schema = value.get("schema") if isinstance(value, dict) else None
    if schema != SCHEMA:
        newer = isinstance(schema, str) and re.fullmatch(r"winml/package-manifest/[0-9]{1,6}", schema) is not None
        why = (
            f"it has the schema `{schema}`, this loader reads `{SCHEMA}`" if newer else "it has no schema of a package"
        )
        raise PackageError(f"`{MANIFEST}` cannot be used: {why}")
    try:
        _check_manifest(value)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise PackageError(f"`{MANIFEST}` is not whole: {error!r:.200}") from error
    return cast("dict[str, Any]", value)


def _check_manifest(value: Mapping[str, Any]) -> None:
    files = value["files"]
    if not 0 < len(files) <= MOST_FILES:
        raise PackageError(f"it lists {len(files)} files; a package has 1 to {MOST_FILES}")
    for name, entry in files.items():
        if why := why_unsafe(name):
            raise PackageError(f"`{name!s:.100}` is refused: {why}")
        if not re.fullmatch("sha256:[0-9a-f]{64}", entry["digest"]) or type(entry["bytes"]) is not int:
            raise PackageError(f"`{name}` has no digest or no size")
    if len({name.casefold() for name in files}) != len(files):
        raise PackageError("two names of files differ only in case")
    if not 0 < len(value["artifacts"]) <= MOST_ARTIFACTS:
        raise PackageError(
            "it holds no artifact" if not value["artifacts"] else f"more than {MOST_ARTIFACTS} artifacts"
        )
    for artifact in value["artifacts"]:
        _check_artifact(artifact, files)


def _check_artifact(artifact: Mapping[str, Any], files: Mapping[str, Any]) -> None:
    target = artifact["target"]
    ep, _, device = target.partition("/")
    device = device or ep
    if ep not in EPS or device not in EPS[ep]["devices"]:
        raise PackageError(f"`{target!s:.60}` is no target that a package may name")
    for name in (artifact["model"], *artifact["files"]):
        if name not in files:
            raise PackageError(f"the artifact for {target} names `{name!s:.100}`, which is not listed")
    if artifact["model"] not in artifact["files"]:
        raise PackageError(f"the artifact for {target} does not list its model")
    _check_conditions(target, artifact["conditions"])
    session = artifact["session"]
    for name, text in session["ep_options"].items():
        pattern = EPS[ep].get("options", {}).get(name)
        if pattern is None or not isinstance(text, str) or not re.fullmatch(pattern, text):
            raise PackageError(f"the artifact for {target} sets `{name!s:.60}`, which a package may not set so")
    for name, text in session["config_entries"].items():
        if name not in CONFIG_ENTRIES or not isinstance(text, str) or len(text) > 400:
            raise PackageError(f"the artifact for {target} sets `{name!s:.60}`, which a package may not set")
    threads = session["threads"]
    if session["optimization_level"] not in _LEVELS or not (
        threads is None or (type(threads) is int and 0 < threads < 1025)
    ):
        raise PackageError(f"the artifact for {target} has settings of a session that are none")


def _check_conditions(target: str, conditions: Mapping[str, Any]) -> None:
    """Raise for conditions that this loader would take for none."""
    systems, memory = conditions["systems"], conditions["memory_bytes"]
    versions = [conditions["onnxruntime_at_least"], conditions.get("provider_at_least")]
    if (
        any(not (text is None or re.fullmatch(_VERSION, text)) for text in versions)
        or not (memory is None or (type(memory) is int and 0 <= memory < 2**63))
        or not (systems is None or all(isinstance(one, str) for one in systems))
    ):
        raise PackageError(f"the artifact for {target} has conditions that cannot be read")


def verify_package(files: Files, public_key: str | None = None) -> tuple[dict[str, Any], str | None]:
    """The manifest of a package whose every file is as listed, and the comment of its signature.

    Raises `PackageError` for the first thing that is not right. With a public key, a package without a signature is
    refused; the signature covers the manifest, and the manifest every other file.
    """
    raw = _read_small(files, MANIFEST, MOST_MANIFEST_BYTES)
    there = set(files.names())
    comment = None
    if public_key is not None:
        read_public_key(public_key)  # the key is at fault, whatever the package is
        if SIGNATURE not in there:
            raise SignatureProblem("the package is not signed, and a public key was given")
        text = _read_small(files, SIGNATURE, MOST_SIGNATURE_BYTES).decode("utf-8", "replace")
        comment = verify_signature(raw, text, public_key)
    manifest = parse_manifest(raw)
    listed = manifest["files"]
    if missing := sorted(set(listed) - there):
        raise PackageError(f"`{missing[0]}` is missing")
    if extra := sorted(there - set(listed) - {MANIFEST, SIGNATURE}):
        raise PackageError(f"`{extra[0]}` is not listed in `{MANIFEST}`")
    for name, entry in listed.items():
        _verify_file(files, name, entry)
    for artifact in manifest["artifacts"]:
        _verify_names(files, artifact, listed)
    return manifest, comment


def _verify_file(files: Files, name: str, entry: Mapping[str, Any], copy: BinaryIO | None = None) -> None:
    """Raise unless a file is the one that is listed; `copy` gets what was read."""
    hasher, count = hashlib.sha256(), 0
    try:
        with files.open(name) as stream:
            while chunk := stream.read(_CHUNK):
                hasher.update(chunk)
                count += len(chunk)
                if count > entry["bytes"]:
                    break
                if copy is not None:
                    copy.write(chunk)
    except _UNREADABLE as error:
        raise PackageError(f"`{name}` cannot be read: {error}") from error
    if count != entry["bytes"] or f"sha256:{hasher.hexdigest()}" != entry["digest"]:
        raise PackageError(f"`{name}` was changed: it is not the file that `{MANIFEST}` lists")


def _verify_names(files: Files, artifact: Mapping[str, Any], listed: Mapping[str, Any]) -> None:
    """Raise when a model names a file beside it that the artifact does not list."""
    model = artifact["model"]
    if listed[model]["bytes"] >= 2**31:
        raise PackageError(f"`{model}` is larger than an ONNX file can be")
    folder = PurePosixPath(model).parent
    raw = _read_small(files, model, listed[model]["bytes"])
    try:
        named = sorted(named_files(raw))
    except (IndexError, ValueError, RecursionError) as error:
        raise PackageError(f"`{model}` is not an ONNX model") from error
    for name in named:
        if why_unsafe(name) or (folder / name).as_posix() not in artifact["files"]:
            raise PackageError(f"`{model}` names the file `{name!s:.100}`, which the artifact does not list")


# Which files a model names, read from its protobuf: external data of tensors, and binaries of compiled nodes.

_MODEL = {7: "graph", 25: "function"}
_SHAPES: dict[str, dict[int, str]] = {
    "model": _MODEL,
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}
"""Messages by the fields of ONNX in which files can be named."""


def _varint(raw: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("a number is too long")


def _fields(raw: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The fields of a message: number, and a whole number or bytes."""
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        kind, value = tag & 7, cast("int | memoryview", 0)
        if kind == 0:
            value, at = _varint(raw, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        elif kind == 2:
            size, at = _varint(raw, at)
            value, at = raw[at : at + size], at + size
        else:
            raise ValueError("a field is of no known kind")
        if at > len(raw):
            raise ValueError("a field is longer than its message")
        yield tag >> 3, value


def named_files(raw: bytes) -> set[str]:
    """The files that a model names besides itself."""
    return set(_names_in(memoryview(raw), "model", 0))


def _names_in(raw: memoryview, kind: str, depth: int) -> Iterator[str]:
    if depth > 60:
        raise ValueError("it is nested too deeply")
    if kind == "tensor":
        yield from _locations(raw)
        return
    if kind == "node":
        yield from _context_names(raw)
    inside = _SHAPES[kind]
    for number, value in _fields(raw):
        if number in inside and isinstance(value, memoryview):
            yield from _names_in(value, inside[number], depth + 1)


def _locations(raw: memoryview) -> Iterator[str]:
    for number, value in _fields(raw):
        if number == 13 and isinstance(value, memoryview):
            entry = {n: bytes(v).decode("utf-8", "replace") for n, v in _fields(value) if isinstance(v, memoryview)}
            if entry.get(1) == "location":
                yield entry.get(2, "")


def _context_names(raw: memoryview) -> Iterator[str]:
    fields = list(_fields(raw))
    if not any(n == 4 and isinstance(v, memoryview) and bytes(v) == b"EPContext" for n, v in fields):
        return
    values: dict[str, Any] = {}
    for number, value in fields:
        if number == 5 and isinstance(value, memoryview):
            attribute = dict(_fields(value))
            name = attribute.get(1)
            if isinstance(name, memoryview):
                values[bytes(name).decode("utf-8", "replace")] = attribute.get(3, attribute.get(4))
    context = values.get("ep_cache_context")
    if values.get("embed_mode", 1) == 0 and isinstance(context, memoryview):
        yield bytes(context).decode("utf-8", "replace")


# Opening an artifact.


@dataclass(frozen=True)
class Skipped:
    """An artifact that was not used, and why."""

    target: str
    reason: str


@dataclass
class LoadedPackage:
    """A model that is open on this machine, and what was not used."""

    manifest: dict[str, Any]
    artifact: dict[str, Any]
    session: Any
    """The `InferenceSession` of onnxruntime."""
    skipped: tuple[Skipped, ...]
    simulated: bool
    signed: str | None
    """The comment of its signature; None when no public key was given."""
    inputs: tuple[str, ...] = field(default=())
    outputs: tuple[str, ...] = field(default=())

    @property
    def target(self) -> str:
        return str(self.artifact["target"])

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name."""
        return dict(zip(self.outputs, self.session.run(list(self.outputs), dict(inputs)), strict=True))


def load_package(
    path: str | os.PathLike[str],
    *,
    public_key: str | None = None,
    target: str | None = None,
    allow_simulated: bool = False,
    libraries: Mapping[str, str] | None = None,
) -> LoadedPackage:
    """Open the first artifact of a package that works on this machine, in the order of its manifest.

    `public_key` is the text of a public key of minisign, not a file: the package must be signed with it then. `target`
    restricts the choice to one artifact. A simulated device is used only with `allow_simulated`. `libraries` are plugin
    libraries of the application by the full name of their provider; others are looked for in installed packages.
    """
    files = open_files(path)
    try:
        manifest, comment = verify_package(files, public_key)
        artifacts = [a for a in manifest["artifacts"] if target is None or a["target"] == target]
        if not artifacts:
            there = ", ".join(a["target"] for a in manifest["artifacts"])
            raise PackageError(f"the package has no artifact for `{target}`; it has {there}")
        skipped: list[Skipped] = []
        for artifact in artifacts:
            opened = _try_artifact(files, manifest, artifact, allow_simulated, dict(libraries or {}))
            if isinstance(opened, str):
                skipped.append(Skipped(artifact["target"], opened))
                continue
            session, simulated = opened
            names = tuple(i.name for i in session.get_inputs()), tuple(o.name for o in session.get_outputs())
            return LoadedPackage(manifest, artifact, session, tuple(skipped), simulated, comment, *names)
    finally:
        files.close()
    raise PackageError("nothing in the package works here: " + "; ".join(f"{s.target}: {s.reason}" for s in skipped))


def _try_artifact(
    files: Files,
    manifest: Mapping[str, Any],
    artifact: dict[str, Any],
    allow_simulated: bool,
    libraries: dict[str, str],
) -> tuple[Any, bool] | str:
    """A session and whether its device is simulated, or why there is none."""
    ep, _, device = artifact["target"].partition("/")
    row, device = EPS[ep], device or ep
    here = [platform.system(), platform.machine().lower()]
    simulated = here in row.get("simulated_on", {}).get(device, [])
    if simulated and not allow_simulated:
        return "its device is only simulated on this machine"
    if why := _unmet(artifact["conditions"]):
        return why
    import onnxruntime

    try:
        options, providers = _session_options(onnxruntime, artifact, row, device, simulated, libraries)
        model = _model_of(files, manifest, artifact)
        session = onnxruntime.InferenceSession(model, options, providers=providers, enable_fallback=0)
    except PackageError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever a runtime or a driver raises, the next artifact may work
        return f"it does not open: {type(error).__name__}: {error!s:.300}"
    return _check_placed(session, row["full_name"]) or (session, simulated)


def _unmet(conditions: Mapping[str, Any]) -> str | None:
    """The condition of an artifact that this machine does not meet; what cannot be asked here is left to opening."""
    import onnxruntime

    least = conditions.get("onnxruntime_at_least")
    if isinstance(least, str) and _version(onnxruntime.__version__) < _version(least):
        return f"it needs onnxruntime {least}, this is {onnxruntime.__version__}"
    package, oldest = conditions.get("provider_package"), conditions.get("provider_at_least")
    if isinstance(oldest, str) and (found := _installed_version(package)) and _version(found) < _version(oldest):
        return f"it was compiled by {package} {oldest}, this is {found}"
    needed, memory = conditions.get("memory_bytes"), physical_memory()
    if isinstance(needed, int) and memory is not None and memory < needed:
        return f"it needs {needed / 2**20:.0f} MiB of memory, this machine has {memory / 2**20:.0f}"
    systems = conditions.get("systems")
    if isinstance(systems, list) and systems and platform.system() not in systems:
        return f"it is for {', '.join(map(str, systems))}, this is {platform.system()}"
    return None


def _installed_version(package: object) -> str | None:
    """The version of an installed package; None where there is none, as in an application with its own libraries."""
    from importlib import metadata

    try:
        return metadata.version(package) if isinstance(package, str) and _PLAIN.fullmatch(package) else None
    except metadata.PackageNotFoundError:
        return None


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]+", text)[:3])


def physical_memory() -> int | None:
    """Memory of this machine in bytes; None where the system does not say."""
    if sys.platform == "win32":
        import ctypes

        status = (ctypes.c_uint64 * 8)()
        # dwLength is the first half of the first word; total physical memory the second word.
        ctypes.memmove(status, (64).to_bytes(4, "little"), 4)
        return int(status[1]) if ctypes.windll.kernel32.GlobalMemoryStatusEx(status) else None
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def _session_options(
    ort: Any,
    artifact: Mapping[str, Any],
    row: Mapping[str, Any],
    device: str,
    simulated: bool,
    libraries: dict[str, str],
) -> tuple[Any, list[Any] | None]:
    settings, options = artifact["session"], ort.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry(_RECORD, "1")
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, _LEVELS[settings["optimization_level"]])
    if settings["threads"] is not None:
        options.intra_op_num_threads = settings["threads"]
    for name, text in settings["config_entries"].items():
        options.add_session_config_entry(name, text)
    full_name = row["full_name"]
    if full_name == "CPUExecutionProvider":
        return options, [full_name]
    chosen = {**row.get("device_options", {}).get(device, {}), **settings["ep_options"]}
    if simulated:
        chosen = {**row["simulator_options"], **chosen}
    # A plugin is among the available providers once it is registered, and is not opened by its name then.
    if full_name in ort.get_available_providers() and not (row.get("libraries") and _registered(ort, full_name)):
        return options, [(full_name, chosen), "CPUExecutionProvider"]
    devices = _devices(ort, row, libraries)
    # A simulator presents itself as the CPU it runs on.
    kind = "cpu" if simulated else device
    found = next((d for d in devices if d.device.type.name.lower() == kind), None)
    if found is None:
        raise PackageError(f"{full_name} finds no {device} on this machine")
    options.add_provider_for_devices([found], chosen)
    return options, None


def _registered(ort: Any, name: str) -> list[Any]:
    """The devices of a plugin that is registered in this process."""
    ask = getattr(ort, "get_ep_devices", None)
    return [] if ask is None else [d for d in ask() if d.ep_name == name]


def _devices(ort: Any, row: Mapping[str, Any], libraries: dict[str, str]) -> list[Any]:
    """The devices of a plugin provider, which is registered on the way when nobody has."""
    name = row["full_name"]
    ask = getattr(ort, "get_ep_devices", None)
    if ask is None:
        raise PackageError(f"this onnxruntime ({ort.__version__}) has no plugins, and does not contain {name}")
    if devices := _registered(ort, name):
        return devices
    library = libraries.get(name) or _installed_library(row)
    if library is None:
        raise PackageError(f"{name} is not installed")
    ort.register_execution_provider_library(name, library)
    return [d for d in ask() if d.ep_name == name]


def _installed_library(row: Mapping[str, Any]) -> str | None:
    """The library of an installed package, by the tables of this module."""
    file = row.get("libraries", {}).get(platform.system())
    spec = find_spec(row["module"]) if "module" in row and file else None
    if spec is None or not spec.submodule_search_locations:
        return None
    machine = platform.machine().lower()
    for folder in map(Path, spec.submodule_search_locations):
        for path in (folder / file, folder / machine / file, folder / "libs" / machine / file):
            if path.is_file():
                return str(path)
    return None


def _model_of(files: Files, manifest: Mapping[str, Any], artifact: Mapping[str, Any]) -> bytes | str:
    """The model as onnxruntime takes it: its bytes, verified again, or its path where it has files beside it."""
    if len(artifact["files"]) > 1:
        if isinstance(files, ZipFiles):
            raise PackageError("its weights are in files of their own: unpack the archive first (`unpack_package`)")
        return str(files.root / artifact["model"])
    entry = manifest["files"][artifact["model"]]
    raw = _read_small(files, artifact["model"], entry["bytes"])
    if f"sha256:{hashlib.sha256(raw).hexdigest()}" != entry["digest"]:
        raise PackageError(f"`{artifact['model']}` was changed while it was opened")
    return raw


def _check_placed(session: Any, full_name: str) -> str | None:
    """Why a session is not what was asked for: on another provider, or with no node on it."""
    if full_name not in session.get_providers():
        return f"the runtime opened {', '.join(session.get_providers())} instead"
    ask = getattr(session, "get_provider_graph_assignment_info", None)
    if ask is None:
        return None
    taken = [part.ep_name for part in ask()]
    if taken and full_name not in taken:
        return f"{full_name} took no node of it"
    return None


def unpack_package(path: str | os.PathLike[str], into: str | os.PathLike[str], public_key: str | None = None) -> None:
    """Unpack an archive into a new folder, after everything in it was verified; the folder is whole or absent."""
    place = Path(into)
    if place.exists():
        raise PackageError(f"`{place}` exists")
    beside = place.parent / f".{place.name}-{os.getpid()}"
    files = open_files(path)
    try:
        manifest, _ = verify_package(files, public_key)
        needed = sum(entry["bytes"] for entry in manifest["files"].values())
        place.parent.mkdir(parents=True, exist_ok=True)
        if needed > (free := shutil.disk_usage(place.parent).free):
            raise PackageError(f"its files take {needed} bytes, and {free} are free at `{place.parent}`")
        beside.mkdir()
        for name, most in {MANIFEST: MOST_MANIFEST_BYTES, SIGNATURE: MOST_SIGNATURE_BYTES}.items():
            if name == MANIFEST or name in set(files.names()):
                (beside / name).write_bytes(_read_small(files, name, most))
        for name, entry in manifest["files"].items():
            target = beside / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as stream:
                _verify_file(files, name, entry, stream)
        # Both were read twice: another manifest or signature would have come in between.
        verify_package(FolderFiles(beside), public_key)
        _move(beside, place)
    finally:
        files.close()
        shutil.rmtree(beside, ignore_errors=True)


def _move(folder: Path, place: Path) -> None:
    """Give a folder its name; on Windows a scanner that has one of its files open refuses that for a moment."""
    for wait_s in (0.0, 0.1, 0.4, 1.6, 3.2) if sys.platform == "win32" else (0.0,):
        time.sleep(wait_s)
        try:
            folder.rename(place)
            return
        except PermissionError as error:
            refused = error
    raise PackageError(f"`{place}` cannot be made: {refused.strerror or refused}") from refused
