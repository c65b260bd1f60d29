from pathlib import Path

import pytest

from trainshed.client import ClientError, discover


def test_with_nothing_said_and_no_server_the_defaults_are_used(tmp_path: Path) -> None:
    target = discover(environ={"TRAINSHED_HOME": str(tmp_path)})
    assert (target.url, target.token, target.project, target.location) == (
        "http://127.0.0.1:8080",
        None,
        "local",
        "us-central1",
    )


def test_a_running_server_is_found_by_what_it_left_in_its_home(tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text('{"url": "http://127.0.0.1:9/", "pid": 3}')
    (tmp_path / "token").write_text("secret\n")
    target = discover(environ={"TRAINSHED_HOME": str(tmp_path)})
    assert (target.url, target.token) == ("http://127.0.0.1:9", "secret")
    assert target.url_from.endswith("server.json")


def test_the_environment_wins_over_the_home_and_a_flag_over_both(tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text('{"url": "http://127.0.0.1:9", "pid": 3}')
    (tmp_path / "token").write_text("home")
    (tmp_path / "other").write_text("file")
    env = {"TRAINSHED_HOME": str(tmp_path), "TRAINSHED_URL": "http://e:1"}
    env["TRAINSHED_TOKEN_FILE"] = str(tmp_path / "other")
    assert discover(environ=env).token == "file"
    env["TRAINSHED_TOKEN"] = "word"
    assert discover(environ=env).token == "word"
    assert discover(environ=env).url == "http://e:1"
    assert discover(environ=env, url="http://f:2").url == "http://f:2"


@pytest.mark.parametrize(
    ("env", "project", "location"),
    [
        ({"GOOGLE_CLOUD_PROJECT": "g"}, "g", "us-central1"),
        ({"GOOGLE_CLOUD_PROJECT": "g", "CLOUDSDK_CORE_PROJECT": "c", "CLOUDSDK_AI_REGION": "r"}, "c", "r"),
        (
            {"CLOUDSDK_CORE_PROJECT": "c", "TRAINSHED_PROJECT": "t", "TRAINSHED_LOCATION": "l"}
            | {"CLOUDSDK_AI_REGION": "r"},
            "t",
            "l",
        ),
    ],
)
def test_project_and_location_come_from_our_words_first_then_gclouds(
    env: dict[str, str], project: str, location: str, tmp_path: Path
) -> None:
    target = discover(environ={**env, "TRAINSHED_HOME": str(tmp_path)})
    assert (target.project, target.location) == (project, location)


def test_a_damaged_note_is_named_and_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text("[]")
    with pytest.raises(ClientError, match=r"server\.json"):
        discover(environ={"TRAINSHED_HOME": str(tmp_path)})


def test_a_token_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    env = {"TRAINSHED_HOME": str(tmp_path), "TRAINSHED_TOKEN_FILE": str(tmp_path / "none")}
    with pytest.raises(ClientError, match="TRAINSHED_TOKEN_FILE"):
        discover(environ=env)
