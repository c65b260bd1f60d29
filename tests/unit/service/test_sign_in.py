"""Who gets a session: by a ticket that is good once, for a minute; and until when the session holds."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from tests.builders import T0
from trainshed.core.accounts.permission import OWNER, Principal, PrincipalKind
from trainshed.core.errors import Forbidden
from trainshed.identity.open import NoAuthentication
from trainshed.identity.session import LIFE as SESSION_LIFE
from trainshed.identity.session import SignedSessions
from trainshed.service.sign_in import LIFE, SignInService

SECOND = timedelta(seconds=1)


@dataclass
class Clock:
    time: datetime = T0

    def now(self) -> datetime:
        return self.time


def service(clock: Clock, token: str = "token") -> SignInService:
    return SignInService(NoAuthentication(), SignedSessions(b"secret", lambda: token), clock)


def test_a_ticket_to_the_console_is_good_once():
    sign_ins = service(Clock())
    word, _ = sign_ins.ticket(OWNER)
    sign_ins.with_ticket(word)
    with pytest.raises(Forbidden, match="was used"):
        sign_ins.with_ticket(word)


def test_a_ticket_to_the_console_is_good_for_a_minute():
    clock = Clock()
    sign_ins = service(clock)
    word, until_at = sign_ins.ticket(OWNER)
    assert until_at == T0 + LIFE
    clock.time = until_at + SECOND
    with pytest.raises(Forbidden, match="too old"):
        sign_ins.with_ticket(word)


def test_a_session_ends_by_itself_and_with_its_token():
    sign_ins = service(Clock())
    session = sign_ins.with_ticket(sign_ins.ticket(OWNER)[0]).word
    assert sign_ins.sessions.principal(session, T0 + SESSION_LIFE - SECOND) == OWNER
    assert sign_ins.sessions.principal(session, T0 + SESSION_LIFE + SECOND) is None
    assert service(Clock(), "another").sessions.principal(session, T0) is None


@pytest.mark.parametrize("invented", ["", ".", "9999999999.", "9999999999.x", "x.y", "\udcff.\udcff"])
def test_an_invented_session_is_nobodys(invented: str):
    assert service(Clock()).sessions.principal(invented, T0) is None


def test_a_session_whose_end_was_changed_is_nobodys():
    sign_ins = service(Clock())
    end, _, signature = sign_ins.with_ticket(sign_ins.ticket(OWNER)[0]).word.partition(".")
    assert sign_ins.sessions.principal(f"{int(end) + 1}.{signature}", T0) is None


def test_who_signs_out_ends_that_session_for_who_kept_it_and_no_other():
    sign_ins = service(Clock())
    first, second = (sign_ins.with_ticket(sign_ins.ticket(OWNER)[0]) for _ in range(2))
    assert sign_ins.sign_out({first.cookie: first.word}).lasts == timedelta()
    assert sign_ins.signed_in({first.cookie: first.word}) is None
    assert sign_ins.signed_in({second.cookie: second.word}) == OWNER
    sign_ins.sign_out({first.cookie: first.word})
    sign_ins.sign_out({})


def test_a_session_has_the_rights_that_its_token_has_now():
    ann = Principal(PrincipalKind.ACCOUNT, "ann", token="1a")
    known = {"1a": ann}
    sessions = SignedSessions(b"secret", lambda: "token", known.get)
    sign_ins = SignInService(NoAuthentication(), sessions, Clock())
    session = sign_ins.with_ticket(sign_ins.ticket(ann)[0]).word
    assert sessions.principal(session, T0) == ann
    end, _, mark, signature = session.split(".")
    for changed in (f"{end}.2b.{mark}", f"{end}.1a", f"{end}..{mark}", end):
        assert sessions.principal(f"{changed}.{signature}", T0) is None
    del known["1a"]
    assert sessions.principal(session, T0) is None
