"""The table of feeds: the prefixes of their addresses, and what opens them."""

from __future__ import annotations

import re
from collections.abc import Callable

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.feed import azure, folder, oci
from winml.modelkit.feed.base import Feed

FEEDS: dict[str, Callable[[str], Feed]] = {
    folder.PREFIX: folder.FolderFeed.at,
    oci.PREFIX: oci.OCIFeed.at,
    oci.PLAIN_PREFIX: oci.OCIFeed.at,
    azure.PREFIX: azure.AzureFeed.at,
}

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(//)?")
"""At least two letters, because `C:` starts a path."""
_LOGIN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://)[^/]*@(.*)", re.DOTALL)


def open_feed(address: str) -> Feed:
    """The feed of an address; a plain path is a folder. Nothing is queried yet."""
    refuse_password(address)
    for prefix, opened in FEEDS.items():
        if address.startswith(prefix):
            return opened(address)
    scheme = _SCHEME.match(address)
    if scheme is not None or not address.strip():
        raise RequestError(f"unknown kind of feed: `{address}`", hint=did_you_mean(address[:12], FEEDS))
    return FEEDS[folder.PREFIX](address)


def refuse_password(address: str) -> None:
    """Raise when an address contains a login; the message does not show it, because messages end up in logs."""
    found = _LOGIN.match(address)
    if found is not None:
        raise RequestError(
            f"an address must not contain a user name or password: `{found[1]}…@{found[2]}`",
            hint="`docker login` saves them, or set `WINML_FEED_USER` and `WINML_FEED_PASSWORD`",
        )


def absolute(address: str) -> str:
    """The address in a form that means the same in every working folder."""
    feed = open_feed(address)
    return f"{folder.PREFIX}{feed.root}" if isinstance(feed, folder.FolderFeed) else address
