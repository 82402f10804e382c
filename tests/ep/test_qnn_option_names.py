"""The QNN EP's own option names, read from its library: a new version that knows more makes this fail."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from winml.modelkit.ep.catalog import BY_NAME

QNN = BY_NAME["qnn"]
AROUND_BYTES = 2048
WORD = re.compile(rb"(?<![A-Za-z0-9_.])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![A-Za-z0-9_.])")
NO_OPTIONS = {
    "basic_string": "part of a C++ error",
    "context_enable": "ep.context_enable",
    "context_file_path": "ep.context_file_path",
    "critical_plus": "a value of qnn_context_priority",
    "high_plus": "a value of qnn_context_priority",
    "kvcache_rewind": "a dynamic option of Genie",
    "normal_high": "a value of qnn_context_priority",
    "normal_low": "a value of qnn_context_priority",
    "num_domains": "a parameter in an assertion",
    "prepare_and_load": "a word in messages about enable_htp_prepare_and_load",
    "prepare_only": "a word in messages about enable_htp_prepare_only",
    "qnn_ep_dump_probe": "a file",
    "qnn_models": "a table inside the EP",
    "rpc_control_late": "rpc_control_latency, cut where the compiler splits it",
    "rpcmem_lib": "a variable in an assertion",
}
"""Words beside the option names that are none, with what they are."""


def library() -> bytes:
    spec = find_spec("onnxruntime_qnn")
    assert spec is not None
    assert spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0])
    return next(folder / name for name in QNN.libraries.values() if (folder / name).is_file()).read_bytes()


def words_beside_known_names(data: bytes) -> tuple[set[str], set[str]]:
    """Words like option names in the part of the library that holds them, and the known names found there.

    The strings of one source file lie together, so those of the EP's constructor are found by the names it is known
    to have, each a string of its own. Words inside messages count too: short names are put into the code itself.
    """
    places = {name: data.find(b"\0" + name.encode() + b"\0") for name in QNN.options}
    found = {name: place for name, place in places.items() if place >= 0}
    middle = sorted(found.values())[len(found) // 2]
    near = {name: place for name, place in found.items() if abs(place - middle) < 64 * 1024}
    begin, end = min(near.values()) - AROUND_BYTES, max(near.values()) + AROUND_BYTES
    return {word.decode() for word in WORD.findall(data[begin:end])}, set(near)


@pytest.mark.qnn
def test_the_table_has_every_option_name_of_the_library() -> None:
    words, near = words_beside_known_names(library())
    assert len(near) >= 30, "the names are no longer found together: read anew how the library holds them"
    unknown = words - set(QNN.options) - set(NO_OPTIONS)
    assert not unknown, (
        f"the installed QNN EP has words that may be options: {sorted(unknown)}; add them to the table of "
        "ep/catalog.py with who may set them, or to NO_OPTIONS with what they are"
    )


def test_a_name_that_the_table_lacks_is_found() -> None:
    names = [name.encode() for name in QNN.options]
    data = (
        b"\0" * AROUND_BYTES
        + b"\0".join([b"", *names[:40], b"brand_new_option", *names[40:], b""])
        + b"\0" * AROUND_BYTES
    )
    assert words_beside_known_names(data)[0] - set(QNN.options) == {"brand_new_option"}
