"""What a bucket may be called: Google's rules, when one is made."""

import pytest

from trainshed.core.bucket import check_bucket_name, check_new_bucket_name
from trainshed.core.errors import Invalid

LONG = "a" * 63


@pytest.mark.parametrize(
    "name",
    [
        *(
            "abc",
            LONG,
            f"{LONG}.{LONG}.{LONG}.{'a' * 30}",
            "9-lives_too",
            "a.b-c.d",
            "1.2.3",
            "1.2.3.4.5",
            "1.2.3.x",
        ),
        *("my-staging-bucket", "my-mnist-model-bucket", "bucket"),
        *("goo-gle", "not-goog"),
    ],
)
def test_a_name_by_googles_rules_is_taken(name: str):
    assert check_new_bucket_name(name) == name


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("ab", "at least 3"),
        ("", "at least 3"),
        ("a" * 64, "at most 63 characters, not 64"),
        (f"{LONG}.{LONG}.{LONG}.{'a' * 31}", "at most 222"),
        (f"x.{'a' * 64}", "Each part between dots"),
        ("No-Capitals", "lower-case letters"),
        ("no spaces", "lower-case letters"),
        ("na\u00efve", "lower-case letters"),
        ("abc\n", "lower-case letters"),
        ("-abc", "begin and end"),
        ("abc_", "begin and end"),
        (".abc", "begin and end"),
        ("a..b", "two dots"),
        ("192.168.5.4", "IP address"),
        ("999.168.5.4", "IP address"),
        ("goog-data", "begin with 'goog'"),
        ("my-google-data", "contain 'google'"),
    ],
)
def test_a_name_that_breaks_a_rule_is_refused_with_the_rule(name: str, rule: str):
    with pytest.raises(Invalid, match="Invalid bucket name") as refused:
        check_new_bucket_name(name)
    assert rule in refused.value.message


def test_every_rule_that_is_broken_is_told():
    with pytest.raises(Invalid) as refused:
        check_new_bucket_name("-Google")
    for rule in ("lower-case", "begin and end"):
        assert rule in refused.value.message


@pytest.mark.parametrize("name", ["goog-data", "my-google-data", "192.168.5.4"])
def test_a_bucket_that_is_there_is_used_under_the_name_it_has(name: str):
    assert check_bucket_name(name) == name
