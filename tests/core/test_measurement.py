"""The JSON of a measurement, as findings embed it."""

from __future__ import annotations

import dataclasses
import json

import pytest

from winml.modelkit.core.measurement import NS_PER_MS, Arm, Measurement, Round, SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json

SECTION = SessionSection(
    threads=2,
    config_entries={"session.disable_prepacking": "1"},
    ep_options={"soc_model": "60"},
    fixed_dims={"batch": 1},
)
ARM = Arm("/models/a.onnx", Target("qnn", "npu", simulated=True), SECTION)
ROUND = Round(arm=0, round=2, process=4711, order=1, wall_ns=(5, 6), cpu_ns=(3, 4), load_before=0.5, load_after=None)


def test_a_session_section_leaves_the_choice_to_the_runtime_unless_told() -> None:
    assert to_json(SessionSection()) == {
        "threads": None,
        "optimization_level": "all",
        "config_entries": {},
        "ep_options": {},
        "fixed_dims": {},
    }


def test_a_session_section_comes_back_from_its_json() -> None:
    assert SessionSection(**json.loads(json.dumps(to_json(SECTION)))) == SECTION


def test_a_measurement_carries_arms_rounds_protocol_and_environment() -> None:
    measurement = Measurement((ARM,), (ROUND,), {"name": "sessions"}, {"machine": {"cores": 2}})
    assert json.loads(json.dumps(measurement.to_json())) == {
        "kind": "samples",
        "arms": [
            {
                "artifact": "/models/a.onnx",
                "target": "qnn/npu",
                "simulated": True,
                "session": {
                    "threads": 2,
                    "optimization_level": "all",
                    "config_entries": {"session.disable_prepacking": "1"},
                    "ep_options": {"soc_model": "60"},
                    "fixed_dims": {"batch": 1},
                },
            }
        ],
        "rounds": [
            {
                "arm": 0,
                "round": 2,
                "process": 4711,
                "order": 1,
                "wall_ns": [5, 6],
                "cpu_ns": [3, 4],
                "load_before": 0.5,
                "load_after": None,
            }
        ],
        "protocol": {"name": "sessions"},
        "environment": {"machine": {"cores": 2}},
    }


def test_writing_into_the_json_does_not_change_the_value() -> None:
    measurement = Measurement((ARM,), (ROUND,), {"name": "sessions"}, {"load": 0.1})
    written = measurement.to_json()
    written["protocol"]["name"] = written["environment"]["load"] = "changed"
    written["rounds"][0]["wall_ns"].append(7)
    written["arms"][0]["session"]["ep_options"]["soc_model"] = "changed"
    assert measurement.to_json() == Measurement((ARM,), (ROUND,), {"name": "sessions"}, {"load": 0.1}).to_json()
    assert SECTION.ep_options == {"soc_model": "60"}


@pytest.mark.parametrize(
    "value", [SECTION, ARM, ROUND, Measurement((ARM,), (ROUND,), {}, {})], ids=lambda v: type(v).__name__
)
def test_values_do_not_change(value: object) -> None:
    name = dataclasses.fields(value)[0].name  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, None)


def test_sections_made_without_options_do_not_share_them() -> None:
    SessionSection().ep_options["soc_model"] = "60"
    assert SessionSection().ep_options == {}


def test_a_millisecond_has_a_million_nanoseconds() -> None:
    assert NS_PER_MS == 10**6
