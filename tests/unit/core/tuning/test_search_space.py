"""Search spaces: what they contain, which parameters apply, what is wrong with them, and their points in
order.
"""

import pytest

from trainshed.core.tuning import search_space
from trainshed.core.tuning.grid import point_at, size
from trainshed.core.tuning.search_space import Parameter, ParameterKind, Scale, SearchSpace

DOUBLE, INTEGER = ParameterKind.DOUBLE, ParameterKind.INTEGER
CATEGORICAL, DISCRETE = ParameterKind.CATEGORICAL, ParameterKind.DISCRETE

MODEL = Parameter(id="model", kind=CATEGORICAL, values=("linear", "trees"))
DEPTH = Parameter(id="depth", kind=INTEGER, low=1, high=3, parent="model", parent_values=("trees",))
BINS = Parameter(id="bins", kind=DISCRETE, values=(8.0, 16.0), parent="depth", parent_values=(3,))
TREE = SearchSpace((BINS, DEPTH, MODEL))


def fields(*parameters: Parameter) -> list[str]:
    return [violation.field for violation in SearchSpace(parameters).violations()]


def test_a_parameter_applies_only_where_its_parents_have_the_right_values():
    ids = [
        [p.id for p in TREE.active(point)] for point in ({"model": "linear"}, {"model": "trees", "depth": 3})
    ]
    assert ids == [["model"], ["model", "depth", "bins"]]


def test_a_point_lies_in_the_space_if_it_has_all_that_applies_and_nothing_else():
    assert TREE.contains({"model": "linear"})
    assert TREE.contains({"model": "trees", "depth": 3, "bins": 8.0})
    assert not TREE.contains({"model": "trees", "depth": 3})
    assert not TREE.contains({"model": "linear", "depth": 1})
    assert not TREE.contains({"model": "trees", "depth": 2.5})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "1", None, 0.0, 4])
def test_only_whole_numbers_of_the_range_are_values_of_an_integer(value: object):
    assert not DEPTH.has(value)


def test_a_value_of_a_long_list_is_found_without_comparing_it_with_each(monkeypatch: pytest.MonkeyPatch):
    compared: list[object] = []
    monkeypatch.setattr(search_space, "same_value", lambda left, right: compared.append(right))
    values = tuple(float(value) for value in range(1000))
    assert Parameter(id="x", kind=ParameterKind.DISCRETE, values=values).has(999)
    assert compared == []


def test_every_point_of_a_finite_space_comes_once():
    points = [point_at(TREE, index) for index in range(size(TREE) or 0)]
    assert [dict(point) for point in points] == [
        {"model": "linear"},
        {"model": "trees", "depth": 1},
        {"model": "trees", "depth": 2},
        {"model": "trees", "depth": 3, "bins": 8.0},
        {"model": "trees", "depth": 3, "bins": 16.0},
    ]
    assert all(TREE.contains(point) for point in points)


def test_a_long_range_with_children_is_counted_without_walking_it():
    parent = Parameter(id="n", kind=INTEGER, low=0, high=10**12)
    child = Parameter(id="c", kind=CATEGORICAL, values=("a", "b", "c"), parent="n", parent_values=(7, 10**12))
    space = SearchSpace((parent, child))
    assert size(space) == 10**12 + 1 + 4
    assert point_at(space, 7) == {"n": 7, "c": "a"}
    assert point_at(space, 10) == {"n": 8}
    assert point_at(space, 10**12 + 4) == {"n": 10**12, "c": "c"}


def test_a_space_with_a_double_is_countless_unless_the_double_has_one_value():
    assert size(SearchSpace((Parameter(id="x", kind=DOUBLE, low=0, high=1),))) is None
    assert size(SearchSpace((Parameter(id="x", kind=DOUBLE, low=1, high=1),))) == 1


def test_a_space_without_faults_has_no_violations():
    log = Parameter(id="lr", kind=DOUBLE, low=1e-5, high=1, scale=Scale.LOG, default=0.1)
    assert fields(MODEL, DEPTH, BINS, log) == []


def test_an_id_may_stand_twice_where_the_conditions_exclude_each_other():
    first = Parameter(id="x", kind=DOUBLE, low=0, high=1, parent="model", parent_values=("linear",))
    second = Parameter(id="x", kind=INTEGER, low=0, high=9, parent="model", parent_values=("trees",))
    third = Parameter(id="x", kind=INTEGER, low=0, high=9, parent="depth", parent_values=(1,))
    assert fields(MODEL, first, second) == []
    assert fields(MODEL, DEPTH, first, third) == []
    assert fields(MODEL, DEPTH, second, third) == ["parameters[3].id"]
    assert SearchSpace((MODEL, first, second)).contains({"model": "trees", "x": 4})


WRONG = [
    (Parameter(id="a b", kind=DOUBLE, low=0, high=1), "id"),
    (Parameter(id="x", kind=DOUBLE, low=2, high=1), "high"),
    (Parameter(id="x", kind=DOUBLE, low=0, high=float("inf")), "high"),
    (Parameter(id="x", kind=DOUBLE, low=-1.7e308, high=1.7e308), "high"),
    (Parameter(id="x", kind=INTEGER, low=0.5, high=3), "low"),
    (Parameter(id="x", kind=INTEGER, low=0, high=3, values=(1.0,)), "values"),
    (Parameter(id="x", kind=DOUBLE, low=0, high=1, scale=Scale.LOG), "scale"),
    (Parameter(id="x", kind=DISCRETE, values=(-1.0, 1.0), scale=Scale.REVERSE_LOG), "scale"),
    (Parameter(id="x", kind=DISCRETE, values=(1.0, 1.0)), "values"),
    (Parameter(id="x", kind=DISCRETE, values=()), "values"),
    (Parameter(id="x", kind=DISCRETE, values=("a",)), "values"),
    (Parameter(id="x", kind=CATEGORICAL, values=("a", "a")), "values"),
    (Parameter(id="x", kind=CATEGORICAL, values=("a", 1.0)), "values"),
    (Parameter(id="x", kind=CATEGORICAL, values=("a",), scale=Scale.LOG), "scale"),
    (Parameter(id="x", kind=CATEGORICAL, values=("a",), default="b"), "default"),
    (Parameter(id="x", kind=DOUBLE, low=0, high=1, parent="y", parent_values=(1,)), "parent"),
    (Parameter(id="x", kind=INTEGER, low=0, high=1, parent="x", parent_values=(1,)), "parent"),
    (Parameter(id="x", kind=DOUBLE, low=0, high=1, parent_values=(1,)), "parent_values"),
]


@pytest.mark.parametrize(("parameter", "field"), WRONG)
def test_what_is_wrong_with_a_parameter_is_named_by_its_field(parameter: Parameter, field: str):
    assert fields(parameter) == [f"parameters[0].{field}"]


def test_a_child_names_values_that_its_parent_has():
    none = Parameter(id="x", kind=DOUBLE, low=0, high=1, parent="model")
    strange = Parameter(id="y", kind=DOUBLE, low=0, high=1, parent="model", parent_values=("svm",))
    assert fields(MODEL, none, strange) == ["parameters[1].parent_values", "parameters[2].parent_values"]
