"""People are told when jobs end: real servers, real receivers; some of them slow, broken or killed."""

import json
import random
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import Sentence
from tests.live import PROJECT, LiveServer, by_id, pool, python, until
from tests.receivers import HttpReceiver, mail_receiver
from trainshed.core.notice_message import signature

CHANNELS = f"/v1/projects/{PROJECT}/noticeChannels"
SECRET = "a secret of twenty characters"


@pytest.fixture(scope="module")
def live() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "16", "--memory", "64GiB") as server:
        yield server
        assert "Traceback" not in server.said(), server.said()


@pytest.fixture(autouse=True)
def no_channels(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "live" in request.fixturenames:
        server = request.getfixturevalue("live")
        for channel in server.get("/v1/projects/-/noticeChannels")["noticeChannels"]:
            assert server.request("DELETE", f"/v1/{channel['name']}").status == 200


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with HttpReceiver() as receiver:
        yield receiver


def add(server: LiveServer, name: str, parent: str = CHANNELS, **body: object) -> dict[str, object]:
    return server.post(parent, body, channelId=name)


def channel(server: LiveServer, name: str) -> dict[str, object]:
    return server.get(f"{CHANNELS}/{name}")


def told_jobs(receiver: HttpReceiver) -> list[str]:
    return [item.json["data"]["job"] for item in receiver.taken]


def test_a_failed_job_is_told_with_reason_verdict_link_and_a_signature_that_verifies(
    live: LiveServer, receiver: HttpReceiver, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    flags = ("--webhook", receiver.url, "--secret-from-file", str(tmp_path / "secret"))
    done = live.cli("notify", "add", "--name", "ops", *flags)
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout
    name = live.submit(python("import no_such_module"), name="digits", labels={"team": "vision"})
    live.wait(name)
    [delivered] = until(lambda: receiver.requests)
    body, data = delivered.json, delivered.json["data"]
    job = by_id(name)
    assert body["type"] == delivered.headers["Trainshed-Event"] == "job.failed"
    assert data["message"].startswith(f"Job digits ({job}) failed after ")
    assert "workerpool0-0 exited with code 1: ModuleNotFoundError: No module named" in data["message"]
    assert data["message"].endswith(f"— trainshed logs {job}")
    assert (data["state"], data["reason"]) == ("JOB_STATE_FAILED", "PROGRAM_FAILED")
    assert data["verdict"].startswith("IMPORT_ERROR: ") and data["labels"] == {"team": "vision"}
    assert data["console"] == f"{live.url}/console/jobs/p1/us-central1/{job}"
    assert live.request("GET", data["console"].removeprefix(live.url)).status == 200
    stamp = delivered.headers["Webhook-Timestamp"]
    expected = signature(SECRET, body["id"], stamp, delivered.body)
    assert delivered.headers["Webhook-Signature"] == expected
    assert abs(time.time() - int(stamp)) < 600


def test_slack_gets_one_readable_sentence(live: LiveServer, receiver: HttpReceiver) -> None:
    add(live, "slack", slack=receiver.url, on=["ended"])
    name = live.submit(python("pass"), name="digits")
    live.wait(name)
    [delivered] = until(lambda: receiver.requests)
    text, job = delivered.json["text"], by_id(name)
    assert text.startswith(f"Job digits ({job}) succeeded after ")
    assert text.endswith(f"\n{live.url}/console/jobs/p1/us-central1/{job}")


def test_only_the_kinds_labels_and_projects_of_a_channel_are_told(
    live: LiveServer, receiver: HttpReceiver
) -> None:
    add(live, "a", webhook=receiver.url, on=["failed"], labels={"team": "vision"})
    add(live, "b", "/v1/projects/other/noticeChannels", webhook=receiver.url)
    live.wait(live.submit(python("pass"), labels={"team": "vision"}))
    live.wait(live.submit(python("raise SystemExit(3)"), labels={"team": "sound"}))
    wanted = live.submit(python("raise SystemExit(3)"), labels={"team": "vision"})
    live.wait(wanted)
    until(lambda: receiver.requests)
    add(live, "all", "/v1/projects/-/noticeChannels", webhook=receiver.url, on=["ended"])
    last = live.submit(python("pass"))
    live.wait(last)
    until(lambda: len(receiver.requests) >= 2)
    assert told_jobs(receiver) == [by_id(wanted), by_id(last)]


@pytest.mark.slow
def test_a_hang_is_told(live: LiveServer, receiver: HttpReceiver) -> None:
    add(live, "a", webhook=receiver.url, on=["hung"])
    scheduling = {"gracePeriod": "1s", "hangWatch": {"after": "4s"}}
    name = live.submit(python("import time; time.sleep(600)"), spec={"scheduling": scheduling})
    [delivered] = until(lambda: receiver.requests)
    assert delivered.json["type"] == "job.hung"
    assert "it seems to hang: no output" in delivered.json["data"]["message"]
    live.cancel(name)
    live.wait(name)


def test_commands_add_list_test_and_remove_a_channel_and_never_show_its_address(
    live: LiveServer, receiver: HttpReceiver
) -> None:
    added = live.cli("notify", "add", "--name", "ops", "--webhook", receiver.url, "--json")
    made = json.loads(added.stdout)
    assert made["secret"].startswith("whsec_")
    assert "secret" not in json.loads(live.cli("notify", "ls", "--json").stdout)[0]
    again = live.cli("notify", "add", "--name", "ops", "--webhook", receiver.url)
    assert again.returncode == 1 and "There is a channel ops" in again.stderr
    done = live.cli("notify", "test", "ops")
    assert (done.returncode, done.stdout[:14]) == (0, "taken: 200 OK:"), done.stderr
    assert len(done.stdout) < 250
    assert receiver.requests[0].json["type"] == "test"
    receiver.answer = lambda _: 418
    done = live.cli("notify", "test", "ops")
    assert done.returncode == 1 and "not taken: 418" in done.stderr
    listed = live.cli("notify", "ls").stdout
    assert f"http://127.0.0.1:{receiver.port}/…" in listed and "secret-path" not in listed
    database = b"".join(path.read_bytes() for path in live.home.glob("trainshed.db*"))
    assert b"secret-path" not in database and made["secret"].encode() not in database
    assert live.cli("notify", "rm", "ops", "--json").returncode == 0
    gone = live.cli("notify", "test", "ops")
    assert gone.returncode == 1 and "there is no channel 'ops'" in gone.stderr
    assert not list((live.home / "notices").glob("*"))
    assert "nobody is told" in live.cli("notify", "ls").stderr


def test_what_is_wrong_with_a_channel_is_told_all_at_once(live: LiveServer) -> None:
    body = {"webhook": "file:///etc/passwd", "on": ["sometimes"], "labels": {"UP": "x"}, "secret": "short"}
    answer = live.request("POST", f"{CHANNELS}?channelId=Not%20good", body)
    assert answer.status == 400
    assert set(answer.violations) == {"channel_id", "webhook", "on[0]", "labels.UP", "secret"}
    for wrong in (
        {},
        {"mail": "a@b.example"},
        {"mail": "a@b", "slack": "https://x"},
        {"slack": "https://u:p@x"},
    ):
        answer = live.request("POST", f"{CHANNELS}?channelId=ops", wrong)
        assert answer.status == 400, wrong
    assert live.request("GET", CHANNELS, token=None).status in (401, 403)


def test_a_redirect_is_not_followed(live: LiveServer, receiver: HttpReceiver) -> None:
    with HttpReceiver(answer=lambda _: 307, location=receiver.url) as first:
        add(live, "a", webhook=first.url)
        assert live.post(f"{CHANNELS}/a:test")["answer"].startswith("307")
        assert len(first.requests) == 1
    assert receiver.requests == []


@pytest.mark.fault(
    "The server",
    "A receiver of notices is away",
    "Its notices wait, and are sent again for a day. No job and no other receiver waits.",
    sentence="…Connection refused…",
)
def test_a_receiver_that_fails_twice_and_is_killed_in_between_is_told_in_the_end(
    live: LiveServer, receiver: HttpReceiver, sentence: Sentence
) -> None:
    receiver.answer = lambda number: 500 if number < 2 else 200
    add(live, "a", webhook=receiver.url)
    name = live.submit(python("pass"))
    live.wait(name)
    until(lambda: receiver.requests)
    receiver.close()
    until(lambda: "refused" in str(channel(live, "a").get("lastError", "")))
    assert channel(live, "a")["waiting"] == 1
    assert sentence.is_in(live.cli("notify", "ls").stdout)
    receiver.again()
    until(lambda: receiver.taken)
    assert told_jobs(receiver) == [by_id(name)]
    assert len({item.headers["Webhook-Id"] for item in receiver.requests}) == 1
    until(lambda: channel(live, "a")["waiting"] == 0 and channel(live, "a").get("lastSuccessTime"))


def test_a_receiver_that_never_answers_delays_no_job_and_no_other_channel(
    live: LiveServer, receiver: HttpReceiver
) -> None:
    def seconds_for_jobs() -> float:
        begun = time.monotonic()
        names = [live.submit(python("pass")) for _ in range(6)]
        for name in names:
            live.wait(name)
        return time.monotonic() - begun

    seconds_for_jobs()
    before = min(seconds_for_jobs() for _ in range(3))
    with HttpReceiver(answer=lambda _: None) as dead:
        for number in range(40):
            add(live, f"dead-{number}", webhook=dead.url)
        add(live, "a", webhook=receiver.url)
        during = min(seconds_for_jobs() for _ in range(3))
        until(lambda: len(receiver.taken) == 18)
        assert dead.requests
        assert during < 8 * before, (before, during)
        assert live.stop() != -signal.SIGKILL  # it waits for no receiver
        live.start()


def test_a_server_that_is_killed_before_it_marks_a_delivery_repeats_it_with_the_same_id(
    live: LiveServer, receiver: HttpReceiver
) -> None:
    kills = [live.kill]

    def answer(_: int) -> int:
        if kills:
            kills.pop()()
        return 200

    receiver.answer = answer
    add(live, "a", webhook=receiver.url)
    name = live.submit(python("pass"))
    until(lambda: receiver.requests)
    live.start()
    until(lambda: len(receiver.requests) == 2)
    assert told_jobs(receiver) == [by_id(name)] * 2
    assert len({item.headers["Webhook-Id"] for item in receiver.requests}) == 1
    until(lambda: channel(live, "a")["waiting"] == 0)
    assert live.state(name) == "JOB_STATE_SUCCEEDED"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.fault(
    "The server",
    "The server is killed while it tells people of jobs",
    "Each end of a job is told at least once. What is told twice has the same id.",
)
def test_kill_9_of_the_server_at_any_moment_leaves_no_ended_job_untold(
    live: LiveServer, receiver: HttpReceiver
) -> None:
    pick = random.Random(20261118)
    receiver.answer = lambda number: 503 if number % 7 == 3 else 200
    add(live, "a", webhook=receiver.url, on=["ended"])
    names: list[str] = []
    for _ in range(12):
        codes = [pick.choice((0, 0, 3)) for _ in range(3)]
        names += [live.submit(python(f"raise SystemExit({code})")) for code in codes]
        time.sleep(pick.uniform(0, 0.9))
        live.kill()
        if pick.random() < 0.3:
            receiver.close()
            receiver.again()
        live.start()
    for name in names:
        live.wait(name)
    until(lambda: {by_id(name) for name in names} <= set(told_jobs(receiver)), patience=120)
    states = {by_id(name): live.state(name) for name in names}
    for item in receiver.taken:
        assert item.json["data"]["state"] == states[item.json["data"]["job"]]
    by_job = {item.json["data"]["job"]: item.headers["Webhook-Id"] for item in receiver.taken}
    assert len({item.headers["Webhook-Id"] for item in receiver.taken}) == len(by_job) == len(names)


def test_mails_come_from_the_address_of_the_settings_with_the_sentence_as_subject(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("p4ssword\n")
    with mail_receiver(refused="nobody@example.com") as mails:
        flags = ("--smtp", f"smtp://ada@127.0.0.1:{mails.port}", "--smtp-from", "shed@example.com")
        more = ("--smtp-password-file", str(tmp_path / "password"), "--public-url", "https://shed.example/")
        with LiveServer(*flags, *more) as live:
            add(live, "me", mail="ada@example.com", on=["failed"])
            add(live, "nobody", mail="nobody@example.com")
            name = live.submit(python("raise SystemExit(3)"), name="größe\N{SNOWMAN}")
            live.wait(name)
            [(recipient, mail)] = until(lambda: list(mails.mails))
            assert (recipient, mail["From"], mail["To"]) == (
                "ada@example.com",
                "shed@example.com",
                "ada@example.com",
            )
            assert str(mail["Subject"]).startswith(
                f"[trainshed p1] Job größe\N{SNOWMAN} ({by_id(name)}) failed"
            )
            text = mail.get_content()
            assert f"https://shed.example/console/jobs/p1/us-central1/{by_id(name)}" in text
            assert f"trainshed logs {by_id(name)}" in text
            until(lambda: "550 no such user" in str(channel(live, "nobody").get("lastError")))
            assert mails.logins and "Traceback" not in live.said(), live.said()


def test_a_server_without_channels_keeps_nothing(live: LiveServer) -> None:
    live.wait(live.submit(python("pass")))
    with sqlite3.connect(f"file:{live.home / 'trainshed.db'}?mode=ro", uri=True) as database:
        assert database.execute("SELECT COUNT(*) FROM notices").fetchone() == (0,)
    database.close()


def test_pools_of_several_replicas_tell_one_end(live: LiveServer, receiver: HttpReceiver) -> None:
    add(live, "a", webhook=receiver.url)
    pools = [pool(python("pass")), pool(python("pass"), replicas=3)]
    name = live.submit(pools=pools)
    live.wait(name)
    until(lambda: receiver.taken)
    assert told_jobs(receiver) == [by_id(name)]
