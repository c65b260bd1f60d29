import pytest

from trainshed.api.answer_headers import with_seal


def sealed(**headers: str) -> dict[str, str]:
    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {name.decode(): value.decode() for name, value in with_seal(given)}


@pytest.mark.parametrize("kind", ["text/html", "image/svg+xml", "application/octet-stream", "TEXT/HTML; x=y"])
def test_what_is_not_ours_to_show_is_saved_in_a_sandbox(kind: str) -> None:
    answer = sealed(content_type=kind)
    assert answer["content-disposition"] == "attachment"
    assert answer["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer["content-security-policy"]
    assert "frame-ancestors 'none'" in answer["content-security-policy"]


@pytest.mark.parametrize("kind", ["application/json; charset=UTF-8", "text/plain; version=0.0.4"])
def test_json_and_text_are_shown_and_run_nothing(kind: str) -> None:
    answer = sealed(content_type=kind)
    assert "content-disposition" not in answer
    assert "sandbox" in answer["content-security-policy"]


def test_a_page_of_ours_keeps_its_own_policy() -> None:
    answer = sealed(content_type="text/html", content_security_policy="script-src 'self'")
    assert answer["content-security-policy"] == "script-src 'self'"
    assert "content-disposition" not in answer
    assert answer["x-content-type-options"] == "nosniff"


def test_a_disposition_of_its_own_stays() -> None:
    assert sealed(content_type="x/y", content_disposition="attachment; filename=a")[
        "content-disposition"
    ].endswith("filename=a")
