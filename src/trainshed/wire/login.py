"""Requests and answers of `trainshed login` by the browser, as JSON. For `api/provider_sign_in.py`."""

from urllib.parse import urlencode

from trainshed.core.accounts.directory import AccessToken
from trainshed.wire.account import render_token
from trainshed.wire.base import Message, int32, read, text
from trainshed.wire.faults import Faults

Json = dict[str, object]
FIRST_PORT, LAST_PORT = 1024, 65535


class LoginMessage(Message):
    challenge: str = text()
    title: str = text()


class AllowMessage(LoginMessage):
    port: int = int32()
    state: str = text()


class RedeemMessage(Message):
    word: str = text()
    verifier: str = text()


def parse_login(body: object) -> LoginMessage:
    faults = Faults("login")
    message = read(LoginMessage, body, faults)
    faults.settle()
    return message


def parse_allow(body: object) -> AllowMessage:
    faults = Faults("login")
    message = read(AllowMessage, body, faults)
    if not FIRST_PORT <= message.port <= LAST_PORT:
        faults.lose("port", f"must be the port at which login listens: {FIRST_PORT} to {LAST_PORT}.")
    faults.settle()
    return message


def loopback_address(message: AllowMessage, word: str) -> str:
    """Where the browser brings the word: always on its own machine, whoever asked."""
    return f"http://127.0.0.1:{message.port}/?{urlencode({'word': word, 'state': message.state})}"


def parse_redeem(body: object) -> RedeemMessage:
    faults = Faults("login")
    message = read(RedeemMessage, body, faults)
    faults.settle()
    return message


def render_new_token(token: AccessToken, secret: str) -> Json:
    """With the token itself, which nobody can see again."""
    return render_token(token) | {"token": secret}
