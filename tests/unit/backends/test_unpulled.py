"""Why an image could not be had: the class of what engines and registries say, and the way out."""

import pytest

from trainshed.backends.container.engine_errors import plain
from trainshed.backends.container.pull import error_of, image_failure, timed_out
from trainshed.core.errors import Exhausted, Forbidden, NotFound, TrainshedError, Unavailable
from trainshed.core.jobs.verdict import Cause

WORDS = [
    (
        Cause.NO_SUCH_IMAGE,
        False,
        "initializing source docker://127.0.0.1:5000/a/b:9: reading manifest 9 in 127.0.0.1:5000/a/b: "
        "manifest unknown: manifest unknown",
    ),
    (Cause.NO_SUCH_IMAGE, False, "manifest for python:nope not found: manifest unknown: manifest unknown"),
    (
        Cause.NO_SUCH_IMAGE,
        False,
        "pull access denied for nope, repository does not exist or may require 'docker login': denied",
    ),
    (Cause.NO_SUCH_IMAGE, False, "no matching manifest for linux/arm64/v8 in the manifest list entries"),
    (
        Cause.NO_SUCH_IMAGE,
        False,
        "initializing source docker://localhost/nope:1: pinging container registry localhost: Get "
        '"https://localhost/v2/": dial tcp 127.0.0.1:443: connect: connection refused',
    ),
    (
        Cause.PERMISSION,
        False,
        "reading manifest 1 in 127.0.0.1:5000/a: unauthorized: authentication required",
    ),
    (Cause.PERMISSION, False, "unexpected status code 403 Forbidden"),
    (Cause.NETWORK_ERROR, True, "dial tcp: lookup gcr.io on 10.0.0.1:53: no such host"),
    (
        Cause.NETWORK_ERROR,
        True,
        'pinging container registry localhost:5000: Get "https://localhost:5000/v2/": dial tcp '
        "127.0.0.1:5000: connect: connection refused",
    ),
    (Cause.NETWORK_ERROR, True, "received unexpected HTTP status: 503 Service Unavailable"),
    (Cause.NETWORK_ERROR, True, "toomanyrequests: You have reached your pull rate limit"),
    (Cause.NETWORK_ERROR, False, "http: server gave HTTP response to HTTPS client"),
    (Cause.NETWORK_ERROR, False, "x509: certificate signed by unknown authority"),
    (Cause.DISK_FULL, True, "writing blob: storing blob to file: write /var/tmp/x: no space left on device"),
    (Cause.UNKNOWN, False, "something nobody has seen before"),
]


@pytest.mark.parametrize(("cause", "retry", "said"), WORDS)
def test_the_words_of_registries_have_classes(cause: Cause, retry: bool, said: str) -> None:
    verdict = image_failure("Image x:1 could not be pulled", said).verdict
    assert (verdict.cause, verdict.retry_may_help) == (cause, retry)
    assert verdict.advice and verdict.summary.startswith("Image x:1 could not be pulled: ")


def test_numbers_in_names_are_no_status_codes() -> None:
    said = "initializing source docker://127.0.0.1:403/team-404/a:503: something else"
    assert (
        image_failure("Image 127.0.0.1:403/team-404/a:503 could not be pulled", said).verdict.cause
        is Cause.UNKNOWN
    )


def test_the_registrys_words_are_shown_without_the_engines_stammer() -> None:
    assert plain(WORDS[0][2]) == "reading manifest 9 in 127.0.0.1:5000/a/b: manifest unknown"


def test_a_registry_that_hangs_is_said_with_how_long_and_how_far() -> None:
    silent, stopped = timed_out("Image x", 30, None).verdict, timed_out("Image x", 60, 42).verdict
    assert silent.cause is stopped.cause is Cause.NETWORK_TIMEOUT and silent.retry_may_help
    assert "answered nothing for 30 s" in silent.summary
    assert "stopped at 42 % and sent nothing more for 60 s" in stopped.summary


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("manifest unknown", NotFound),
        ("unauthorized", Forbidden),
        ("no space left on device", Exhausted),
        ("connection refused", Unavailable),
    ],
)
def test_who_waits_for_an_answer_gets_the_error_that_fits(said: str, kind: type[TrainshedError]) -> None:
    error = error_of(image_failure("Image x", said).verdict)
    assert type(error) is kind and said in error.message
