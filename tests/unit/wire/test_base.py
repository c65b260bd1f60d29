from collections.abc import Mapping

import pytest

from trainshed.core.errors import Invalid
from trainshed.wire.base import (
    Message,
    flag,
    has,
    int64,
    output_only,
    part,
    parts,
    read,
    text,
    text_map,
    write,
)
from trainshed.wire.faults import Faults


class Wheel(Message):
    name: str = text()
    size_in_cm: int = int64()


class Car(Message):
    is_red: bool = flag()
    spare_wheel: Wheel | None = part(Wheel)
    all_wheels: tuple[Wheel, ...] = parts(Wheel)
    labels: Mapping[str, str] = text_map()
    made_at: object = output_only(is_open=True)
    sold_at: object = output_only()


def errors(body: object) -> dict[str, str]:
    found = Faults("car")
    read(Car, body, found)
    try:
        found.settle()
    except Invalid as error:
        return {one.field: one.description for one in error.violations}
    return {}


def good(body: object) -> Car:
    found = Faults("car")
    car = read(Car, body, found)
    found.settle()
    return car


def test_names_are_taken_in_both_spellings_and_written_in_one() -> None:
    for body in ({"spareWheel": {"sizeInCm": 5}}, {"spare_wheel": {"size_in_cm": "5"}}):
        assert write(good(body)) == {"spareWheel": {"sizeInCm": "5"}}


def test_null_is_the_same_as_absent_and_defaults_are_not_written() -> None:
    car = good({"isRed": None, "allWheels": None, "spareWheel": None})
    assert car.is_empty
    assert write(good({"isRed": False, "labels": {}})) == {}


def test_a_name_given_in_both_spellings_is_refused() -> None:
    assert errors({"isRed": True, "is_red": True}) == {"is_red": "is given twice, as isRed and is_red."}


def test_an_unknown_name_is_refused_in_googles_words_with_its_path() -> None:
    assert errors({"allWheels": [{}, {"colour": 1}], "x": None}) == {
        "all_wheels[1].colour": (
            "Invalid JSON payload received. "
            "Unknown name \"colour\" at 'car.all_wheels[1]': Cannot find field."
        ),
        "x": "Invalid JSON payload received. Unknown name \"x\" at 'car': Cannot find field.",
    }


def test_all_faults_are_found_in_one_pass() -> None:
    body = {"isRed": "true", "spareWheel": 1, "allWheels": ["x", {"name": 1}], "labels": {"a": 1, "b": "c"}}
    assert set(errors(body)) == {"is_red", "spare_wheel", "all_wheels[0]", "all_wheels[1].name", "labels.a"}


def test_a_body_that_is_no_object_is_refused() -> None:
    assert errors([1]) == {"": "must be an object, not a list."}


def test_what_could_not_be_read_is_not_complained_about_again() -> None:
    found = Faults("car")
    read(Car, {"spareWheel": 1}, found)
    found.add("spare_wheel.name", "is required.")
    found.add("is_red", "is required.")
    with pytest.raises(Invalid) as caught:
        found.settle()
    assert [one.field for one in caught.value.violations] == ["spare_wheel", "is_red"]


def test_the_message_has_the_first_faults_and_the_number_of_the_others() -> None:
    found = Faults("car")
    for number in range(5):
        found.add(f"labels.k{number}", "is wrong.")
    with pytest.raises(Invalid) as caught:
        found.settle()
    assert caught.value.message == "labels.k0 is wrong. labels.k1 is wrong. labels.k2 is wrong. And 2 more."
    assert len(caught.value.violations) == 5


def test_an_answer_does_not_grow_without_bound() -> None:
    assert len(errors({f"x{number}": 1 for number in range(5000)})) == 1000


def test_what_only_the_server_sets_is_ignored_whatever_it_is() -> None:
    assert good({"madeAt": [1, {"x": object()}]}).is_empty


def test_a_message_does_not_change() -> None:
    with pytest.raises(AttributeError):
        good({}).is_red = True


def test_it_is_known_which_paths_a_message_may_hold() -> None:
    assert has(Car, ["all_wheels", "sizeInCm"])
    assert has(Car, ["labels", "anything"])
    assert has(Car, ["made_at", "seconds"])
    assert not has(Car, ["sold_at", "seconds"])
    assert not has(Car, ["isRed", "x"])
    assert not has(Car, ["spareWheel", "x"])
