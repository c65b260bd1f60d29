"""Who may do what: people by the server's token or an account's, programs of jobs by tokens of their own."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from trainshed.api.audit_trail import AuditTrail
from trainshed.api.request_gate import BrowserSessions, RequestGate
from trainshed.assembly.shared import SharedParts
from trainshed.assembly.storage import Storage
from trainshed.certificates.home import Certificates
from trainshed.core.google import HOSTS
from trainshed.identity.account_tokens import AccountTokens
from trainshed.identity.audit_files import AuditFiles
from trainshed.identity.directory_file import DirectoryFile
from trainshed.identity.ended_sessions import EndedSessions
from trainshed.identity.job_token import SignedJobTokens
from trainshed.identity.open import NoAuthentication
from trainshed.identity.proxies import TrustedProxies
from trainshed.identity.session import SignedSessions
from trainshed.identity.token import TokenFile
from trainshed.identity.token_uses import TokenUses
from trainshed.service.access import AccessService
from trainshed.service.accounts import AccountService
from trainshed.wire.page import PageTokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    service: AccessService
    gate: RequestGate
    sessions: SignedSessions
    certificates: Certificates  # by which programs trust this server under Google's names
    accounts: AccountService
    people: AccountTokens
    secret: bytes  # of the home, for what is signed


def make_access(shared: SharedParts, storage: Storage, forget: Callable[[str], Awaitable[None]]) -> Access:
    """`forget` drops what is kept for whoever had an account before."""
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
    owner = TokenFile(home / "token") if settings.auth else NoAuthentication()
    directories = DirectoryFile(home / "accounts.json")
    uses = TokenUses(home / "token-uses.json", lambda: directories.directory.tokens)
    ended = EndedSessions(home / "ended-sessions.json")
    people = AccountTokens(owner, directories, shared.clock, uses.note, ended)
    sessions = SignedSessions(tokens.secret, owner.current, people.principal, ended)
    audit = AuditFiles(home / "audit")
    gate = RequestGate(
        people,
        service,
        PageTokens.signed_with(tokens.secret),
        BrowserSessions(sessions, shared.clock),
        AuditTrail(audit, shared.clock, lambda: bool(directories.directory.accounts)),
        people,
        TrustedProxies(settings.trusted_proxies).caller if settings.trusted_proxies else None,
    )
    return Access(
        service=service,
        gate=gate,
        sessions=sessions,
        certificates=certificates,
        accounts=AccountService(directories, audit, shared.clock, uses.last_day, forget),
        people=people,
        secret=tokens.secret,
    )
