"""Text out of tokens: whole characters, and nothing of what ends an answer."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from winml.modelkit.serving.text_stream import TextStream


def by_bytes(tokens: Sequence[int]) -> str:
    """A tokenizer whose tokens are bytes."""
    return bytes(tokens).decode("utf-8", "replace")


def stream(text: str, *stops: str) -> tuple[list[str], TextStream]:
    made = TextStream(by_bytes, stops)
    pieces = []
    for token in text.encode():
        pieces.append(made.push(token))
        if made.is_stopped:
            break
    pieces.append(made.finish())
    return [piece for piece in pieces if piece], made


@given(st.text(max_size=30))
def test_pieces_make_the_text(text: str) -> None:
    pieces, made = stream(text)
    assert "".join(pieces) == made.text == text


@given(st.text(alphabet="abc", max_size=30), st.lists(st.text(alphabet="abc", min_size=1, max_size=4), max_size=3))
def test_the_text_ends_before_the_first_stop_and_nothing_behind_it_is_shown(text: str, stops: list[str]) -> None:
    pieces, made = stream(text, *stops)
    places = [text.find(stop) + len(stop) for stop in stops if stop in text]
    assert made.is_stopped is bool(places)
    if places:  # the stop that is whole first ends the text
        end = min(places)
        begins = [text.find(stop) for stop in stops if 0 <= text.find(stop) <= end - len(stop)]
        assert made.text == text[: min(begins)]
    else:
        assert made.text == text
    assert "".join(pieces) == made.text


def test_a_character_is_shown_when_it_is_whole() -> None:
    made = TextStream(by_bytes)
    first, second = "é".encode()
    assert made.push(first) == ""
    assert made.push(second) == "é"


def test_a_character_that_is_never_finished_is_shown_at_the_end() -> None:
    made = TextStream(by_bytes)
    assert made.push("é".encode()[0]) == ""
    assert made.finish() == "\ufffd"
