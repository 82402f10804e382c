"""Secret keys in the format of minisign: read, made, and used to sign.

Signing here is not constant in time: it belongs on a machine where nobody else measures, or the program `minisign`
signs the manifest, with the same result (docs/decisions/0033-package-signatures.md).
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from pathlib import Path

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.packaging.loader import BASE, ORDER, PRIME, Point, hash_to_scalar, multiply
from winml.modelkit.store import atomic

_SECRET_BYTES = 158
_MEMORY = 2**31
"""minisign's default takes 1 GiB to derive a key from a password."""
_COMMENT = "untrusted comment: "


def _compress(point: Point) -> bytes:
    inverse = pow(point[2], -1, PRIME)
    x, y = point[0] * inverse % PRIME, point[1] * inverse % PRIME
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _secret_scalar(seed: bytes) -> tuple[int, bytes]:
    hashed = hashlib.sha512(seed).digest()
    scalar = int.from_bytes(hashed[:32], "little")
    return scalar & ((1 << 254) - 8) | 1 << 254, hashed[32:]


def ed25519_public(seed: bytes) -> bytes:
    """The public key of a secret seed of 32 bytes (RFC 8032)."""
    return _compress(multiply(_secret_scalar(seed)[0], BASE))


def ed25519_sign(seed: bytes, message: bytes) -> bytes:
    """The signature of a message (RFC 8032)."""
    scalar, prefix = _secret_scalar(seed)
    public = _compress(multiply(scalar, BASE))
    nonce = hash_to_scalar(prefix, message)
    commitment = _compress(multiply(nonce, BASE))
    challenge = hash_to_scalar(commitment, public, message)
    return commitment + ((nonce + challenge * scalar) % ORDER).to_bytes(32, "little")


@dataclass(frozen=True, repr=False)
class SecretKey:
    """What signs; never printed."""

    number: bytes
    seed: bytes
    public: bytes

    @property
    def public_text(self) -> str:
        """The line by which others name it."""
        return base64.b64encode(b"Ed" + self.number + self.public).decode()


def load_secret_key(path: Path, password: str | None) -> SecretKey:
    """The key in a file; one with a password needs it."""
    try:
        lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
        raw = base64.b64decode(lines[1], validate=True)
    except FileNotFoundError as error:
        raise RequestError(f"key not found: `{path}`", hint="`winml package create-key` makes one") from error
    except (ValueError, IndexError) as error:
        raise DataError(f"`{path}` is not a secret key of minisign") from error
    if len(raw) != _SECRET_BYTES or raw[:2] != b"Ed" or raw[4:6] != b"B2":
        raise DataError(f"`{path}` is not a secret key of minisign")
    body = raw[54:]
    if raw[2:4] == b"Sc":
        body = _decrypt(raw, password, path)
    elif raw[2:4] != b"\0\0":
        raise DataError(f"`{path}` is encrypted in a way that is not known")
    number, seed, public, checksum = body[:8], body[8:40], body[40:72], body[72:]
    if hashlib.blake2b(raw[:2] + body[:72], digest_size=32).digest() != checksum:
        raise DataError(f"`{path}` is damaged, or the password is not its own")
    if ed25519_public(seed) != public:
        raise DataError(f"`{path}` is damaged: its two halves do not belong together")
    return SecretKey(number, seed, public)


def _decrypt(raw: bytes, password: str | None, path: Path) -> bytes:
    if password is None:
        raise RequestError(f"`{path}` needs its password", hint="set `WINML_KEY_PASSWORD`")
    operations, memory = (int.from_bytes(raw[start : start + 8], "little") for start in (38, 46))
    if memory > _MEMORY or operations > 2**40:
        raise DataError(f"`{path}` asks for more memory or time than a key should")
    # As libsodium derives the cost of scrypt from its two limits.
    block = 8
    bound = operations // (block * 4) if operations < memory // 32 else memory // (block * 128)
    cost = 2 ** max(1, bound.bit_length() - 1)
    lanes = 1 if operations < memory // 32 else max(1, min(operations // 4 // cost, 0x3FFFFFFF) // block)
    stream = hashlib.scrypt(
        password.encode(), salt=raw[6:38], n=cost, r=block, p=lanes, maxmem=_MEMORY + 2**26, dklen=104
    )
    return bytes(a ^ b for a, b in zip(raw[54:], stream, strict=True))


def make_key() -> SecretKey:
    """A new key."""
    seed = secrets.token_bytes(32)
    return SecretKey(secrets.token_bytes(8), seed, ed25519_public(seed))


def write_key(key: SecretKey, secret: Path, public: Path) -> None:
    """Write both halves; the secret one without a password, readable by its owner only."""
    for path in (secret, public):
        if path.exists():
            raise RequestError(f"`{path}` exists", hint="name another file; a key is never replaced")
    body = key.number + key.seed + key.public
    checksum = hashlib.blake2b(b"Ed" + body, digest_size=32).digest()
    raw = b"Ed\0\0B2" + bytes(48) + body + checksum
    text = f"{_COMMENT}minisign secret key without a password\n{base64.b64encode(raw).decode()}\n"
    atomic.make_folder(secret.absolute().parent)
    try:
        handle = os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except OSError as error:
        raise atomic.write_error(error, secret) from error
    number = key.number[::-1].hex().upper()
    atomic.write_bytes(public.absolute(), f"{_COMMENT}minisign public key {number}\n{key.public_text}\n".encode())


def sign(key: SecretKey, message: bytes, comment: str) -> str:
    """The signature as minisign writes it, with a comment that is signed too."""
    signature = ed25519_sign(key.seed, hashlib.blake2b(message).digest())
    whole = ed25519_sign(key.seed, signature + comment.encode())
    line = base64.b64encode(b"ED" + key.number + signature).decode()
    return (
        f"{_COMMENT}signature of a winml package\n{line}\n"
        f"trusted comment: {comment}\n{base64.b64encode(whole).decode()}\n"
    )
