"""Text of others as it is shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winml.modelkit.core import plain_text

EVIL = "\x1b[31mred\x1b]8;;http://x\x07link\x9b2J\b\r\n\u202etxt\u2066\u200b\U000e0041\udcff"


def test_nothing_that_is_not_seen_is_left() -> None:
    shown = plain_text.one_line(EVIL)
    assert shown.isprintable()
    assert shown.startswith(r"\x1b[31mred\x1b]8;;http://x\x07link\x9b2J\x08\r\n\u202etxt")
    assert plain_text.lines("a\n\tb\x1b[0m") == "a\n\tb\\x1b[0m"


@pytest.mark.parametrize("text", ["model.onnx", "Größe 3 × 4 …", "模型", "a|b `c` <d>", ""])
def test_what_is_seen_stays(text: str) -> None:
    assert plain_text.one_line(text) == text


@given(st.text(st.characters()))
def test_every_text_becomes_one_printable_line(text: str) -> None:
    shown = plain_text.one_line(text)
    assert len(shown.splitlines()) <= 1
    assert not plain_text._UNSAFE.search(shown)
    shown.encode()


@given(st.recursive(st.text(st.characters()), lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=5))
def test_json_means_the_same(value: object) -> None:
    text = plain_text.json_text(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value
    text.encode()


def test_markup_is_text_in_markdown_and_html() -> None:
    name = "<script>x</script>|`a`[b](http://c)![d](e)\n# head & \x1b[0m"
    assert plain_text.markdown(name) == (
        "&lt;script&gt;x&lt;/script&gt;\\|\\`a\\`\\[b\\](http://c)!\\[d\\](e)\\\\n# head &amp; \\\\x1b\\[0m"
    )
    assert plain_text.html(name).startswith("&lt;script&gt;x&lt;/script&gt;|`a`")
    assert "\x1b" not in plain_text.html(name)


def test_values_keep_all_but_the_texts() -> None:
    value = {"a\n": ["b\x1b", 1, 2.5, None, True, ("c\r",)], 3: "d"}
    assert plain_text.values(value) == {"a\\n": ["b\\x1b", 1, 2.5, None, True, ("c\\r",)], 3: "d"}


@dataclass(frozen=True)
class _Named:
    name: str
    others: tuple[_Named, ...] = ()


def test_texts_of_dataclasses_are_made_safe_and_the_original_stays() -> None:
    value = _Named("a\x1b", (_Named("b\n"),))
    assert plain_text.values(value) == _Named("a\\x1b", (_Named("b\\n"),))
    assert value.name == "a\x1b"


WORDS = [
    "model.onnx", "my model.onnx", "$(touch ran)", "`touch ran`", "a;touch ran", "a&touch ran", "a|b", "it's", 'a"b',
    "a\nb", "\x1b[31m", "-x", "~", "*", "!!", "ä", "a\\b", "%PATH%", "\udcff.onnx", "", "#a", "a b'$(c)\td",
]  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="runs bash")
def test_words_mean_only_themselves_in_a_shell(tmp_path: Path) -> None:
    command = "printf '%s\\0' " + " ".join(plain_text.shell_word(word, windows=False) for word in WORDS)
    assert plain_text.lines(command) == command, "what is shown can be pasted"
    done = subprocess.run(["bash", "-c", command], capture_output=True, cwd=tmp_path, check=True)
    assert done.stdout.split(b"\0")[:-1] == [os.fsencode(word) for word in WORDS]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        (r"C:\models\a.onnx", r"C:\models\a.onnx"),
        (r"C:\my models\a.onnx", r'"C:\my models\a.onnx"'),
        ("a&calc", '"a&calc"'),
        ("$(calc)", '"`$(calc)"'),
        ("a`b", '"a``b"'),
        ('a" & calc', '"a"" & calc"'),
        ("a\u201d; calc", '"a`\u201d; calc"'),
        ("a \n calc", '"a \\n calc"'),
        ("a,b", '"a,b"'),
        ("", '""'),
    ],
)
def test_a_word_runs_nothing_in_the_shells_of_windows(word: str, quoted: str) -> None:
    assert plain_text.shell_word(word, windows=True) == quoted
