"""The request by which a browser signs in. For `api/console.py`."""

from trainshed.wire.base import Message, read, text
from trainshed.wire.faults import Faults


class SignInRequest(Message):
    ticket: str = text()
    token: str = text()


def parse_sign_in(body: object) -> SignInRequest:
    faults = Faults("sign_in")
    request = read(SignInRequest, body, faults)
    faults.settle()
    return request
