"""What is sent of a notice, and how a receiver knows that it is genuine."""

import base64
import json
import re
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.builders import a_job, at, running
from tests.unit.core.test_notice import FAILURE, a_channel, over
from trainshed.core.jobs.job import JobState
from trainshed.core.notice import Notice, NoticeWay, budget_notice, notices_of
from trainshed.core.notice_message import key_of, mail_of, new_secret, request_of, signature

SERVER = "https://trainshed.example"
SECRET = new_secret(b"k" * 32)
GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "notices.md"


def failed(**changes: object) -> Notice:
    job = replace(running(a_job()), labels={"team": "vision"}, submitter="Ada")
    [notice] = notices_of(job, over(job, JobState.FAILED, failure=FAILURE), ())
    return replace(notice, **changes)


def body_of(notice: Notice, way: NoticeWay = NoticeWay.WEBHOOK) -> Any:
    return json.loads(request_of(a_channel(way=way), notice, SECRET, SERVER, at(0)).body)


def test_a_webhook_gets_all_that_is_known():
    assert body_of(failed()) == {
        "id": "1-2-failed",
        "type": "job.failed",
        "timestamp": "2026-05-01T12:03:12.000000Z",
        "data": {
            "message": failed().sentence,
            "project": "shed",
            "location": "here",
            "job": "1",
            "name": "projects/shed/locations/here/customJobs/1",
            "displayName": "job-1",
            "labels": {"team": "vision"},
            "submitter": "Ada",
            "state": "JOB_STATE_FAILED",
            "reason": "PROGRAM_FAILED",
            "verdict": "IMPORT_ERROR: ModuleNotFoundError: No module named 'torchvision'. Add it.",
            "task": "workerpool0-0",
            "attempt": 0,
            "console": "https://trainshed.example/console/jobs/shed/here/1",
            "createTime": "2026-05-01T12:00:00.000000Z",
            "startTime": "2026-05-01T12:00:00.000000Z",
            "endTime": "2026-05-01T12:03:12.000000Z",
        },
    }


def test_a_budget_has_no_job_and_no_link():
    body = body_of(budget_notice("gpu-80", "shed", "80% is spent.", at(3)))
    assert (body["type"], body["data"]["message"]) == ("budget", "80% is spent.")
    assert not {"job", "name", "console", "state"} & body["data"].keys()


def test_the_headers_carry_id_time_type_and_a_signature_over_all_of_them():
    request = request_of(a_channel(), failed(), SECRET, SERVER, at(0.9))
    stamp = str(int(at(0).timestamp()))
    assert request.headers["Webhook-Id"] == "1-2-failed"
    assert request.headers["Webhook-Timestamp"] == stamp
    assert request.headers["Trainshed-Event"] == "job.failed"
    assert request.headers["Webhook-Signature"] == signature(SECRET, "1-2-failed", stamp, request.body)
    others = {
        signature(SECRET, "other", stamp, request.body),
        signature(SECRET, "1-2-failed", "1", request.body),
        signature(SECRET, "1-2-failed", stamp, request.body + b" "),
        signature(new_secret(b"x" * 32), "1-2-failed", stamp, request.body),
    }
    assert len(others) == 4 and request.headers["Webhook-Signature"] not in others


def test_a_signature_is_the_one_that_others_compute():
    """A value computed by OpenSSL: openssl dgst -sha256 -hmac plain-text-secret"""
    assert signature("plain-text-secret", "a", "1", b"{}") == (
        "v1," + base64.b64encode(bytes.fromhex(OPENSSL)).decode()
    )


OPENSSL = "32ac285108f54860d7046a547a75d367da8cf0e3d12a6d4f9f65ed018764b21b"


def test_the_example_of_the_guide_tells_genuine_requests_from_others():
    [example] = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(example, names)
    now = datetime.fromtimestamp(time.time(), UTC)
    request = request_of(a_channel(), failed(), SECRET, SERVER, now)
    assert names["is_genuine"](request.headers, request.body, SECRET)
    assert not names["is_genuine"](request.headers, request.body + b" ", SECRET)
    assert not names["is_genuine"](request.headers, request.body, new_secret(b"x" * 32))
    old = request_of(a_channel(), failed(), SECRET, SERVER, at(0))
    assert not names["is_genuine"](old.headers, old.body, SECRET)


def test_a_secret_is_base64_behind_its_prefix_and_else_its_own_bytes():
    assert key_of(SECRET) == b"k" * 32
    assert key_of("plain text") == b"plain text"
    with pytest.raises(ValueError, match="not base64"):
        key_of("whsec_%%%")


def test_slack_gets_plain_words_that_are_no_markup_and_no_signature():
    notice = failed(sentence="a <b> & <!channel>")
    assert body_of(notice, NoticeWay.SLACK) == {
        "text": "a &lt;b&gt; &amp; &lt;!channel&gt;\nhttps://trainshed.example/console/jobs/shed/here/1"
    }
    request = request_of(a_channel(way=NoticeWay.SLACK), notice, "", SERVER, at(0))
    assert not any(name.startswith("Webhook") for name in request.headers)


def test_a_mail_says_the_sentence_in_its_subject_and_has_the_link():
    mail = mail_of(failed(), SERVER)
    assert mail.subject.startswith("[trainshed shed] Job job-1 (1) failed after 3 min 12 s: workerpool0-0")
    assert "—" not in mail.subject and len(mail.subject) < 150
    assert "Console: https://trainshed.example/console/jobs/shed/here/1" in mail.text
    assert "IMPORT_ERROR" in mail.text
    assert mail_of(failed(sentence="x" * 500), SERVER).subject.endswith("…")
