"""Names of images: what is one, which are the same, and how a bad one is refused."""

import pytest

from trainshed.core.supplies.image import MOST, canonical, familiar, parse, refusal

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("python", "docker.io/library/python:latest"),
        ("python:3.11-slim", "docker.io/library/python:3.11-slim"),
        ("team/trainer", "docker.io/team/trainer:latest"),
        ("docker.io/python", "docker.io/library/python:latest"),
        ("localhost/python:3", "localhost/python:3"),
        ("localhost:5000/a", "localhost:5000/a:latest"),
        ("127.0.0.1:5000/team/digits:v1", "127.0.0.1:5000/team/digits:v1"),
        ("gcr.io/my-project/my_image__x:1.0", "gcr.io/my-project/my_image__x:1.0"),
        (
            "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-9:latest",
            "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-9:latest",
        ),
        (f"python@{DIGEST}", f"docker.io/library/python@{DIGEST}"),
        (f"gcr.io/p/i:tag@{DIGEST}", f"gcr.io/p/i@{DIGEST}"),
        ("[::1]:5000/a:1", "[::1]:5000/a:1"),
        ("Registry/a:1", "Registry/a:1"),
    ],
)
def test_every_spelling_of_a_name_has_one_long_form(text: str, whole: str) -> None:
    assert refusal(text) is None
    assert canonical(text) == whole
    assert canonical(canonical(text)) == whole
    assert canonical(familiar(whole)) == whole


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        (":tag", "is empty"),
        ("Python:3", "'Python'"),
        ("a/B", "'B'"),
        ("a b", "'a b'"),
        ("a//b", "''"),
        ("/a", "''"),
        ("a/", "''"),
        ("a:", "for a tag"),
        ("a:-x", "for a tag"),
        ("a:" + "x" * 129, "for a tag"),
        ("a@sha256:12", "for a digest"),
        ("a@md5:" + "0" * 32, "for a digest"),
        ("a__" + "_b", "'a___b'"),
        ("a..b", "'a..b'"),
        ("-a.io/b", "'-a.io' for a registry"),
        ("host:port/b", "'host:port' for a registry"),
        ("http://host/b", "'http:' for a registry"),
        ("a" * (MOST + 1), "longer than"),
        ("0" * 64, "is the id of an image"),
        ("sha256:beef", "is the id of an image"),
        ("sha512:" + "0" * 128, "is the id of an image"),
        ("a\n", "'a\n'"),
        ("--privileged", "'--privileged'"),
        ("../../etc", "'..'"),
    ],
)
def test_what_is_no_name_is_refused_with_the_part_that_is_wrong(text: str, told: str) -> None:
    sentence = refusal(text)
    assert sentence is not None and told in sentence and sentence.endswith(".")
    with pytest.raises(ValueError, match=r"is|has"):
        parse(text)


def test_people_are_shown_the_short_form() -> None:
    assert familiar("docker.io/library/python:3") == "python:3"
    assert familiar("docker.io/team/trainer:1") == "team/trainer:1"
    assert familiar("quay.io/team/trainer:1") == "quay.io/team/trainer:1"
    assert parse("python").is_short and not parse("localhost/python").is_short
