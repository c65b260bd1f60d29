"""Cloud Logging's entries:list over what jobs print: the filter language, pages, orders, and any bytes."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.gcloud_model import message, task
from tests.live import PROJECT, Answer, LiveServer, pool, python

Unique = Callable[[str], str]


def ident(name: str) -> str:
    return name.rsplit("/", 1)[1]


def ask(server: LiveServer, filter: str, **more: object) -> Answer:
    body = {"resourceNames": [f"projects/{PROJECT}"], "filter": filter, **more}
    return server.request("POST", "/v2/entries:list", body)


@pytest.fixture(scope="module")
def talker(server: LiveServer) -> str:
    """A job of two replicas that print on both streams; the id."""
    source = (
        "import os, sys\n"
        "for i in range(20):\n"
        "    print('out', os.environ['RANK'], i)\n"
        "    print('err', os.environ['RANK'], i, file=sys.stderr)\n"
    )
    name = server.submit(pools=[pool(python(source)), pool(python(source))], name="talker")
    assert server.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    return ident(name)


def test_an_entry_has_all_that_readers_look_at(server: LiveServer, talker: str) -> None:
    entries = server.entries(f'resource.labels.job_id="{talker}" AND severity=ERROR')
    assert len(entries) == 40
    for entry in entries:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", entry["timestamp"])
        assert entry["insertId"]
        assert entry["resource"]["type"] == "ml_job"
        assert entry["resource"]["labels"]["job_id"] == talker
        assert entry["resource"]["labels"]["task_name"] in ("workerpool0-0", "workerpool1-0")
        assert entry["logName"].startswith(f"projects/{PROJECT}/logs/")
        assert message(entry).startswith("err ")


@pytest.mark.parametrize(
    ("terms", "count"),
    [
        ('resource.labels.task_name="workerpool0-0"', 40),
        ('resource.labels.task_name!="service"', 80),
        ('resource.labels.task_name="workerpool0-0" AND severity=INFO', 20),
        ('resource.labels.task_name="workerpool0-0" severity=INFO', 20),
        ("severity>=ERROR", 40),
        ('severity>=ERROR AND -resource.labels.task_name="workerpool0-0"', 20),
        ('jsonPayload.message="out 0 7"', 1),
        ('jsonPayload.message:"out 0 "', 20),
        (r'jsonPayload.message=~"^out [01] 1\d$"', 20),
        ('(jsonPayload.message="out 0 7" OR jsonPayload.message="err 1 3")', 2),
        ('jsonPayload.message=("out 0 7" OR "err 1 3")', 2),
        ('labels."trainshed/stream"="stderr"', 40),
        ('labels."ml.googleapis.com/task_name"="workerpool1-0"', 40),
        ('NOT (severity=ERROR OR resource.labels.task_name="service")', 40),
        ('timestamp<"2001-01-01T00:00:00Z"', 0),
        ('timestamp>"2001-01-01T00:00:00Z" AND resource.labels.task_name!="service"', 80),
        ('resource.type="gce_instance"', 0),
        ('"out 1 19"', 1),
    ],
)
def test_the_filter_language_finds(server: LiveServer, talker: str, terms: str, count: int) -> None:
    found = server.entries(f'resource.labels.job_id="{talker}" AND {terms}')
    assert len(found) == count, [message(e) for e in found][:5]


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("order", ["timestamp asc", "timestamp desc"])
def test_pages_give_every_entry_once_in_either_order(
    server: LiveServer, talker: str, order: str, size: int
) -> None:
    whole = server.entries(f'resource.labels.job_id="{talker}"', orderBy="timestamp asc", pageSize=1000)
    paged = server.entries(f'resource.labels.job_id="{talker}"', orderBy=order, pageSize=size)
    assert len(whole) > 80, "80 lines, and the events of the service"
    assert paged == (whole if order.endswith("asc") else whole[::-1])


def test_entries_sort_as_text_by_time_and_id(server: LiveServer, talker: str) -> None:
    places = [(e["timestamp"], e["insertId"]) for e in server.entries(f'resource.labels.job_id="{talker}"')]
    assert places == sorted(places)
    assert len(set(places)) == len(places)


def test_every_entry_can_be_a_lower_bound(server: LiveServer, talker: str) -> None:
    """`((timestamp="T" AND insertId>"I") OR timestamp>"T")` gives exactly what follows, lines and events."""
    whole = server.entries(f'resource.labels.job_id="{talker}"')
    for number, entry in enumerate(whole):
        at, insert_id = entry["timestamp"], entry["insertId"]
        bound = f'((timestamp="{at}" AND insertId>"{insert_id}") OR timestamp>"{at}")'
        rest = server.entries(f'resource.labels.job_id="{talker}" AND {bound}')
        assert rest == whole[number + 1 :], number


def test_asked_twice_the_answer_is_the_same(server: LiveServer, talker: str) -> None:
    question = f'resource.labels.job_id="{talker}"'
    assert server.entries(question) == server.entries(question)


def test_a_search_over_the_project_finds_lines_of_several_jobs(server: LiveServer, unique: Unique) -> None:
    word = unique("needle")
    for _ in range(3):
        server.wait(server.submit(python(f"print('{word}')")))
    assert len(server.entries(f'jsonPayload.message="{word}"')) == 3
    assert len(server.entries(f'jsonPayload.message="{word}"', orderBy="timestamp desc", pageSize=1)) == 3


def test_the_history_of_a_job_is_among_its_entries(server: LiveServer, talker: str) -> None:
    events = server.entries(f'resource.labels.job_id="{talker}" AND resource.labels.task_name="service"')
    reasons = [e["jsonPayload"]["reason"] for e in events]
    assert reasons[0] == "SUBMITTED"
    assert reasons[-1] == "SUCCEEDED"
    assert all(message(e) for e in events)


def test_any_bytes_come_out_as_text(server: LiveServer, unique: Unique) -> None:
    source = (
        "import os\n"
        r"os.write(1, b'nul\x00nul\n')"
        "\n"
        r"os.write(1, b'\x1b[31mred\x1b[0m\n')"
        "\n"
        r"os.write(1, b'bad \xff\xfe bytes\n')"
        "\n"
        r"os.write(1, 'caf\u00e9 \U0001f600\n'.encode())"
        "\n"
        r"os.write(1, b'\n')"
        "\n"
        r"os.write(1, b'cr\rcr\r\n')"
        "\n"
        r"os.write(1, b'no newline at the end')"
        "\n"
    )
    name = server.submit(python(source), name=unique("bytes"))
    assert server.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    entries = server.entries(f'resource.labels.job_id="{ident(name)}" AND severity=INFO')
    texts = [message(e) for e in entries if task(e) != "service"]
    assert len(texts) == 7
    assert texts[0].startswith("nul")
    assert texts[0].endswith("nul")
    assert texts[1] == "\x1b[31mred\x1b[0m"
    assert texts[2].startswith("bad ")
    assert texts[2].endswith(" bytes")
    assert texts[3] == "café \U0001f600"
    assert texts[4] == ""
    assert texts[5].startswith("cr\rcr")
    assert texts[6] == "no newline at the end"


def test_a_line_without_end_comes_in_pieces_that_make_the_whole(server: LiveServer, unique: Unique) -> None:
    size = 3_000_000
    name = server.submit(
        python(f"import sys; sys.stdout.write('x' * {size}); print(); print('next')"), name=unique("long")
    )
    assert server.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    texts = [line["text"] for line in server.lines(name)]
    assert texts[-1] == "next"
    assert sum(map(len, texts[:-1])) == size
    assert max(map(len, texts)) <= 256 * 1024


def test_the_attempts_of_a_job_are_kept_apart(server: LiveServer, unique: Unique) -> None:
    """A killed replica restarts within its attempt; with restartJobOnWorkerRestart each is a new attempt."""
    source = (
        "import os, pathlib, signal\n"
        "marks = pathlib.Path(os.environ['MARKS']); marks.mkdir(exist_ok=True)\n"
        "n = len(list(marks.iterdir())); (marks / str(n)).touch()\n"
        "print('try', n, flush=True)\n"
        "if n < 2: os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    marks = str(server.base / unique("marks"))
    name = server.submit(
        pools=[pool(python(source), env={"MARKS": marks})],
        name=unique("attempts"),
        spec={
            "scheduling": {"restartJobOnWorkerRestart": True, "restartRule": {"backoff": "0.05s"}},
        },
    )
    assert server.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    lines = [(line["attempt"], line["text"]) for line in server.lines(name)]
    assert [text for _, text in lines] == ["try 0", "try 1", "try 2"]
    attempts = [attempt for attempt, _ in lines]
    assert attempts == sorted(set(attempts)), "each try has an attempt of its own"
    for attempt, text in lines:
        assert [line["text"] for line in server.lines(name, attempt=attempt)] == [text]
        entries = server.entries(
            f'resource.labels.job_id="{ident(name)}" AND labels."trainshed/attempt"="{attempt}" '
            'AND resource.labels.task_name="workerpool0-0"'
        )
        assert [message(e) for e in entries] == [text]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "resourceNames"),
        ({"resourceNames": []}, "resourceNames"),
        ({"resourceNames": ["folders/7"]}, "resourceNames"),
        ({"resourceNames": "projects/p1"}, "resourceNames"),
        ({"resourceNames": [f"projects/{PROJECT}"], "filter": 7}, "filter"),
        ({"resourceNames": [f"projects/{PROJECT}"], "filter": "("}, "filter"),
        ({"resourceNames": [f"projects/{PROJECT}"], "filter": 'timestamp>"soon"'}, "filter"),
        ({"resourceNames": [f"projects/{PROJECT}"], "filter": "severity>LOUD"}, "filter"),
        ({"resourceNames": [f"projects/{PROJECT}"], "filter": "(" * 500 + "a" + ")" * 500}, "filter"),
        ({"resourceNames": [f"projects/{PROJECT}"], "filter": 'jsonPayload.message=~"(a)\\\\1"'}, "filter"),
        ({"resourceNames": [f"projects/{PROJECT}"], "filter": 'jsonPayload.message=~"("'}, "filter"),
        ({"resourceNames": [f"projects/{PROJECT}"], "filter": "a" * 30_000}, "filter"),
        ({"resourceNames": [f"projects/{PROJECT}"], "orderBy": "severity"}, "orderBy"),
        ({"resourceNames": [f"projects/{PROJECT}"], "pageSize": -1}, "page_size"),
        ({"resourceNames": [f"projects/{PROJECT}"], "pageSize": "many"}, "page_size"),
        ({"resourceNames": [f"projects/{PROJECT}"], "pageSize": []}, "page_size"),
        ({"resourceNames": [f"projects/{PROJECT}"], "pageSize": {"a": 1}}, "page_size"),
        ({"resourceNames": [f"projects/{PROJECT}"], "pageToken": "nonsense"}, "page_token"),
        ({"resourceNames": [f"projects/{PROJECT}"], "pageToken": 7}, "pageToken"),
        ({"resourceNames": [f"projects/{PROJECT}"], "colour": "red"}, "colour"),
    ],
    ids=str,
)
def test_a_question_that_cannot_be_understood_is_a_400(
    server: LiveServer, body: dict[str, Any], field: str
) -> None:
    answer = server.request("POST", "/v2/entries:list", body)
    assert answer.status == 400, answer.body
    assert answer.error["status"] == "INVALID_ARGUMENT"
    wanted = field.replace("_", "").lower()
    assert wanted in [told.replace("_", "").lower().partition("[")[0] for told in answer.violations]


def test_a_token_of_another_filter_or_order_is_refused(server: LiveServer, talker: str) -> None:
    mine = f'resource.labels.job_id="{talker}"'
    token = ask(server, mine, pageSize=1).json["nextPageToken"]
    assert ask(server, mine, pageSize=5, pageToken=token).status == 200
    assert ask(server, f"{mine} AND severity=ERROR", pageToken=token).status == 400
    assert ask(server, mine, orderBy="timestamp desc", pageToken=token).status == 400
    assert ask(server, mine, pageToken=token[:-2]).status == 400


def test_another_project_s_lines_are_not_shown(server: LiveServer, talker: str) -> None:
    answer = server.request(
        "POST",
        "/v2/entries:list",
        {"resourceNames": ["projects/other"], "filter": f'resource.labels.job_id="{talker}"'},
    )
    assert (answer.status, answer.json) == (200, {})


def test_lines_printed_before_a_kill_9_are_there_after_it(mortal: LiveServer, unique: Unique) -> None:
    source = "import time\nfor i in range(40): print(i, flush=True); time.sleep(0.05)"
    name = mortal.submit(python(source), name=unique("survivor"))
    mortal.wait_for(name, ("JOB_STATE_RUNNING",))
    mortal.kill()
    mortal.start()
    assert mortal.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    assert [line["text"] for line in mortal.lines(name)] == [str(i) for i in range(40)]
    entries = mortal.entries(
        f'resource.labels.job_id="{ident(name)}" AND resource.labels.task_name="workerpool0-0"'
    )
    assert [message(e) for e in entries] == [str(i) for i in range(40)]


def test_a_costly_filter_is_answered_and_keeps_nobody_waiting(server: LiveServer) -> None:
    """An engine that goes back takes minutes for these, and the server answers nobody meanwhile."""
    name = server.submit(
        pools=[pool(python("print('a' * 30_000 + 'b')\nfor _ in range(300): print('loss ' * 999)"))]
    )
    assert server.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    job = f'resource.labels.job_id="{ident(name)}" AND '
    assert len(server.entries(f'{job}jsonPayload.message=~"^a*a*b"')) == 1
    assert not server.entries(f'{job}jsonPayload.message=~".*loss.*nan"')
    assert server.request("GET", "/healthz").status == 200


def test_a_filter_of_stream_logs_that_is_mostly_spaces_is_answered(server: LiveServer) -> None:
    agent = {"user-agent": "gcloud/540 command/gcloud.ai.custom-jobs.stream-logs"}
    body = {"resourceNames": [f"projects/{PROJECT}"], "filter": " " * 500_000 + "x"}
    answer = server.request("POST", "/v2/entries:list", body, headers=agent)
    assert answer.status == 400 and "characters long" in answer.violations["filter"]
