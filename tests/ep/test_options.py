"""Provider options: parsing, every rule of the table, and what is added to what the user gave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.target import Target
from winml.modelkit.ep.catalog import BY_NAME, TABLE, Option
from winml.modelkit.ep.options import check_options, complete, parse_pairs

NPU = Target("qnn", "npu")
GPU = Target("qnn", "gpu")
SIMULATED = Target("qnn", "npu", simulated=True)
OPENVINO_GPU = Target("openvino", "gpu")
TARGETS = [Target(info.name, device) for info in TABLE for device in info.devices]

ROWS = [(info.name, name, option) for info in TABLE for name, option in info.options.items()]


def rows(fits: Callable[[Option], bool]) -> pytest.MarkDecorator:
    """Every option of the table that fits and that a user may set, with a target it belongs to."""
    wanted = [
        pytest.param(Target(ep, BY_NAME[ep].devices[0]), name, option, id=f"{ep}-{name}")
        for ep, name, option in ROWS
        if fits(option) and not option.refused
    ]
    assert wanted
    return pytest.mark.parametrize(("target", "name", "option"), wanted)


def is_number(option: Option) -> bool:
    return option.type in ("int", "ints")


def refusal(target: Target, given: dict[str, str]) -> RequestError:
    with pytest.raises(RequestError) as caught:
        check_options(target, given)
    return caught.value


# parse_pairs


def test_pairs_become_a_dictionary_in_their_order() -> None:
    assert list(parse_pairs(["soc_model=60", "htp_arch=73"]).items()) == [("soc_model", "60"), ("htp_arch", "73")]


def test_no_pairs_are_no_options() -> None:
    assert parse_pairs([]) == {}


@pytest.mark.parametrize("pair", ["", "soc_model", "=", "=60", " =60", "soc_model=", "soc_model= "])
def test_a_malformed_pair_is_shown_with_an_example(pair: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_pairs([pair])
    assert caught.value.message == f"--ep-options must be written K=V but got `{pair}`"
    assert caught.value.hint == "for example `--ep-options soc_model=60`"


def test_a_malformed_pair_names_the_option_it_was_given_to() -> None:
    with pytest.raises(RequestError, match="^--dim must be written K=V but got `batch`$"):
        parse_pairs(["batch"], option="--dim")


@pytest.mark.parametrize(
    ("pair", "value"), [("reshape_input=x[1,2]=y", "x[1,2]=y"), ("op_packages=a=b=c", "a=b=c"), ("k==", "=")]
)
def test_a_value_keeps_the_equals_signs_inside_it(pair: str, value: str) -> None:
    assert list(parse_pairs([pair]).values()) == [value]


def test_a_name_given_two_values_is_a_wrong_request() -> None:
    with pytest.raises(RequestError, match="^--ep-options gives `soc_model` twice: `60` and `43`$"):
        parse_pairs(["soc_model=60", "htp_arch=73", "soc_model=43"])


def test_repeating_the_same_pair_is_harmless() -> None:
    assert parse_pairs(["soc_model=60", "soc_model=60"]) == {"soc_model": "60"}


def test_spaces_around_name_and_value_are_dropped() -> None:
    assert parse_pairs([" soc_model = 60 "]) == {"soc_model": "60"}


STRIPPED = st.text(min_size=1, max_size=20).map(str.strip).filter(bool)


@settings(deadline=None)
@given(st.dictionaries(STRIPPED.filter(lambda key: "=" not in key), STRIPPED, max_size=5))
def test_any_names_and_values_come_back_from_their_pairs(options: dict[str, str]) -> None:
    assert parse_pairs([f"{key}={value}" for key, value in options.items()]) == options


@settings(deadline=None)
@given(st.lists(st.text(max_size=30), max_size=4))
def test_any_words_are_pairs_or_a_wrong_request(words: list[str]) -> None:
    try:
        parsed = parse_pairs(words)
    except RequestError:
        return
    assert all(key and value and "=" not in key for key, value in parsed.items())


# The rules of the table, each for every option it holds for


@rows(lambda option: option.type == "bool")
def test_bool_options_take_every_usual_spelling(target: Target, name: str, option: Option) -> None:
    for written in ("1", "true", "True", "ON", "yes"):
        assert check_options(target, {name: written}) == {name: "1"}
    for written in ("0", "false", "FALSE", "off", "No"):
        assert check_options(target, {name: written}) == {name: "0"}


@rows(lambda option: option.type == "bool")
def test_bool_options_refuse_everything_else(target: Target, name: str, option: Option) -> None:
    for value in ("2", "-1", "maybe", "", "01", "truee"):
        message = f"provider option `{name}` must be 0 or 1 but got `{value}`"
        assert refusal(target, {name: value}).message == message


@rows(is_number)
def test_whole_numbers_are_taken_up_to_both_ends_of_their_range(target: Target, name: str, option: Option) -> None:
    inside = [str(n) for n in (option.low, option.high) if n is not None] or list(option.choices)
    assert inside
    for value in inside:
        assert check_options(target, {name: value}) == {name: value}
        assert check_options(target, {name: f"0{value}"}) == {name: value}


@rows(lambda option: bool(option.low))
def test_a_number_below_the_range_is_refused_with_its_limit(target: Target, name: str, option: Option) -> None:
    below = (option.low or 0) - 1
    message = f"provider option `{name}` must be at least {option.low} but got {below}"
    assert refusal(target, {name: str(below)}).message == message


@rows(lambda option: option.high is not None)
def test_a_number_above_the_range_is_refused_with_its_limit(target: Target, name: str, option: Option) -> None:
    above = (option.high or 0) + 1
    message = f"provider option `{name}` must be at most {option.high} but got {above}"
    assert refusal(target, {name: str(above)}).message == message


@rows(lambda option: is_number(option) and bool(option.choices))
def test_a_number_that_is_not_listed_is_refused_with_the_list(target: Target, name: str, option: Option) -> None:
    error = refusal(target, {name: "1"})
    assert error.message == f"provider option `{name}` cannot be 1"
    assert error.hint == f"known: {', '.join(option.choices)}"


@rows(is_number)
def test_what_is_not_a_plain_whole_number_is_refused(target: Target, name: str, option: Option) -> None:
    for value in ("", "-1", "+1", "1.5", "1e3", "0x10", "1_0", "many", "１", "²", "1 0"):
        message = f"provider option `{name}` must be a whole number but got `{value}`"
        assert refusal(target, {name: value}).message == message


@rows(lambda option: option.type == "int")
def test_one_number_is_not_a_list(target: Target, name: str, option: Option) -> None:
    assert "must be a whole number" in refusal(target, {name: "1,1"}).message


@rows(lambda option: option.type == "ints")
def test_a_list_is_taken_number_by_number(target: Target, name: str, option: Option) -> None:
    good = str(option.high if option.high is not None else option.choices[-1] if option.choices else 7)
    assert check_options(target, {name: f"{good}, {good} ,0"}) == {name: f"{good},{good},0"}
    for bad in (f"{good},", f",{good}", f"{good},,{good}", f"{good},x", f"{good};{good}"):
        assert "must be a whole number" in refusal(target, {name: bad}).message


def test_the_second_number_of_a_list_is_held_to_the_same_rule() -> None:
    assert refusal(NPU, {"vtcm_mb": "8,65"}).message == "provider option `vtcm_mb` must be at most 64 but got 65"
    assert refusal(NPU, {"htp_arch": "73,74"}).message == "provider option `htp_arch` cannot be 74"


@rows(lambda option: option.type == "choice")
def test_a_choice_is_taken_in_any_case_and_passed_on_in_the_spelling_of_the_ep(
    target: Target, name: str, option: Option
) -> None:
    fixed = BY_NAME[target.ep].device_options.get(target.device, {})
    for choice in (fixed[name],) if name in fixed else option.choices:
        assert check_options(target, {name: choice.upper()}) == {name: choice}
        assert check_options(target, {name: choice.lower()}) == {name: choice}


@rows(lambda option: option.type == "choice")
def test_a_choice_that_does_not_exist_suggests_the_nearest(target: Target, name: str, option: Option) -> None:
    written = option.choices[-1] + "_"
    error = refusal(target, {name: written})
    assert error.message == f"provider option `{name}` cannot be `{written}`"
    assert (error.hint or "").startswith("did you mean `")
    assert all(f"`{choice}`" in (error.hint or "") for choice in option.choices)


@rows(lambda option: option.type == "text")
def test_text_is_passed_on_as_written(target: Target, name: str, option: Option) -> None:
    for value in ("a b", "C:\\models\\x.json", "ü", "x[1,2]=y"):
        assert check_options(target, {name: value}) == {name: value}


@rows(lambda option: option.type == "path")
def test_an_absolute_path_is_passed_on_as_written(target: Target, name: str, option: Option, tmp_path: Path) -> None:
    written = str(tmp_path / "with space ü.bin")
    assert check_options(target, {name: written}) == {name: written}


@pytest.mark.parametrize(
    ("ep", "name", "option"), [pytest.param(*row, id=f"{row[0]}-{row[1]}") for row in ROWS if row[2].refused]
)
def test_a_refused_option_says_why(ep: str, name: str, option: Option) -> None:
    for value in ("1", "0", "anything"):
        error = refusal(Target(ep, BY_NAME[ep].devices[0]), {name: value})
        assert error.message == f"provider option `{name}` cannot be set: {option.refused}"


def test_some_options_are_refused() -> None:
    assert {name for _, name, option in ROWS if option.refused} >= {"qnn_saver_path", "enable_htp_prepare_only"}


def test_a_number_too_long_for_python_is_a_wrong_request() -> None:
    refusal(NPU, {"soc_model": "9" * 5000})


# Names


def test_an_unknown_option_suggests_the_nearest() -> None:
    error = refusal(NPU, {"soc_modle": "60"})
    assert error.message == "execution provider `qnn` has no option `soc_modle`"
    assert (error.hint or "").startswith("did you mean `soc_model`? `winml ep options qnn` lists all ")


def test_an_option_of_another_ep_is_unknown() -> None:
    assert "has no option `device_type`" in refusal(NPU, {"device_type": "NPU"}).message


def test_names_of_options_keep_their_case_because_eps_do() -> None:
    assert (refusal(NPU, {"SOC_MODEL": "60"}).hint or "").startswith("did you mean `soc_model`?")


def test_an_ep_without_options_says_so() -> None:
    error = refusal(Target("cpu", "cpu"), {"threads": "1"})
    assert error.message == "execution provider `cpu` has no option `threads`"
    assert error.hint == "`cpu` takes no provider options"


def test_the_first_option_that_does_not_fit_is_named() -> None:
    assert "`vtcm_mb`" in refusal(NPU, {"soc_model": "60", "vtcm_mb": "x", "htp_arch": "x"}).message


# Options against the target and against each other


@pytest.mark.parametrize(
    ("target", "given"),
    [
        (NPU, {"backend_type": "gpu"}),
        (GPU, {"backend_type": "htp"}),
        (OPENVINO_GPU, {"device_type": "CPU"}),
        (OPENVINO_GPU, {"device_type": "NPU"}),
        (Target("openvino", "cpu"), {"device_type": "GPU.1"}),
        (Target("openvino", "npu"), {"device_type": "GPU"}),
    ],
)
def test_an_option_may_not_contradict_the_target(target: Target, given: dict[str, str]) -> None:
    error = refusal(target, given)
    [(name, value)] = given.items()
    assert error.message == f"provider option `{name}={value}` contradicts the target `{target}`"
    assert error.hint == "name the device in the target instead"


@pytest.mark.parametrize(
    ("target", "given"),
    [
        (NPU, {"backend_type": "HTP"}),
        (GPU, {"backend_type": "gpu"}),
        (OPENVINO_GPU, {"device_type": "GPU"}),
        (OPENVINO_GPU, {"device_type": "gpu.1"}),
    ],
)
def test_an_option_may_repeat_or_narrow_the_target(target: Target, given: dict[str, str]) -> None:
    [(name, value)] = given.items()
    assert check_options(target, given)[name].casefold() == value.casefold()


@pytest.mark.parametrize("order", [("backend_path", "backend_type"), ("backend_type", "backend_path")])
def test_backend_path_excludes_backend_type(order: tuple[str, str]) -> None:
    values = {"backend_path": "QnnHtp.dll", "backend_type": "htp"}
    error = refusal(NPU, {name: values[name] for name in order})
    assert error.message == "provider options `backend_path` and `backend_type` cannot be combined"


def test_checking_does_not_change_what_was_given() -> None:
    given = {"enable_htp_fp16_precision": "on"}
    assert check_options(NPU, given) == {"enable_htp_fp16_precision": "1"}
    assert given == {"enable_htp_fp16_precision": "on"}


@settings(deadline=None)
@given(st.sampled_from(TARGETS), st.data())
def test_checked_options_pass_the_check_unchanged(target: Target, data: st.DataObject) -> None:
    names = sorted(BY_NAME[target.ep].options)
    if not names:
        assert check_options(target, {}) == {}
        return
    name = data.draw(st.sampled_from(names))
    words = [*BY_NAME[target.ep].options[name].choices, "0", "1", "60,43", "on", "./a b"]
    try:
        once = check_options(target, {name: data.draw(st.sampled_from(words))})
    except RequestError:
        return
    assert check_options(target, once) == once


# complete


def test_the_device_is_added_to_what_the_user_gave() -> None:
    options, added = complete(NPU, {"htp_performance_mode": "burst"})
    assert options == {"backend_type": "htp", "htp_performance_mode": "burst"}
    assert added == {"backend_type": "htp"}


def test_each_device_of_an_ep_gets_its_own_options() -> None:
    assert complete(GPU, {})[0] == {"backend_type": "gpu"}
    assert complete(Target("openvino", "npu"), {})[0] == {"device_type": "NPU"}
    assert complete(Target("cpu", "cpu"), {}) == ({}, {})


def test_a_simulated_device_gets_the_options_of_the_simulator() -> None:
    options, added = complete(SIMULATED, {})
    assert options == added == {"backend_type": "htp", "soc_model": "60"}


def test_a_real_device_does_not_get_the_options_of_the_simulator() -> None:
    assert "soc_model" not in complete(NPU, {})[0]


def test_what_the_user_set_is_kept_and_not_counted_as_added() -> None:
    options, added = complete(SIMULATED, {"soc_model": "43"})
    assert options == {"backend_type": "htp", "soc_model": "43"}
    assert added == {"backend_type": "htp"}


def test_an_architecture_named_by_the_user_leaves_the_soc_to_it() -> None:
    options, added = complete(SIMULATED, {"htp_arch": "75"})
    assert options == {"backend_type": "htp", "htp_arch": "75"}
    assert added == {"backend_type": "htp"}


def test_a_device_option_the_user_repeated_is_not_counted_as_added() -> None:
    assert complete(NPU, {"backend_type": "htp"}) == ({"backend_type": "htp"}, {})
    assert complete(OPENVINO_GPU, {"device_type": "GPU.1"}) == ({"device_type": "GPU.1"}, {})


def test_a_backend_path_replaces_the_backend_type() -> None:
    assert complete(NPU, {"backend_path": "QnnHtp.dll"}) == ({"backend_path": "QnnHtp.dll"}, {})


def test_completing_checks_first() -> None:
    with pytest.raises(RequestError, match="contradicts the target"):
        complete(NPU, {"backend_type": "gpu"})


def test_completing_does_not_write_into_the_table() -> None:
    complete(SIMULATED, {})[1]["soc_model"] = "changed"
    assert BY_NAME["qnn"].device_options["npu"] == {"backend_type": "htp"}
    assert BY_NAME["qnn"].simulator_options == {"soc_model": "60"}


KNOWN_NAMES = sorted({name for _, name, _ in ROWS})
NAMES = st.one_of(st.text(max_size=30), st.sampled_from(KNOWN_NAMES))
VALUE_TEXT = st.one_of(
    st.text(max_size=30), st.text("0123456789,. -", max_size=12), st.sampled_from(["on", "gpu", "htp"])
)


@settings(deadline=None, max_examples=200)
@given(st.sampled_from([*TARGETS, SIMULATED]), st.dictionaries(NAMES, VALUE_TEXT, max_size=3))
def test_any_names_and_values_are_completed_or_a_wrong_request(target: Target, given: dict[str, str]) -> None:
    try:
        options, added = complete(target, given)
    except RequestError:
        return
    assert set(options) == set(given) | set(added)
    assert not set(given) & set(added)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{bad", "is not JSON"),
        ("nowhere.json", "must be a JSON object or a file that holds one"),
        ("\0", "must be a JSON object or a file that holds one"),
        ("{" * 100_000, "is not JSON"),
    ],
)
def test_an_option_of_json_is_an_object_or_a_file_of_one(value: str, message: str) -> None:
    assert message in refusal(NPU, {"op_affinity": value}).message


def test_json_in_a_file_must_be_an_object_too(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text("[]")
    assert "must be a JSON object but got `[]`" in refusal(NPU, {"op_affinity": str(tmp_path / "list.json")}).message
