"""Costs over HTTP: pages of one report, and what happens where the server keeps it no longer."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.unit.client.scripted import Asked, Handler, Script, failure
from trainshed.client import ApiError, Client, Json

GONE = failure(400, "INVALID_ARGUMENT", "It is gone.", page_token="is of a report that is no longer kept.")


@pytest.fixture
def client(script: Script) -> Iterator[Client]:
    with Client(script.url, "secret", "p", "l", pauses=(0.0, 0.0)) as client:
        yield client


def loses(script: Script, times: int) -> None:
    """Two pages for each report. The second page of the first reports is gone."""
    begun: list[str] = []

    def answer(asked: Asked, handler: Handler) -> tuple[int, Any]:
        token = parse_qs(urlsplit(asked.path).query).get("pageToken", [""])[0]
        if not token:
            begun.append(f"report {len(begun)}")
            return 200, {"rows": [{"group": begun[-1]}], "totalSize": 2, "nextPageToken": begun[-1]}
        if len(begun) <= times:
            return GONE
        return 200, {"rows": [{"group": token}], "totalSize": 2}

    script.answer = answer


def costs(client: Client) -> Json:
    return client.costs("/v1/projects/p/locations/l").find(by="job", since=None, until=None)


def test_a_report_that_is_gone_before_its_last_page_is_read_again_from_the_start(
    script: Script, client: Client
) -> None:
    loses(script, 2)
    assert [row["group"] for row in costs(client)["rows"]] == ["report 2", "report 2"]


def test_a_report_that_is_gone_each_time_is_told(script: Script, client: Client) -> None:
    loses(script, 9)
    with pytest.raises(ApiError, match="It is gone"):
        costs(client)
    assert len(script.asked) == 6


def test_another_refusal_is_told_at_once(script: Script, client: Client) -> None:
    script.answer = lambda asked, handler: failure(
        400, "INVALID_ARGUMENT", "It is gone.", group_by="is not known."
    )
    with pytest.raises(ApiError, match="It is gone"):
        costs(client)
    assert len(script.asked) == 1
