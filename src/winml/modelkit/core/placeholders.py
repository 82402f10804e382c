"""Words of a text that stand for what another input of the model holds."""

from __future__ import annotations

from typing import Annotated

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.values import AtLeast


@dataclass(frozen=True)
class Placeholders:
    """The word, as an id, and how many of it: a model of images and text has one for every vector of an image."""

    word: Annotated[int, AtLeast(0)]
    count: Annotated[int, AtLeast(1)]
    """Every sample begins with that many, and none follows."""
