"""Whatever the space and whatever the results, suggestions lie in the space, are new, and are always the
same.
"""

from hypothesis import given, settings

from tests.properties.effort import PROPERTY
from tests.studies.suggestions import requests, spaces
from trainshed.core.tuning import grid
from trainshed.core.tuning.search_space import SearchSpace
from trainshed.core.tuning.suggestion_port import SuggestionRequest, point_key
from trainshed.suggest.choose import choose
from trainshed.suggest.encoding import Encoding
from trainshed.suggest.message import read_request, request_line
from trainshed.suggest.random_search import random_points

EFFORT = settings(PROPERTY, max_examples=60)


@EFFORT
@given(requests())
def test_every_suggestion_is_new_and_lies_in_its_space(request: SuggestionRequest):
    points = choose(request)
    keys = [point_key(point) for point in points]
    assert all(request.space.contains(point) for point in points)
    assert len(set(keys)) == len(keys)
    assert not set(keys) & {point_key(trial.point) for trial in request.trials}
    left = request.points_left
    assert len(points) == (request.count if left is None else min(request.count, left))


@EFFORT
@given(requests())
def test_the_same_request_gets_the_same_points_also_after_a_journey(request: SuggestionRequest):
    travelled = read_request(request_line(request))
    assert choose(request) == choose(travelled)


@EFFORT
@given(requests())
def test_random_points_keep_the_promises_too(request: SuggestionRequest):
    points = random_points(request)
    assert all(request.space.contains(point) for point in points)
    assert not {point_key(p) for p in points} & {point_key(trial.point) for trial in request.trials}
    assert points == random_points(request)


@EFFORT
@given(spaces())
def test_every_point_of_a_finite_space_is_enumerated_once_and_encoded_truly(space: SearchSpace):
    assert space.violations() == ()
    size = grid.size(space)
    if size is None or size > 500:
        return
    points = [grid.point_at(space, index) for index in range(size)]
    encoding = Encoding(space)
    assert len({point_key(point) for point in points}) == size
    for point in points:
        assert space.contains(point)
        assert encoding.point(encoding.row(point)) == point
        assert encoding.point(encoding.snap(encoding.row(point)[None, :])[0]) == point
