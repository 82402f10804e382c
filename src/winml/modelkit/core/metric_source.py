"""Where a metric of the user's own comes from."""

from __future__ import annotations

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.values import Digest


@dataclass(frozen=True, kw_only=True)
class MetricSource:
    """Where a custom metric comes from."""

    function: str
    file: str | None
    """None for a function that no file holds, as one typed at a prompt."""
    digest: Digest | None
    """Of the file; of the text of the function where that is all there is; None where its text is unknown."""
