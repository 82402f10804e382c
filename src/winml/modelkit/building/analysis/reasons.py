"""Why an EP refused nodes, read from what it logged while a session was opened.

The reasons are available nowhere else. Only the QNN EP writes them: for each group of nodes it looks at, a line whether
it can take the group, a line per node, and the reason when it cannot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from winml.modelkit.core.dataclass import dataclass

_REFUSED = re.compile(r"Validation FAILED for \d+ nodes in \w+ \((?P<op>[^)]*)\)")
_NODE = re.compile(r"^\s*Operator type: (?P<op>\S+) Node name: ?(?P<name>.*?) Node index: \d+")
_REASON = re.compile(r"^\s*REASON : (?P<text>.*)")
_STARTS = re.compile(r"^(\x1b\[[0-9;]*m)?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
"""A line that begins a new message of the runtime's log."""
_TAIL = re.compile(r"\w+ node `[^`]*` will not be assigned to QNN EP\.?")
_PLACE = re.compile(r"\S+\.(?:cc|h|cpp):\d+ [\w:~<>]+\s*")
"""The place in the EP's source that some of its messages begin with."""


@dataclass(frozen=True)
class Reason:
    """Why one node was refused."""

    node: str
    op: str
    unit: str
    """The operator of the group it was looked at with: a Conv with the pairs around it is one `Conv`."""
    text: str


def read_reasons(log: str) -> list[Reason]:
    """The refusals in a log, in its order; an EP that is asked twice gives a node's reason twice."""
    return [reason for message in _messages(log) for reason in _refusal(message)]


def _messages(log: str) -> Iterator[list[str]]:
    message: list[str] = []
    for line in log.splitlines():
        if _STARTS.match(line):
            yield message
            message = []
        message.append(line)
    yield message


def _refusal(message: list[str]) -> list[Reason]:
    refused = _REFUSED.search(message[0]) if message else None
    if refused is None:
        return []
    nodes = [found for line in message if (found := _NODE.match(line))]
    texts = [found["text"] for line in message if (found := _REASON.match(line))]
    text = " ".join(_PLACE.sub("", _TAIL.sub("", " ".join(texts))).split())
    return [Reason(node["name"].strip(), node["op"], refused["op"], text) for node in nodes] if text else []
