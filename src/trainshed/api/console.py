"""The console: its page and files, which are public, and signing in and out.

A session is a cookie that no script can read and no other site can use. The page has a policy that allows
scripts and styles of this server only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trainshed import console
from trainshed.api.call import Call, Json, RawAnswer, Reply
from trainshed.api.request_gate import cookies
from trainshed.console import ConsoleFile
from trainshed.core.accounts.permission import Principal, PrincipalKind
from trainshed.core.errors import Invalid, NotFound, Violation
from trainshed.service.sign_in import BrowserSession, SignInService
from trainshed.wire.scalars import time_text
from trainshed.wire.sign_in import parse_sign_in

_POLICY = (
    "default-src 'none'; script-src 'self'{inline}; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SAFE = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}
_FOREVER = {"cache-control": "public, max-age=31536000, immutable"}
_FRESH = {"cache-control": "no-cache"}


@dataclass(slots=True)
class ConsoleHandlers:
    sign_ins: SignInService
    version: str
    last_hint: Callable[[], str]  # the id after which a page listens
    provider: str = ""  # what people call the provider they may sign in with
    public_url: str = ""  # the server's address as people reach it, where that is another one

    async def page(self, call: Call) -> Reply:
        address = call.path.get("page", "")
        if (principal := self.sign_ins.signed_in(cookies(call.headers.get("cookie", "")))) is not None:
            page = console.page_of_session(
                address,
                has_query=bool(call.query),
                last_hint=self.last_hint(),
                projects=principal.own_projects,
            )
        else:
            page = console.page(address)
        if self.provider:
            page = console.with_provider(page, self.provider)
        policies = {"content-security-policy": policy(page.inline_scripts)}
        headers = {**_SAFE, **_FRESH, **policies, "vary": "accept-encoding, cookie"}
        return _file_answer(call, page.file, headers)

    async def root(self, call: Call) -> Reply:
        return RawAnswer(status=303, headers={"location": "/console/jobs", **_FRESH})

    async def file(self, call: Call) -> Reply:
        version, _, name = call.path["file"].partition("/")
        file = console.files().get(name)
        if file is None:
            raise NotFound(f"The console has no file '{name[:60]}'.")
        # A page of an older server asks for older files: it gets those of today, and keeps none of them.
        keep = _FOREVER if version == console.version() else _FRESH
        return _file_answer(call, file, {**_SAFE, "content-security-policy": policy(()), **keep})

    async def server(self, call: Call) -> Json:
        projects = list(call.principal.own_projects)
        answer: Json = {"version": self.version, "lastHint": self.last_hint()}
        return answer | ({"projects": projects} if projects else {})

    async def ticket(self, call: Call) -> Json:
        word, until_at = self.sign_ins.ticket(call.principal)
        return {"ticket": word, "path": f"/console/#ticket={word}", "expireTime": time_text(until_at)}

    async def sign_in(self, call: Call) -> Reply:
        request = parse_sign_in(call.body)
        if bool(request.ticket) == bool(request.token):
            raise Invalid((Violation("ticket", "must be given, or token; not both."),))
        if request.ticket:
            if not request.replace_session and (question := self._question(call, request.ticket)):
                return question
            session = self.sign_ins.with_ticket(request.ticket)
        else:
            session = self.sign_ins.with_token(request.token)
        call.trace.who = self.sign_ins.signed_in({session.cookie: session.word})
        return self._with_cookie(call, session)

    async def sign_out(self, call: Call) -> Reply:
        brought = cookies(call.headers.get("cookie", ""))
        call.trace.who = self.sign_ins.signed_in(brought)
        return self._with_cookie(call, self.sign_ins.sign_out(brought))

    def _question(self, call: Call, ticket: str) -> Json | None:
        """Who is signed in already, where it is somebody else: anybody can send a link with their ticket."""
        present = self.sign_ins.signed_in(cookies(call.headers.get("cookie", "")))
        other = self.sign_ins.meant_by(ticket)
        if present is None or other is None or (present.kind, present.id) == (other.kind, other.id):
            return None
        return {"signedInAs": _name(present), "ticketOf": _name(other)}

    def _with_cookie(self, call: Call, session: BrowserSession) -> RawAnswer:
        # A proxy may speak TLS with the browser and none with this server: the browser itself says what it
        # speaks, by the Origin that was compared, and else the settings do.
        address = call.headers.get("origin", "") or self.public_url
        is_secure = any(text.startswith("https:") for text in (address, call.base_url))
        cookie = session_cookie(session, is_secure=is_secure)
        headers = {"content-type": "application/json", "set-cookie": cookie, "cache-control": "no-store"}
        return RawAnswer(b"{}", headers=headers)


def policy(inline_scripts: tuple[str, ...]) -> str:
    return _POLICY.format(inline="".join(f" '{digest}'" for digest in inline_scripts))


def _file_answer(call: Call, file: ConsoleFile, headers: Mapping[str, str]) -> RawAnswer:
    told = {"content-type": file.media_type, "vary": "accept-encoding", **headers}
    if "gzip" in call.headers.get("accept-encoding", ""):
        return RawAnswer(file.packed, headers={**told, "content-encoding": "gzip"})
    return RawAnswer(file.content, headers=told)


def _name(principal: Principal) -> str:
    return principal.id if principal.kind is PrincipalKind.ACCOUNT else f"the {principal.kind} of the server"


def session_cookie(session: BrowserSession, *, is_secure: bool) -> str:
    # Of this site alone: a link from elsewhere opens the page, whose own requests then carry the cookie.
    age = int(session.lasts.total_seconds())
    cookie = f"{session.cookie}={session.word}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict"
    return f"{cookie}; Secure" if is_secure else cookie
