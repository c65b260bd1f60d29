"""`--param` and `--try`: what each form means, and what is said of a wrong one."""

from typing import Any

import pytest

from trainshed.cli.failure import Misuse
from trainshed.cli.tuning.parameter import likely_mistakes, parameter_specs, parameter_word
from trainshed.cli.tuning.point import read_points


def integers(low: int, high: int) -> dict[str, Any]:
    return {"integerValueSpec": {"minValue": low, "maxValue": high}}


def doubles(low: float, high: float) -> dict[str, Any]:
    return {"doubleValueSpec": {"minValue": low, "maxValue": high}}


def numbers(*values: float) -> dict[str, Any]:
    return {"discreteValueSpec": {"values": list(values)}}


LOG, REVERSE = {"scaleType": "UNIT_LOG_SCALE"}, {"scaleType": "UNIT_REVERSE_LOG_SCALE"}


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("0.1..0.5", doubles(0.1, 0.5)),
        ("0.0..1.0", doubles(0, 1)),
        ("0.0..1", doubles(0, 1)),
        ("-1.5..+2", doubles(-1.5, 2)),
        (".1...5", doubles(0.1, 0.5)),
        ("1..10", integers(1, 10)),
        ("-5..5", integers(-5, 5)),
        ("1e3..1e5", integers(1000, 100000)),
        ("int:1..10", integers(1, 10)),
        ("int:1.0..10.0", integers(1, 10)),
        ("log:1e-4..1e-1", doubles(1e-4, 1e-1) | LOG),
        ("log:1..1000", integers(1, 1000) | LOG),
        ("int:log:1..1000", integers(1, 1000) | LOG),
        ("log:int:1..1000", integers(1, 1000) | LOG),
        ("rlog:0.9..0.999", doubles(0.9, 0.999) | REVERSE),
        ("32,64,128", numbers(32, 64, 128)),
        ("128,32,64", numbers(32, 64, 128)),
        ("0.1,1e-3", numbers(0.001, 0.1)),
        ("log:1,10,100", numbers(1, 10, 100) | LOG),
        ("relu,tanh", {"categoricalValueSpec": {"values": ["relu", "tanh"]}}),
        ("1,two", {"categoricalValueSpec": {"values": ["1", "two"]}}),
        ("a=b,c=d", {"categoricalValueSpec": {"values": ["a=b", "c=d"]}}),
    ],
)
def test_each_form_of_a_spec_has_its_meaning(text: str, spec: dict[str, Any]) -> None:
    assert parameter_specs([f"x={text}"]) == [{"parameterId": "x", **spec}]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not NAME=SPEC"),
        ("lr", "is not NAME=SPEC"),
        ("lr=", "is not NAME=SPEC"),
        ("=1..2", "is not NAME=SPEC"),
        ("my lr=1..2", "has a space in it"),
        ("lr=0.1", "'0.1' is neither a range LOW..HIGH nor a list A,B,C"),
        ("lr=0.1-0.5", "'0.1-0.5' is neither a range"),
        ("lr=1..2..3", "'1..2..3' is neither a range"),
        ("lr=lg:1..2", "'lg:1..2' is neither a range"),
        ("lr=1..inf", "'1..inf' is neither a range"),
        ("lr=1..1e999", "has an end that is too large"),
        ("lr=5..1", "its lower end 5 is above its upper end 1"),
        ("lr=log:0..1", "a logarithm needs values above zero, and the lowest is 0"),
        ("lr=log:0,1", "a logarithm needs values above zero, and the lowest is 0"),
        ("lr=log:rlog:1..2", "log:rlog: exclude each other"),
        ("lr=log:log:1..2", "exclude each other"),
        ("lr=int:0.5..2", "int: needs whole numbers at both ends"),
        ("lr=int:0.5,2", "int: needs whole numbers"),
        ("lr=log:a,b", "log: goes with numbers, not with words"),
        ("lr=a,,b", "has an empty value"),
        ("lr=a, b", "spaces around it"),
        ("lr=a,b,a", "has a value twice"),
        ("lr=1,2,1.0", "has a value twice"),
        ("lr=1..2,5", "is a range and a list at once"),
        ("lr@net=1..2", "is not NAME@PARENT=VALUES=SPEC"),
        ("lr@=a=1..2", "is not NAME@PARENT=VALUES=SPEC"),
        ("lr=" + ",".join(map(str, range(1001))), "has 1001 values, and at most 1000 are allowed"),
    ],
)
def test_a_wrong_spec_is_told_with_its_option_its_value_and_what_is_allowed(text: str, reason: str) -> None:
    with pytest.raises(Misuse) as caught:
        parameter_word(text)
    assert caught.value.message.startswith(f"--param {text}: ")
    assert reason in caught.value.message
    assert any("LOW..HIGH" in line for line in caught.value.details)
    assert caught.value.exit_code == 2


def test_a_conditional_parameter_stands_inside_its_parent_wherever_it_was_said() -> None:
    specs = parameter_specs(
        ["dropout@net=big,huge=0.1..0.5", "net=small,big,huge", "rate@dropout2=1=1..2", "dropout2=0,1"]
    )
    assert [spec["parameterId"] for spec in specs] == ["net", "dropout2"]
    [condition] = specs[0]["conditionalParameterSpecs"]
    assert condition == {
        "parentCategoricalValues": {"values": ["big", "huge"]},
        "parameterSpec": {"parameterId": "dropout", **doubles(0.1, 0.5)},
    }
    [condition] = specs[1]["conditionalParameterSpecs"]
    assert condition["parentDiscreteValues"] == {"values": [1.0]}


def test_conditions_go_deeper_and_one_name_may_stand_under_several() -> None:
    specs = parameter_specs(["net=a,b", "layers@net=a=1..3", "units@layers=2,3=8..64", "layers@net=b=5..9"])
    first, second = specs[0]["conditionalParameterSpecs"]
    assert first["parameterSpec"]["conditionalParameterSpecs"] == [
        {"parentIntValues": {"values": [2, 3]}, "parameterSpec": {"parameterId": "units", **integers(8, 64)}}
    ]
    assert second["parameterSpec"] == {"parameterId": "layers", **integers(5, 9)}


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ([], "say what to search: --param NAME=SPEC"),
        (["lr=1..2", "lr=3..4"], "--param lr=3..4: lr stands twice"),
        (["net=a,b", "x@nte=a=1..2"], "there is no parameter nte; there are: net"),
        (["net=a,b", "x@net=c=1..2"], "net is one of a, b, not 'c'"),
        (["n=1..3", "x@n=4=1..2"], "n is a whole number from 1 to 3, not '4'"),
        (["lr=0.1..0.5", "x@lr=0.2=1..2"], "lr has endless values"),
        (["x@y=a=b,a", "y@x=a=b,a"], "depends on itself"),
        (["x@x=a=b,a"], "depends on itself"),
    ],
)
def test_parameters_that_do_not_fit_together_are_refused(texts: list[str], reason: str) -> None:
    with pytest.raises(Misuse) as caught:
        parameter_specs(texts)
    assert reason in caught.value.message


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(Misuse) as caught:
        parameter_specs(["lr=5..1", "net=a,b", "batch=32", "net=c,d", "x@lr=1=1..2"])
    told = [caught.value.message, *caught.value.details]
    assert told[:4] == [
        "--param lr=5..1: its lower end 5 is above its upper end 1",
        "--param batch=32: '32' is neither a range LOW..HIGH nor a list A,B,C",
        "--param net=c,d: net stands twice",
        "what is allowed:",
    ]


def test_all_conditions_that_do_not_fit_are_told_at_once() -> None:
    with pytest.raises(Misuse) as caught:
        parameter_specs(["net=a,b", "x@nte=a=1..2", "y@net=c=1..2"])
    assert "there is no parameter nte" in caught.value.message
    assert "net is one of a, b, not 'c'" in caught.value.details[0]


def test_a_range_from_0_to_1_is_remarked_on() -> None:
    [remark] = likely_mistakes(parameter_specs(["momentum=0..1", "depth=0..2", "p=0.0..1.0"]))
    assert remark == "momentum has only the values 0 and 1; write 0.0..1.0 for all numbers between"


SPECS = parameter_specs(["lr=log:1e-4..1e-1", "batch=32,64", "net=small,big", "n@net=big=1..3"])


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("lr=0.01,batch=32,net=small", {"lr": 0.01, "batch": 32.0, "net": "small"}),
        ("net=big,n=2,batch=64.0,lr=1e-4", {"lr": 1e-4, "batch": 64.0, "net": "big", "n": 2}),
    ],
)
def test_a_point_has_a_value_of_each_parameter_that_applies(text: str, point: dict[str, Any]) -> None:
    assert read_points([text], SPECS, "--try ") == [point]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("lr=0.01", "has no value of batch, net"),
        ("lr=0.01,batch=32,net=big", "has no value of n"),
        ("lr=0.01,batch=32,net=small,n=1", "n does not apply with these values"),
        ("lr=0.01,batch=32,net=small,m=1", "m is no parameter"),
        ("lr=0.5,batch=32,net=small", "lr is a number from 0.0001 to 0.1, not '0.5'"),
        ("lr=x,batch=32,net=small", "lr is a number from 0.0001 to 0.1, not 'x'"),
        ("lr=0.01,batch=48,net=small", "batch is one of 32, 64, not '48'"),
        ("lr=0.01,batch=32,net=big,n=1.5", "n is a whole number from 1 to 3, not '1.5'"),
        ("lr=0.01,lr=0.02,batch=32,net=small", "lr stands twice"),
        ("lr", "'lr' is not NAME=VALUE"),
    ],
)
def test_a_wrong_point_is_told_with_what_is_allowed(text: str, reason: str) -> None:
    with pytest.raises(Misuse) as caught:
        read_points([text], SPECS, "--try ")
    assert caught.value.message == f"--try {text}: {reason}"
    assert caught.value.details == ("a point reads lr=VALUE,batch=VALUE,net=VALUE,n=VALUE",)


def test_all_that_is_wrong_with_points_is_told_at_once() -> None:
    with pytest.raises(Misuse) as caught:
        read_points(["lr=7,batch=1,net=big", "m=1,lr", "net=small,n=1"], SPECS, "")
    assert [caught.value.message, *caught.value.details] == [
        "lr=7,batch=1,net=big: lr is a number from 0.0001 to 0.1, not '7'",
        "lr=7,batch=1,net=big: batch is one of 32, 64, not '1'",
        "m=1,lr: 'lr' is not NAME=VALUE",
        "m=1,lr: m is no parameter",
        "net=small,n=1: n does not apply with these values",
        "net=small,n=1: has no value of lr, batch",
        "a point reads lr=VALUE,batch=VALUE,net=VALUE,n=VALUE",
    ]


def test_numbers_that_the_server_tells_as_texts_are_understood() -> None:
    specs = [
        {
            "parameterId": "n",
            "integerValueSpec": {"minValue": "1", "maxValue": "3"},
            "conditionalParameterSpecs": [
                {"parentIntValues": {"values": ["2"]}, "parameterSpec": {"parameterId": "m", **doubles(0, 1)}}
            ],
        }
    ]
    assert read_points(["n=2,m=0.5", "n=1"], specs, "") == [{"n": 2, "m": 0.5}, {"n": 1}]
