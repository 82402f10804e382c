"""The JSON of a measurement, as findings embed it."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace

import pytest
from tests.measured import ENVIRONMENT, PAIR, SESSIONS

from winml.modelkit.core.measurement import NS_PER_MS, Arm, Measurement, Round, SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import read, to_json

SECTION = SessionSection(
    threads=2,
    config_entries={"session.disable_prepacking": "1"},
    ep_options={"soc_model": "60"},
    fixed_dims={"batch": 1},
)
ARM = Arm(artifact="/models/a.onnx", target=Target("qnn", "npu", simulated=True), session=SECTION)
ROUND = Round(arm=0, round=2, process=4711, order=1, wall_ns=(5, 6), cpu_ns=(3, 4), load_before=0.5, load_after=None)
MEASUREMENT = Measurement(arms=(ARM,), rounds=(ROUND,), protocol=SESSIONS, environment=ENVIRONMENT)


def test_a_session_section_leaves_the_choice_to_the_runtime_unless_told() -> None:
    assert to_json(SessionSection()) == {
        "threads": None,
        "optimization_level": "all",
        "config_entries": {},
        "ep_options": {},
        "fixed_dims": {},
    }


def test_a_session_section_comes_back_from_its_json() -> None:
    assert read(SessionSection, json.loads(json.dumps(to_json(SECTION)))) == SECTION


def test_a_measurement_carries_arms_rounds_protocol_and_environment() -> None:
    written = json.loads(json.dumps(to_json(MEASUREMENT)))
    assert read(Measurement, written) == MEASUREMENT
    assert written == {
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
        "protocol": to_json(SESSIONS),
        "environment": to_json(ENVIRONMENT),
    }


def test_writing_into_the_json_does_not_change_the_value() -> None:
    written, again = to_json(MEASUREMENT), to_json(MEASUREMENT)
    written["protocol"]["name"] = written["environment"]["load"] = "changed"
    written["rounds"][0]["wall_ns"].append(7)
    written["arms"][0]["session"]["ep_options"]["soc_model"] = "changed"
    assert to_json(MEASUREMENT) == again
    assert SECTION.ep_options == {"soc_model": "60"}


@pytest.mark.parametrize("value", [SECTION, ARM, ROUND, MEASUREMENT], ids=lambda v: type(v).__name__)
def test_values_do_not_change(value: object) -> None:
    name = dataclasses.fields(value)[0].name  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, None)


def test_the_protocol_of_two_arms_is_told_from_that_of_one() -> None:
    both = replace(MEASUREMENT, protocol=PAIR)
    written = to_json(both)
    assert written["protocol"]["name"] == "paired-sequential/1"
    assert written["protocol"]["mode"] == "together"
    assert read(Measurement, written) == both


def test_a_millisecond_has_a_million_nanoseconds() -> None:
    assert NS_PER_MS == 10**6
