"""Where data comes from and results go: read, put into the job, looked for, told of."""

import re
from typing import Any, cast
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from trainshed.cli import places
from trainshed.cli.results import results
from trainshed.cli.seek import seek
from trainshed.cli.submit_options import SubmitWords
from trainshed.cli.trouble import EarlyError
from trainshed.client import Client
from trainshed.client.errors import ApiError, Unreachable


class FakeBuckets:
    """Buckets as the server tells of them, a few objects a page."""

    project = "p1"

    def __init__(self, page: int = 1000, **buckets: dict[str, int]) -> None:
        self.buckets = {name.replace("_", "-"): objects for name, objects in buckets.items()}
        self.page = page
        self.broken = False
        self.foreign: tuple[str, ...] = ()

    def ask(self, method: str, path: str) -> Any:
        assert method == "GET"
        if self.broken:
            raise Unreachable("http://here", "gone")
        split = urlsplit(path)
        query = {key: values[0] for key, values in parse_qs(split.query).items()}
        found = re.fullmatch(r"/storage/v1/b(?:/([^/]+)/o)?", split.path)
        assert found
        if not found[1]:
            assert query["project"] == self.project
            own = [name for name in self.buckets if name not in self.foreign]
            return {"items": [{"name": name} for name in own if name.startswith(query.get("prefix", ""))]}
        if (bucket := unquote(found[1])) not in self.buckets:
            raise ApiError(404, "NOT_FOUND", "no bucket")
        return self._listed(self.buckets[bucket], query)

    def _listed(self, objects: dict[str, int], query: dict[str, str]) -> Any:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        items: list[Any] = []
        folders: dict[str, None] = {}
        for name, size in sorted(objects.items()):
            rest = name.removeprefix(prefix)
            if not name.startswith(prefix) or name <= query.get("pageToken", ""):
                continue
            if delimiter and delimiter in rest:
                folders[prefix + rest.partition(delimiter)[0] + delimiter] = None
            else:
                items.append({"name": name, "size": str(size)})
        page = min(self.page, int(query.get("maxResults", 1000)))
        more = {"nextPageToken": items[page - 1]["name"]} if len(items) > page else {}
        return {"items": items[:page], "prefixes": list(folders), **more}


OBJECTS = {"data/2025/train.csv": 10, "data/2025/test.csv": 20, "data/notes": 1, "dates=x/part": 3}


def look(buckets: FakeBuckets, **said: Any) -> list[str]:
    """What was found missing."""
    try:
        seek(cast(Client, buckets), SubmitWords(said))
    except EarlyError as error:
        assert error.message == "nothing was submitted"
        return list(error.details)
    return []


@pytest.mark.parametrize(
    "place",
    [
        "data/2025/train.csv",
        "data/2025",
        "data/2025/",
        "data",
        "data/2025/*.csv",
        "",
        "dates=x",
        "data/n?tes",
        "data/20[0-9]5",
        "data/**/train.csv",
        "*/202?/",
    ],
)
def test_what_is_there_is_found(place: str) -> None:
    assert look(FakeBuckets(mine=OBJECTS), data=(f"gs://mine/{place}",)) == []


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("data/2025/trian.csv", "did you mean gs://mine/data/2025/train.csv?"),
        ("data/2024", "did you mean gs://mine/data/2025/?"),
        ("data/2024/train.csv", "did you mean gs://mine/data/2025/?"),
        ("dta/2025/train.csv", "did you mean gs://mine/data/?"),
        ("data/2025/tra", "did you mean gs://mine/data/2025/train.csv?"),
        ("data/2025/train.csv/x", "did you mean gs://mine/data/2025/train.csv?"),
        ("data/zzzzzz", "there is gs://mine/data/"),
    ],
)
def test_what_is_not_there_is_told_with_the_nearest_that_is(place: str, told: str) -> None:
    assert look(FakeBuckets(mine=OBJECTS), data=(f"gs://mine/{place}",)) == [
        f"there is nothing at gs://mine/{place}; {told}"
    ]


@pytest.mark.parametrize("place", ["[", "data/[", "data/*.parquet", "data/202[6-9]", "data/2025/?"])
def test_a_pattern_that_nothing_fits_is_told(place: str) -> None:
    [told] = look(FakeBuckets(mine=OBJECTS), data=(f"gs://mine/{place}",))
    assert told.startswith(f"there is nothing at gs://mine/{place}; ")


def test_everything_that_is_missing_is_told_at_once() -> None:
    buckets = FakeBuckets(models={}, empty={})
    told = look(buckets, output="gs://model/run", data=("gs://empty/x", "B=gs://elsewhere/y"))
    assert told == [
        "there is no bucket gs://model; did you mean gs://models?",
        "there is nothing at gs://empty/x; the bucket is empty",
        "there is no bucket gs://elsewhere; trainshed storage buckets create gs://elsewhere",
    ]


def test_a_place_of_a_store_nobody_told_us_of_is_left_to_the_program() -> None:
    assert look(FakeBuckets(), output="s3://b/c", data=("s3://b/c", "h=hdfs://b/c")) == []
    told = look(FakeBuckets(b=OBJECTS), data=("s3://b/data/note",))
    assert told == ["there is nothing at s3://b/data/note; did you mean s3://b/data/notes?"]


def test_a_bucket_of_another_project_is_told_before_a_job_finds_out() -> None:
    buckets = FakeBuckets(theirs=OBJECTS)
    buckets.foreign = ("theirs",)
    told = "bucket gs://theirs belongs to another project than p1: its jobs may not use it"
    assert look(buckets, output="gs://theirs/out", data=("gs://theirs/data",)) == [told]


def test_a_folder_is_found_behind_a_thousand_names_that_begin_the_same() -> None:
    buckets = FakeBuckets(page=3, mine={f"run-{at}": 1 for at in range(9)} | {"run/x": 1})
    assert look(buckets, data=("gs://mine/run",)) == []
    assert look(buckets, data=("gs://mine/ru",)) != []


def test_data_becomes_variables() -> None:
    assert places.variables(("gs://b/x", "labels=gs://b/y", "A_1=gs://b/k=v", "s3://b")[:3]) == {
        "TRAINSHED_DATA": "gs://b/x",
        "TRAINSHED_DATA_LABELS": "gs://b/y",
        "TRAINSHED_DATA_A_1": "gs://b/k=v",
    }
    assert places.variables(("gs://b/k=v/x",)) == {"TRAINSHED_DATA": "gs://b/k=v/x"}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (("gs://b/x", "gs://b/y"), "TRAINSHED_DATA is taken; write NAME=gs://b/y"),
        (("a=gs://b/x", "A=gs://b/y"), "TRAINSHED_DATA_A is taken; give it another name than A"),
        (("./folder",), "is no place in a bucket"),
        (("a-b=gs://b/x",), "a-b cannot be part of a variable's name"),
        (("=gs://b/x",), "cannot be part of a variable's name"),
        (("gs://",), "is no place in a bucket"),
        (("ä=gs://b/x",), "cannot be part"),
    ],
)
def test_data_that_is_no_place_or_has_no_name_is_refused(data: tuple[str, ...], told: str) -> None:
    with pytest.raises(EarlyError, match=re.escape(told)) as error:
        places.variables(data)
    assert error.value.code == 2


@pytest.mark.parametrize("option", ["output", "job_dir"])
@pytest.mark.parametrize("text", ["out", "/tmp/out", "gs:/b/c", "gs://", "://b"])
def test_an_output_that_is_no_place_is_refused_by_its_options_name(option: str, text: str) -> None:
    [(check, given)] = places.checks(SubmitWords({option: text}))
    with pytest.raises(EarlyError, match=f"^--{option.replace('_', '-')} {re.escape(text)} is no place"):
        check(given)


@pytest.mark.parametrize(
    "text", ["gs://b/a//b", "gs://b/a/../c", "s3://b/.", "gs://b/a\tb", "gs://b/" + "x" * 1025]
)
def test_an_output_that_no_path_can_be_is_refused(text: str) -> None:
    [(check, given)] = places.checks(SubmitWords({"output": text}))
    with pytest.raises(EarlyError, match=r"^--output .*(part between|control|more than 1024 bytes)") as error:
        check(given)
    assert error.value.code == 2


def pools(body: dict[str, Any]) -> Any:
    return body["jobSpec"]["workerPoolSpecs"]


def test_places_become_part_of_every_pool() -> None:
    container = {"imageUri": "i", "args": ["-v"], "env": [{"name": "TRAINSHED_DATA", "value": "mine"}]}
    body = {"jobSpec": {"workerPoolSpecs": [{"containerSpec": container}, {}, {"containerSpec": container}]}}
    said = {"job_dir": "gs://b/dir", "data": ("gs://b/x", "n=gs://b/y")}
    made = places.placed(body, SubmitWords(said))
    assert made["jobSpec"]["baseOutputDirectory"] == {"outputUriPrefix": "gs://b/dir"}
    expected = {
        "imageUri": "i",
        "args": ["-v", "--job-dir", "gs://b/dir"],
        "env": [
            {"name": "TRAINSHED_DATA_N", "value": "gs://b/y"},
            {"name": "TRAINSHED_DATA", "value": "mine"},
        ],
    }
    assert pools(made) == [{"containerSpec": expected}, {}, {"containerSpec": expected}]
    assert container["args"] == ["-v"]


def test_an_output_wins_over_the_job_dir_and_over_the_file() -> None:
    body = {
        "jobSpec": {
            "worker_pool_specs": [{"python_package_spec": {"python_module": "m"}}],
            "base_output_directory": {"output_uri_prefix": "gs://b/file"},
        }
    }
    made = places.placed(body, SubmitWords({"output": "gs://b/out", "job_dir": "gs://b/dir"}))
    assert made["jobSpec"] == {
        "worker_pool_specs": [
            {"python_package_spec": {"python_module": "m", "args": ["--job-dir", "gs://b/dir"]}}
        ],
        "base_output_directory": {"outputUriPrefix": "gs://b/out"},
    }


def a_job(place: str) -> dict[str, Any]:
    return {"jobSpec": {"baseOutputDirectory": {"outputUriPrefix": place}}}


def told(buckets: FakeBuckets, place: str) -> str:
    return results(cast(Client, buckets), a_job(place))


def test_results_are_counted_over_all_pages() -> None:
    buckets = FakeBuckets(page=2, mine={f"run/{at}": 512 for at in range(5)} | {"run-2/x": 1, "run": 7})
    assert told(buckets, "gs://mine/run") == "gs://mine/run (5 objects, 2.5 KiB)"
    assert told(buckets, "gs://mine/run-2/") == "gs://mine/run-2/ (1 object, 1 B)"
    assert told(buckets, "gs://mine/none") == "gs://mine/none (nothing is there)"
    many = FakeBuckets(page=1, mine={f"run/{at:03}": 1 for at in range(50)})
    assert told(many, "gs://mine/run") == "gs://mine/run (more than 10 objects, 10 B)"


def test_results_that_cannot_be_looked_at_are_told_by_their_place() -> None:
    buckets = FakeBuckets(mine={})
    missing = "(there is no such bucket: trainshed storage buckets create gs://gone)"
    assert told(buckets, "gs://gone/run") == f"gs://gone/run {missing}"
    assert told(buckets, "s3://gone/run") == "s3://gone/run"
    assert told(buckets, "/mnt/out") == "/mnt/out"
    buckets.broken = True
    assert told(buckets, "gs://mine/run") == "gs://mine/run"
