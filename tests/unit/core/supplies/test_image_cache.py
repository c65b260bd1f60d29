"""Which cache a job matches, and which images go when room is needed."""

from datetime import timedelta
from typing import Any

import pytest

from tests.builders import T0
from trainshed.core.supplies.image_cache import CacheState, ImageCache, PulledImage, best, held, to_collect

DAY = timedelta(days=1)


def cache(name: str, *images: str, **changes: Any) -> ImageCache:
    said: dict[str, Any] = {"project": "p", "location": "l", "created_at": T0, "state": CacheState.READY}
    return ImageCache(id=name, images=images, **(said | changes))


def kept(name: str, days: float, size: int = 10) -> PulledImage:
    return PulledImage(
        id=f"sha256:{name}", names=(f"docker.io/library/{name}:1",), size=size, used_at=T0 - days * DAY
    )


@pytest.mark.parametrize(
    ("caches", "expected"),
    [
        ([], None),
        ([cache("other", "x:1")], None),
        ([cache("one", "a:1"), cache("both", "a:1", "b:1")], "both"),
        ([cache("wide", "a:1", "b:1", "c:1"), cache("both", "a:1", "b:1")], "both"),
        ([cache("long", "docker.io/library/a:1")], "long"),
        ([cache("old", "a:1"), cache("new", "a:1", created_at=T0 + DAY)], "new"),
        ([cache("making", "a:1", "b:1", state=CacheState.CREATING), cache("one", "a:1")], "one"),
        ([cache("theirs", "a:1", "b:1", project="q")], None),
    ],
)
def test_a_job_matches_the_cache_that_has_most_of_its_images_and_least_beside(
    caches: list[ImageCache], expected: str | None
):
    found = best(caches, "p", ["a:1", "b:1", "trainshed/python:3"])
    assert (found.id if found else None) == expected


def test_a_cache_is_over_when_its_days_are():
    assert not cache("c", "a:1").is_over(T0 + 1000 * DAY)
    week = cache("c", "a:1", retention_days=7)
    assert not week.is_over(T0 + 6.9 * DAY)
    assert week.is_over(T0 + 7 * DAY)


def test_names_are_held_in_their_long_form():
    assert held([cache("c", "a", "127.0.0.1:5000/b:2")]) == {
        "docker.io/library/a:latest",
        "127.0.0.1:5000/b:2",
    }


def test_the_least_recently_used_go_until_enough_is_free():
    images = [kept("new", 1), kept("old", 9), kept("older", 10), kept("wanted", 99)]
    wanted = frozenset({"docker.io/library/wanted:1"})
    gone = to_collect(images, wanted, T0, None, lacking=15)
    assert [one.id for one in gone] == ["sha256:older", "sha256:old"]


def test_what_was_not_used_for_longer_than_the_retention_goes_though_there_is_room():
    images = [kept("new", 1), kept("old", 9)]
    assert [one.id for one in to_collect(images, frozenset(), T0, 5 * DAY, lacking=-1)] == ["sha256:old"]


def test_nothing_goes_while_there_is_room_and_no_retention():
    assert to_collect([kept("old", 999)], frozenset(), T0, None, lacking=0) == ()
