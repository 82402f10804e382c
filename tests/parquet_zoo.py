"""Small parquet files as data sets of the hub have them."""

from __future__ import annotations

import io
import json
import wave
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np


def class_feature(*names: str) -> dict[str, Any]:
    """What the hub's package writes of a column of classes."""
    return {"names": list(names), "_type": "ClassLabel"}


def parquet(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    *,
    types: Mapping[str, Any] | None = None,
    features: Mapping[str, Any] | None = None,
    group: int = 2,
) -> Path:
    """Rows in parts of `group`; `types` are those of pyarrow where they cannot be guessed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = list(rows[0])
    given = types or {}
    columns = {name: pa.array([row[name] for row in rows], given.get(name)) for name in names}
    schema = pa.schema([(name, columns[name].type) for name in names])
    if features is not None:
        schema = schema.with_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns, schema=schema), path, row_group_size=group)
    return path


def file_type() -> Any:
    """The type of images and recordings."""
    import pyarrow as pa

    return pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def stored(content: bytes | None, path: str | None = "/home/else/of/another/machine.png") -> dict[str, Any]:
    return {"bytes": content, "path": path}


def png(shade: int | tuple[int, int, int], size: tuple[int, int] = (12, 10)) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.new("RGB", size, (shade,) * 3 if isinstance(shade, int) else shade).save(stream, "PNG")
    return stream.getvalue()


def wav(levels: Sequence[float], rate_hz: int) -> bytes:
    """A recording of 16 bits."""
    stream = io.BytesIO()
    with wave.open(stream, "wb") as made:
        made.setnchannels(1)
        made.setsampwidth(2)
        made.setframerate(rate_hz)
        made.writeframes((np.asarray(levels) * 32767).round().astype("<i2").tobytes())
    return stream.getvalue()
