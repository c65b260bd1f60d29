"""The request by which a browser signs in. For `api/console.py`."""

from trainshed.wire.base import Message, flag, read, text
from trainshed.wire.faults import Faults


class SignInRequest(Message):
    ticket: str = text()
    token: str = text()
    replace_session: bool = flag()


def parse_sign_in(body: object) -> SignInRequest:
    faults = Faults("sign_in")
    request = read(SignInRequest, body, faults)
    faults.settle()
    return request
