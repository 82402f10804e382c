"""The compile section of a config."""

from __future__ import annotations

from typing import Any

import pytest

from winml.modelkit.core import values
from winml.modelkit.core.config import CompileSection, compile_section_from_json
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.trust import OWN_REQUEST


def test_a_section_survives_its_json() -> None:
    section = CompileSection("ort_jit", True, {"soc_model": "60"})
    assert compile_section_from_json(values.to_json(section), OWN_REQUEST) == section
    assert compile_section_from_json({}, OWN_REQUEST) == CompileSection()


def test_the_older_name_of_a_compiler_is_understood() -> None:
    assert compile_section_from_json({"compiler": "ort_session"}, OWN_REQUEST).compiler == "ort_jit"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "`compile` must be an object"),
        ({"provider_option": {}}, "unknown key `compile.provider_option`"),
        ({"compiler": 1}, "`compile.compiler` cannot be 1"),
        ({"embed": "yes"}, "`compile.embed` must be true or false"),
        ({"provider_options": {"soc_model": 60}}, "`compile.provider_options.soc_model` must be text"),
        ({"provider_options": None}, "`compile.provider_options` must be an object"),
    ],
)
def test_what_does_not_fit_is_named(value: Any, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        compile_section_from_json(value, OWN_REQUEST)


def test_a_misspelt_key_gets_the_nearest_one() -> None:
    with pytest.raises(RequestError) as caught:
        compile_section_from_json({"provider_option": {}}, OWN_REQUEST)
    assert "`provider_options`" in (caught.value.hint or "")
