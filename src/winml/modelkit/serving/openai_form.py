"""Requests and answers in the form of OpenAI's API, which clients of many languages speak.

The likeliest token is always taken. Settings of sampling are accepted, because most clients send some, and named in the
answer (`winml.ignored`); what would change the form of an answer and is not done here is refused.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.json_text import JSONError, parse_json
from winml.modelkit.core.values import to_json
from winml.modelkit.serving.http_messages import Refused
from winml.modelkit.serving.prediction import GenerateArguments, GeneratedText, Message

_SAMPLING = (
    "temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty", "repetition_penalty", "min_p",
)  # fmt: skip
_ONE_ONLY = {"n": 1, "best_of": 1}
_OFF: dict[str, tuple[Any, ...]] = {
    "tools": ([],),
    "tool_choice": ("none",),
    "functions": ([],),
    "function_call": ("none",),
    "logprobs": (False, 0),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "echo": (False,),
    "suffix": ("",),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "audio": (),
}
"""What may be asked for with these values only, besides null."""
_UNUSED = ("user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "parallel_tool_calls")
"""What changes nothing about an answer."""
_COMMON = ("model", "stream", "stream_options", "stop", "max_tokens", "max_completion_tokens")
_MOST_STOPS = 4
_MOST_STOP = 1000
_ROLES = ("system", "developer", "user", "assistant", "tool")


@dataclass(frozen=True)
class Asked:
    """A request that was read."""

    chat: bool
    arguments: GenerateArguments
    stream: bool
    usage: bool
    """Whether the end of a stream says how many tokens there were."""
    ignored: tuple[str, ...]


def _refuse(message: str, hint: str | None = None) -> Refused:
    return Refused(400, "wrong-request", message, hint)


def read_request(body: bytes, *, chat: bool, has_template: bool) -> Asked:
    """The request in a body; `Refused` says what is wrong with it."""
    try:
        request = parse_json(body)
    except JSONError as error:
        raise _refuse(f"the body is not JSON: {error}") from error
    if not isinstance(request, dict):
        raise _refuse("the body must be a JSON object")
    known = {*_COMMON, *_SAMPLING, *_ONE_ONLY, *_OFF, *_UNUSED, "messages" if chat else "prompt"}
    unknown = next((name for name in request if name not in known), None)
    if unknown is not None:
        raise _refuse(f"`{unknown}` is not known here")
    for name, one in _ONE_ONLY.items():
        if request.get(name) not in (None, one):
            raise _refuse(f"`{name}` must be {one}: there is one answer to a prompt")
    for name, allowed in _OFF.items():
        if request.get(name) is not None and request[name] not in allowed:
            raise _refuse(f"`{name}` is not supported")
    stream = request.get("stream")
    if stream not in (None, True, False):
        raise _refuse("`stream` must be true or false")
    options = request.get("stream_options") or {}
    if not isinstance(options, dict):
        raise _refuse("`stream_options` must be an object")
    arguments = GenerateArguments(
        **(_read_messages(request, has_template) if chat else _read_prompt(request)),
        new_tokens=_read_count(request),
        stop=_read_stops(request),
    )
    ignored = tuple(name for name in _SAMPLING if request.get(name) is not None and not _is_greedy(name, request[name]))
    return Asked(chat, arguments, bool(stream), bool(options.get("include_usage")), ignored)


def _is_greedy(name: str, value: object) -> bool:
    """Whether a setting asks for what is done anyway."""
    return (name, value) in (("temperature", 0), ("top_k", 1), ("presence_penalty", 0), ("frequency_penalty", 0))


def _read_prompt(request: Mapping[str, Any]) -> dict[str, Any]:
    prompt = request.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str) or not prompt:
        raise _refuse("`prompt` must be a text that is not empty")
    return {"prompt": prompt}


def _read_messages(request: Mapping[str, Any], has_template: bool) -> dict[str, Any]:
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _refuse("`messages` must be a list of turns, each with `role` and `content`")
    if not has_template:
        raise _refuse("the model's tokenizer has no chat template", "`POST /v1/completions` takes a prompt as it is")
    return {"messages": tuple(_read_message(one) for one in messages)}


def _read_message(value: object) -> Message:
    if not isinstance(value, dict) or value.get("role") not in _ROLES:
        raise _refuse(f"a message must have a `role` among {', '.join(_ROLES)}")
    content = value.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        if len(parts) != len(content) or not all(isinstance(part, str) for part in parts):
            raise _refuse("parts of a message must be texts: the model takes nothing else")
        content = "".join(str(part) for part in parts)
    if not isinstance(content, str):
        raise _refuse("the `content` of a message must be text")
    return Message(role=str(value["role"]), content=content)


def _read_count(request: Mapping[str, Any]) -> int | None:
    given = [request[name] for name in ("max_tokens", "max_completion_tokens") if request.get(name) is not None]
    if not given:
        return None
    count = given[-1]
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count < 2**24:
        raise _refuse("`max_tokens` must be a whole number of at least 1")
    return count


def _read_stops(request: Mapping[str, Any]) -> tuple[str, ...]:
    stops = request.get("stop")
    stops = [] if stops is None else stops if isinstance(stops, list) else [stops]
    if len(stops) > _MOST_STOPS or not all(isinstance(one, str) and 0 < len(one) <= _MOST_STOP for one in stops):
        raise _refuse(f"`stop` must be a text, or up to {_MOST_STOPS} of them, none of them empty")
    return tuple(stops)


class Answering:
    """The answer to a request, whole or in pieces."""

    def __init__(self, asked: Asked, model: str) -> None:
        self._asked, self._model = asked, model
        kind = "chatcmpl" if asked.chat else "cmpl"
        self._id, self._created = f"{kind}-{secrets.token_hex(12)}", int(time.time())

    def _head(self, *, piece: bool) -> dict[str, Any]:
        kind = "text_completion" if not self._asked.chat else "chat.completion.chunk" if piece else "chat.completion"
        return {"id": self._id, "object": kind, "created": self._created, "model": self._model}

    def whole(self, answer: GeneratedText) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "finish_reason": answer.finish, "logprobs": None}
        if self._asked.chat:
            choice["message"] = {"role": "assistant", "content": answer.text, "refusal": None}
        else:
            choice["text"] = answer.text
        return {**self._head(piece=False), "choices": [choice], "usage": _usage(answer), **self._explain_ignored()}

    def begin(self) -> dict[str, Any] | None:
        """What a stream begins with."""
        if not self._asked.chat:
            return None
        return {**self._head(piece=True), "choices": [self._choice({"role": "assistant", "content": ""})]}

    def piece(self, text: str) -> dict[str, Any]:
        return {**self._head(piece=True), "choices": [self._choice({"content": text})]}

    def end(self, answer: GeneratedText) -> list[dict[str, Any]]:
        """What a stream ends with."""
        choice = self._choice({} if self._asked.chat else {"content": ""})
        last = {
            **self._head(piece=True),
            "choices": [{**choice, "finish_reason": answer.finish}],
            **self._explain_ignored(),
        }
        if not self._asked.usage:
            return [last]
        return [last, {**self._head(piece=True), "choices": [], "usage": _usage(answer)}]

    def _choice(self, delta: dict[str, Any]) -> dict[str, Any]:
        content = {"delta": delta} if self._asked.chat else {"text": delta.get("content", "")}
        return {"index": 0, **content, "finish_reason": None, "logprobs": None}

    def _explain_ignored(self) -> dict[str, Any]:
        return {"winml": {"ignored": list(self._asked.ignored), "why": "the likeliest token is always taken"}}


def _usage(answer: GeneratedText) -> dict[str, int]:
    prompt, made = answer.prompt_tokens or 0, answer.tokens or 0
    return {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made}


def arguments_json(asked: Asked) -> dict[str, Any]:
    found: dict[str, Any] = to_json(asked.arguments)
    return found
