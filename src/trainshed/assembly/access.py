"""Who may do what: people by the server's token, programs of jobs by tokens of their own."""

import os
from dataclasses import dataclass

from trainshed.api.request_gate import BrowserSessions, RequestGate
from trainshed.assembly.shared import SharedParts
from trainshed.assembly.storage import Storage
from trainshed.certificates import Certificates
from trainshed.core.google import HOSTS
from trainshed.identity.job_token import SignedJobTokens
from trainshed.identity.open import NoAuthentication
from trainshed.identity.session import SignedSessions
from trainshed.identity.token import TokenFile
from trainshed.service.access import AccessService
from trainshed.wire.page import PageTokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    service: AccessService
    gate: RequestGate
    sessions: SignedSessions
    certificates: Certificates  # by which programs trust this server under Google's names


def make_access(shared: SharedParts, storage: Storage) -> Access:
    settings, home = shared.settings, shared.settings.home
    certificates = Certificates(home / "tls", HOSTS, os.environ)
    tokens = SignedJobTokens(home / "job-secret")
    service = AccessService(
        tokens=tokens,
        store=storage.store,
        buckets=storage.buckets,
        clock=shared.clock,
        address=shared.address,
        grants=storage.grants,
    )
    authenticator = TokenFile(home / "token") if settings.auth else NoAuthentication()
    sessions = SignedSessions(tokens.secret, authenticator.current)
    gate = RequestGate(
        authenticator,
        service,
        PageTokens.signed_with(tokens.secret),
        BrowserSessions(sessions, shared.clock),
    )
    return Access(service=service, gate=gate, sessions=sessions, certificates=certificates)
