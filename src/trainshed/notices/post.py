"""Posts a notice to an address, once. `carrier.py` calls it in a thread."""

from trainshed.bounded_thread import Hold
from trainshed.core.notice_message import NoticeRequest
from trainshed.outgoing_request import OutgoingRequest, send_request

ANSWER = 1000  # bytes that are read of an answer


def post(url: str, request: NoticeRequest, hold: Hold) -> tuple[int, str]:
    """The status, and the beginning of the answer. Raises OSError or ValueError where there is none."""
    sent = OutgoingRequest(url=url, verb="POST", headers=request.headers, body=request.body)
    answer = send_request(sent, hold, ANSWER)
    beginning = answer.body.decode("utf-8", "replace")
    return answer.status, f"{answer.status} {answer.reason}: {beginning}".strip(": ")
