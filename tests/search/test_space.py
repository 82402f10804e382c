from __future__ import annotations

import itertools

import pytest

from winml.modelkit.building.compile import knobs as compile_knobs
from winml.modelkit.building.optimize import knobs as optimize_knobs
from winml.modelkit.building.quantize import knobs as quantize_knobs
from winml.modelkit.core.config import SCHEMA, config_from_json
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.knob import Knob, Level
from winml.modelkit.core.target import Target
from winml.modelkit.core.trust import OWN_REQUEST
from winml.modelkit.ep import knobs as ep_knobs
from winml.modelkit.search.space import Space, restrict, trial_id
from winml.modelkit.session import knobs as session_knobs

SCHEME = Knob("scheme", (Level("static", {"q": {"mode": "static"}}), Level("dynamic", {"q": {"mode": "dynamic"}})))
METHOD = Knob("method", (Level("entropy", {"q.method": "entropy"}),), when={"q.mode": ("static",)})
PASSES = Knob("gelu", (Level("on", adds={"o.passes": ("gelu",)}),))
SPACE = Space((SCHEME, METHOD, PASSES), {"q": None, "o": None})
TARGETS = (Target("cpu", "cpu"), Target("qnn", "npu"), Target("qnn", "gpu"), Target("openvino", "cpu"))


def all_knobs(target: Target) -> tuple[Knob, ...]:
    owners = (quantize_knobs, optimize_knobs, compile_knobs, session_knobs, ep_knobs)
    return tuple(knob for owner in owners for knob in owner.knobs(target))


def test_a_choice_writes_into_a_copy_of_the_base() -> None:
    config = SPACE.config((("scheme", "static"), ("method", "entropy"), ("gelu", "on")))
    assert config == {"q": {"mode": "static", "method": "entropy"}, "o": {"passes": ["gelu"]}}
    assert SPACE.base == {"q": None, "o": None}


def test_what_one_choice_writes_does_not_show_in_another() -> None:
    SPACE.config((("scheme", "static"), ("method", "entropy")))
    assert SPACE.config((("scheme", "static"),)) == {"q": {"mode": "static"}, "o": None}


def test_a_knob_without_effect_is_dropped_from_a_choice() -> None:
    assert SPACE.canonical((("scheme", "dynamic"), ("method", "entropy"))) == (("scheme", "dynamic"),)
    assert SPACE.canonical((("method", "entropy"), ("scheme", "static"))) == (
        ("scheme", "static"),
        ("method", "entropy"),
    )


def test_every_choice_is_listed_once_and_counted() -> None:
    choices = list(SPACE.choices())
    assert choices[0] == ()
    assert len(choices) == len(set(choices)) == SPACE.count(limit=100) == 8
    assert SPACE.count(limit=5) == 5


def test_the_smallest_choice_in_which_a_level_acts() -> None:
    assert SPACE.smallest_choice_with(("gelu", "on")) == (("gelu", "on"),)
    assert SPACE.smallest_choice_with(("method", "entropy")) == (("scheme", "static"), ("method", "entropy"))


def test_best_choices_come_first_and_none_is_left_out() -> None:
    worth = {("scheme", "static"): 0.5, ("scheme", "dynamic"): 0.4, ("method", "entropy"): -0.2, ("gelu", "on"): 0.1}
    found = list(SPACE.best(lambda *option: worth[option]))
    assert found[0] == (("scheme", "static"), ("gelu", "on"))
    assert sorted(found) == sorted(SPACE.choices())


def test_best_choices_of_a_huge_space_are_found_without_listing_it() -> None:
    space = Space(tuple(Knob(f"k{i}", (Level("a", {f"k{i}": 1}),)) for i in range(60)), {})
    found = list(itertools.islice(space.best(lambda knob, level: -0.1 * int(knob[1:])), 3))
    assert found == [(("k0", "a"),), (), (("k0", "a"), ("k1", "a"))] or len(found) == 3
    assert space.count(limit=1000) == 1000


def test_a_file_restricts_the_space() -> None:
    space = restrict(SPACE, {"schema": "winml/space/1", "knobs": {"scheme": ["static"], "gelu": ["on"]}}, "s.json")
    assert [knob.name for knob in space.knobs] == ["scheme", "gelu"]
    assert space.count(limit=100) == 4


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"schema": "winml/space/1", "knobs": {"shceme": ["static"]}}, "unknown knob `shceme`"),
        ({"schema": "winml/space/1", "knobs": {"scheme": ["int9"]}}, "knob `scheme` has no level `int9`"),
        ({"schema": "winml/space/1", "knobs": {"scheme": "static"}}, "`knobs.scheme` must be a list but got 'static'"),
        ({"schema": "winml/space/1", "knobs": ["scheme"]}, "`knobs` must be an object but got ['scheme']"),
        ({"schema": "winml/space/1", "knob": {}}, "unknown key `knob`"),
        ({"schema": "winml/space/2", "knobs": {}}, "`schema` must be 'winml/space/1' but got 'winml/space/2'"),
        ([], "must be an object"),
    ],
)
def test_a_space_file_is_read_strictly(value: object, message: str) -> None:
    with pytest.raises(RequestError, match="`s.json`: ") as error:
        restrict(SPACE, value, "s.json")
    assert message in error.value.message


def test_hypotheses_keep_their_ids_and_other_trials_are_numbered() -> None:
    assert trial_id((("hypothesis", "h7"),), 1) == "h7"
    assert trial_id((("quantize.scheme", "int8"),), 1) == "h1"
    assert trial_id((), 0) == "h0"


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_every_level_of_every_knob_writes_keys_that_a_build_config_has(target: Target) -> None:
    base = {"schema": SCHEMA, "target": str(target), "optimize": None, "quantize": None, "session": {}}
    base["session"] = {"optimization_level": "all", "threads": None, "config_entries": {}, "ep_options": {}}
    space = Space(all_knobs(target), base)
    for option in space.options():
        choice = space.smallest_choice_with(option)
        assert option in choice, f"{option} never has an effect on {target}"
        config_from_json(space.config(choice), OWN_REQUEST)


def test_no_two_knobs_have_one_name() -> None:
    for target in TARGETS:
        names = [knob.name for knob in all_knobs(target)]
        assert len(names) == len(set(names))


def test_a_device_that_takes_no_quantized_models_has_no_such_level() -> None:
    scheme = next(k for k in quantize_knobs.knobs(Target("qnn", "gpu")) if k.name == "quantize.scheme")
    assert scheme.names == ("default", "fp16")
