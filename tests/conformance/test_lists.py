"""Lists by plain HTTP: pages and their tokens, filters, orders, masks, and how enums are told."""

from collections.abc import Callable
from urllib.parse import quote

import pytest

from tests.conformance.refusal import refused
from tests.live import JOBS, LiveServer, pool

Unique = Callable[[str], str]


def test_pages_follow_each_other_without_loss_or_repetition(server: LiveServer, unique: Unique) -> None:
    name = unique("page")
    wanted = [server.submit(["true"], name=name) for _ in range(7)]
    where = f'display_name="{name}"'
    seen: list[str] = []
    sizes: list[int] = []
    token = ""
    while True:
        page = server.get(JOBS, filter=where, pageSize=3, **({"pageToken": token} if token else {}))
        sizes.append(len(page["customJobs"]))
        seen += [job["name"] for job in page["customJobs"]]
        token = page.get("nextPageToken", "")
        if not token:
            break
    assert sizes == [3, 3, 1]
    assert seen == wanted[::-1], "newest first"
    oldest = server.get(JOBS, filter=where, orderBy="create_time")
    assert [job["name"] for job in oldest["customJobs"]] == wanted


def test_a_token_is_good_only_for_the_list_it_came_from(server: LiveServer, unique: Unique) -> None:
    name = unique("token")
    for _ in range(3):
        server.submit(["true"], name=name)
    where = quote(f'display_name="{name}"')
    token = server.get(JOBS, filter=f'display_name="{name}"', pageSize=1)["nextPageToken"]
    mangled = ("A" if token[5] != "A" else "B").join((token[:5], token[6:]))
    for path in (
        f"{JOBS}?filter={where}&pageSize=1&pageToken={mangled}",
        f"{JOBS}?filter={where}&pageSize=1&pageToken={token[:-4]}",
        f"{JOBS}?filter={where}&pageSize=1&pageToken=nonsense",
        f"{JOBS}?filter={where}&pageSize=1&pageToken=%00%ff",
        f"{JOBS}?filter={where}&pageSize=1&pageToken={'A' * 10_000}",
        f"{JOBS}?pageSize=1&pageToken={token}",
        f"{JOBS}?filter={quote('state=RUNNING')}&pageSize=1&pageToken={token}",
        f"{JOBS}?filter={where}&pageSize=1&orderBy=create_time&pageToken={token}",
        f"/v1/projects/other/locations/us-central1/customJobs?filter={where}&pageSize=1&pageToken={token}",
    ):
        answer = refused(server.request("GET", path))
        assert list(answer.violations) == ["page_token"], answer.violations
    assert server.get(JOBS, filter=f'display_name="{name}"', pageSize=2, pageToken=token)["customJobs"]


@pytest.mark.parametrize(
    "query",
    [
        "pageSize=-1",
        "pageSize=many",
        "pageSize=1.5",
        "filter=colour%3Dred",
        "filter=state%3DHAPPY",
        "filter=((((",
        "filter=state%3D",
        "filter=" + "(" * 2000,
        "filter=" + quote(" AND ".join(['state="RUNNING"'] * 300)),
        "filter=create_time%3Eyesterday",
        "filter=%22",
        "filter=%00",
        "orderBy=colour",
        "readMask=colour",
        "readMask=jobSpec.colour",
        "readMask=a%20b",
    ],
    ids=lambda query: query[:30],
)
def test_a_question_that_cannot_be_understood_is_a_400(server: LiveServer, query: str) -> None:
    answer = refused(server.request("GET", f"{JOBS}?{query}"))
    assert answer.violations
    assert set(answer.violations) <= {"page_size", "filter", "order_by", "read_mask"}, answer.violations


def test_a_page_is_never_larger_than_the_most(server: LiveServer) -> None:
    assert server.request("GET", f"{JOBS}?pageSize=1000000").status == 200


def test_a_read_mask_leaves_only_what_it_names(server: LiveServer, unique: Unique) -> None:
    name = unique("mask")
    server.submit(["true"], name=name, labels={"a": "b"})
    page = server.get(JOBS, filter=f'display_name="{name}"', readMask="name,displayName,labels,endTime")
    assert set(page["customJobs"][0]) <= {"name", "displayName", "labels", "endTime"}
    assert {"name", "displayName", "labels"} <= set(page["customJobs"][0])
    page = server.get(JOBS, filter=f'display_name="{name}"', readMask="job_spec.scheduling")
    assert list(page["customJobs"][0]) == ["jobSpec"]
    assert list(page["customJobs"][0]["jobSpec"]) == ["scheduling"]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ('display_name="{n}-a"', "a"),
        ('displayName="{n}-a"', "a"),
        ('display_name:"{n}-*"', "abc"),
        ('display_name="{n}-*" AND NOT display_name="{n}-a"', "bc"),
        ('display_name="{n}-a" OR display_name="{n}-c"', "ac"),
        ('display_name:"{n}-*" AND labels.kind="x"', "ab"),
        ('display_name:"{n}-*" AND labels.only:*', "b"),
        ('display_name:"{n}-*" AND NOT labels.kind="x"', "c"),
        ('display_name:"{n}-*" AND state="JOB_STATE_SUCCEEDED"', "abc"),
        ('display_name:"{n}-*" AND state!="JOB_STATE_SUCCEEDED"', ""),
        ('display_name:"{n}-*" AND create_time>="2020-01-01T00:00:00Z"', "abc"),
        ('display_name:"{n}-*" AND create_time<"2020-01-01T00:00:00Z"', ""),
        ('display_name:"{n}-*" AND (labels.only="y" OR labels.kind="z")', "bc"),
    ],
)
def test_filters_find_what_they_say(server: LiveServer, three_jobs: str, where: str, found: str) -> None:
    page = server.get(JOBS, filter=where.format(n=three_jobs))
    names = sorted(job["displayName"].removeprefix(f"{three_jobs}-") for job in page.get("customJobs", []))
    assert "".join(names) == found


@pytest.fixture(scope="module")
def three_jobs(server: LiveServer) -> str:
    stem = "filtered"
    labels = {"a": {"kind": "x"}, "b": {"kind": "x", "only": "y"}, "c": {"kind": "z"}}
    for name in [server.submit(["true"], name=f"{stem}-{k}", labels=v) for k, v in labels.items()]:
        server.wait(name)
    return stem


def test_enums_come_as_numbers_where_asked_for(server: LiveServer, unique: Unique) -> None:
    one = pool(["true"])
    one["machineSpec"] |= {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}
    name = server.submit(pools=[one], name=unique("enum"), spec={"scheduling": {"strategy": "SPOT"}})
    server.wait(name)
    told = server.request("GET", f"/v1/{name}?%24alt=json%3Benum-encoding%3Dint").json
    assert told["state"] == 4
    assert told["jobSpec"]["scheduling"]["strategy"] == 4
    assert told["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]["acceleratorType"] == 5
    assert server.job(name)["state"] == "JOB_STATE_SUCCEEDED"


def test_what_was_answered_can_be_sent_again(server: LiveServer, unique: Unique) -> None:
    name = server.submit(["true"], name=unique("again"), labels={"a": "b"})
    told = server.wait(name)
    again = server.request("POST", JOBS, told)
    assert again.status == 200, again.body
    assert again.json["name"] != name
    assert again.json["jobSpec"] == told["jobSpec"]
