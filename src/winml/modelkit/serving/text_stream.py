"""Text out of tokens while they come: whole characters only, and nothing of a text that ends the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_HALF = "\ufffd"
"""What a tokenizer makes of the first bytes of a character."""
_MOST_HALF = 4
"""Tokens that one character may take; more of them are no character."""


class TextStream:
    """The text of tokens, piece by piece."""

    def __init__(self, decode: Callable[[Sequence[int]], str], stops: Sequence[str] = ()) -> None:
        self._decode = decode
        self._stops = [stop for stop in stops if stop]
        self._hold = max((len(stop) for stop in self._stops), default=1) - 1
        self._tokens: list[int] = []
        self._begun = self._read = 0
        """Where the tokens begin that the last piece was made of, and where those begin that made none yet."""
        self._held = ""
        self.is_stopped = False
        """Whether a text that ends the answer has come."""
        self.text = ""
        """All pieces so far."""

    def push(self, token: int) -> str:
        """The text that is certain with one more token."""
        self._tokens.append(token)
        # A token may begin with a space only behind another one: pieces are what the text grows by.
        before = self._decode(self._tokens[self._begun : self._read])
        after = self._decode(self._tokens[self._begun :])
        if len(after) <= len(before) or (after.endswith(_HALF) and len(self._tokens) - self._read < _MOST_HALF):
            return ""
        self._begun, self._read = self._read, len(self._tokens)
        return self._pass(after[len(before) :])

    def finish(self) -> str:
        """The rest of the text, also of a character that was not finished."""
        before = self._decode(self._tokens[self._begun : self._read])
        after = self._decode(self._tokens[self._begun :])
        self._begun = self._read = len(self._tokens)
        made = self._pass(after[len(before) :])
        rest, self._held = self._held, ""
        self.text += rest
        return made + rest

    def _pass(self, piece: str) -> str:
        """What may be shown: text that could be the begin of a stop is held back."""
        if self.is_stopped:
            return ""
        whole = self._held + piece
        found = min((place for stop in self._stops if (place := whole.find(stop)) >= 0), default=None)
        if found is not None:
            self.is_stopped = True
            shown, self._held = whole[:found], ""
        else:
            keep = self._count_begun(whole)
            shown, self._held = whole[: len(whole) - keep], whole[len(whole) - keep :]
        self.text += shown
        return shown

    def _count_begun(self, whole: str) -> int:
        """How many of the last characters could begin a stop."""
        for count in range(min(self._hold, len(whole)), 0, -1):
            if any(stop.startswith(whole[-count:]) for stop in self._stops):
                return count
        return 0
