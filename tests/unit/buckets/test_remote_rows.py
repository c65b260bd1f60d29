"""The file of buckets kept elsewhere, and that its secrets stay where they are."""

import tomllib
from pathlib import Path

import pytest

from trainshed.buckets.remote.rows import StoreKind, load_rows, read_rows
from trainshed.core.errors import Invalid, TrainshedError, Unavailable
from trainshed.core.jobs.access import HIDDEN

WHOLE = """
[buckets.datasets]
url = "s3://acme-datasets"
endpoint = "https://s3.example.com/"
region = "eu-west-1"
project = "vision"
access_key = "env:KEY"
secret_key = "file:{file}"

[buckets.far]
url = "gs://far-away"

[[jobs]]
projects = ["vision"]
env = {{ endpoint_url = "https://s3.example.com", aws_secret_access_key = "file:{file}" }}

[[jobs]]
env = {{ EVERYBODY = "yes" }}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEY", "AKIA")
    (tmp_path / "secret").write_text("very secret\n")
    written = tmp_path / "buckets.toml"
    written.write_text(WHOLE.format(file=tmp_path / "secret"))
    return written


def test_buckets_are_read_with_where_they_are_and_whose(file: Path) -> None:
    rows = load_rows(file)
    datasets, far = rows.remotes
    assert (datasets.name, datasets.kind, datasets.bucket) == ("datasets", StoreKind.S3, "acme-datasets")
    assert (datasets.endpoint, datasets.region, datasets.project) == (
        "https://s3.example.com",
        "eu-west-1",
        "vision",
    )
    assert {word: key.reveal() for word, key in datasets.keys.items()} == {
        "access_key": "AKIA",
        "secret_key": "very secret",
    }
    assert (far.kind, far.keys) == (StoreKind.GOOGLE, {})


def test_jobs_of_a_project_are_told_what_is_theirs_read_anew_each_time(file: Path, tmp_path: Path) -> None:
    rows = load_rows(file)
    assert rows.granted("other") == {"EVERYBODY": "yes"}
    (tmp_path / "secret").write_text("changed")
    assert rows.granted("vision") == {
        "EVERYBODY": "yes",
        "endpoint_url": "https://s3.example.com",
        "aws_secret_access_key": "changed",
    }
    (tmp_path / "secret").unlink()
    with pytest.raises(Unavailable, match="secret"):
        rows.granted("vision")


def test_people_are_shown_the_names_and_no_secret_which_is_not_even_read(file: Path, tmp_path: Path) -> None:
    more = f'env = {{ API_TOKEN = "typed in", KIND = "file:{tmp_path / "secret"}" }}'
    file.write_text(f"{file.read_text()}\n[[jobs]]\n{more}\n")
    rows = load_rows(file)
    (tmp_path / "secret").unlink()
    others = {"EVERYBODY": "yes", "API_TOKEN": HIDDEN, "KIND": HIDDEN}
    assert rows.shown("other") == others
    own = {"endpoint_url": "https://s3.example.com", "aws_secret_access_key": HIDDEN}
    assert rows.shown("vision") == {**own, **others}


def test_no_representation_holds_a_secret(file: Path) -> None:
    told = repr(load_rows(file))
    assert "very secret" not in told
    assert "AKIA" not in told


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[bucket]\n", "'bucket' is not known"),
        ("buckets = 3\n", r"\[buckets.NAME\]"),
        ("[buckets.ab]\nurl = 's3://x'\n", "Invalid bucket name"),
        ("[buckets.abc]\n", "bucket abc needs a url"),
        ("[buckets.abc]\nurl = 'http://x'\n", "bucket abc needs a url"),
        ("[buckets.abc]\nurl = 's3://x'\nsecret = 'y'\n", "unknown word 'secret'"),
        ("[buckets.abc]\nurl = 's3://x'\nendpoint = 'ftp://x'\n", "endpoint"),
        ("[buckets.abc]\nurl = 's3://x'\nendpoint = 'http://me:pw@x'\n", "endpoint"),
        ("[buckets.abc]\nurl = 's3://x'\nregion = 3\n", "region must be a text"),
        ("[[jobs]]\nenv = { '1X' = 'y' }\n", "cannot be a variable's name"),
        ("[[jobs]]\nfoo = 1\n", "nothing else"),
        ("[buckets.abc]\nurl = 's3://x'\nsecret_key = 'env:NO_SUCH_VARIABLE_HERE'\n", "no such variable"),
        ("[buckets", "wrong"),
    ],
)
def test_each_mistake_is_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "buckets.toml").write_text(text)
    with pytest.raises(Invalid, match=sentence):
        load_rows(tmp_path / "buckets.toml")


def test_a_key_written_into_the_file_is_refused_and_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text("[buckets.abc]\nurl = 's3://x'\nsecret_key = 'hunter2'\n")
    with pytest.raises(TrainshedError, match="env:VARIABLE or file:PATH") as caught:
        load_rows(tmp_path / "b.toml")
    assert "hunter2" not in str(caught.value)


def test_a_missing_file_is_told() -> None:
    with pytest.raises(Invalid, match="No such file"):
        load_rows(Path("no/such/file.toml"))
    assert load_rows(None).remotes == ()
    assert read_rows(tomllib.loads("")).grants == ()
