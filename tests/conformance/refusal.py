"""What every refusal of the API must look like."""

from tests.live import Answer


def refused(answer: Answer, code: int = 400, status: str = "INVALID_ARGUMENT") -> Answer:
    assert answer.status == code, answer.body[:500]
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.error["code"] == code
    assert answer.error["status"] == status
    assert answer.error["message"]
    return answer
