"""Signing in with a provider, and `trainshed login` by the browser. For servers with a provider.

The browser goes to `/signin`, from there to the provider, and comes back to `/signin/callback`. Each sign-in
is a line of the audit log, allowed or refused. People see refusals as a page.
"""

from dataclasses import dataclass, replace

from trainshed import console
from trainshed.api.call import Call, Json, Method, RawAnswer, Reply, row
from trainshed.api.console import policy, session_cookie
from trainshed.api.request_gate import cookies
from trainshed.core.accounts.directory import AccessToken
from trainshed.core.accounts.permission import ANONYMOUS, Permission, Principal, PrincipalKind
from trainshed.core.errors import TrainshedError
from trainshed.service.browser_logins import BrowserLogins, LoginRequest, WaitingLogin
from trainshed.service.provider_sign_in import CALLBACK, LIFE, CallbackQuery, ProviderSignIns
from trainshed.wire import login as wire
from trainshed.wire.scalars import time_text
from trainshed.wire.status import to_http

START = "/signin"
_UNSTORED = {"cache-control": "no-store", "referrer-policy": "no-referrer"}


@dataclass(slots=True)
class ProviderSignInHandlers:
    sign_ins: ProviderSignIns
    public_url: str = ""  # empty: the address that the browser uses

    async def begin(self, call: Call) -> Reply:
        address = self._address(call)
        try:
            target, word = await self.sign_ins.begin(call.query.get("page", ""), address)
        except TrainshedError as error:
            return _refused(error)
        # Lax: the browser has to bring it back when the provider's page leads here.
        age = int(LIFE.total_seconds())
        cookie = f"{self._cookie}={word}; Path={START}; Max-Age={age}; HttpOnly; SameSite=Lax"
        if address.startswith("https:"):
            cookie += "; Secure"
        return RawAnswer(status=303, headers={"location": target, "set-cookie": cookie, **_UNSTORED})

    async def callback(self, call: Call) -> Reply:
        query, address = call.query, self._address(call)
        brought = CallbackQuery(
            state=query.get("state", ""),
            code=query.get("code", ""),
            issuer=query.get("iss", ""),
            error=query.get("error_description", "") or query.get("error", ""),
        )
        word = cookies(call.headers.get("cookie", "")).get(self._cookie, "")
        try:
            signed_in = await self.sign_ins.end(word, brought, address)
        except TrainshedError as error:
            answer = _refused(error)
            call.trace.who, call.trace.reason = ANONYMOUS, error.message
            return answer
        call.trace.who = Principal(PrincipalKind.ACCOUNT, signed_in.account, token=signed_in.token)
        cookie = session_cookie(signed_in.session, is_secure=address.startswith("https:"))
        return RawAnswer(status=303, headers={"location": signed_in.page, "set-cookie": cookie, **_UNSTORED})

    @property
    def _cookie(self) -> str:
        return f"{self.sign_ins.sign_ins.sessions.cookie}-signin"

    def _address(self, call: Call) -> str:
        return self.public_url or call.base_url


@dataclass(slots=True)
class LoginHandlers:
    logins: BrowserLogins

    async def allow(self, call: Call) -> Json:
        message = wire.parse_allow(call.body)
        word = self.logins.allow(call.principal, LoginRequest(message.challenge, message.title))
        return {"address": wire.loopback_address(message, word)}

    async def redeem(self, call: Call) -> Json:
        message = wire.parse_redeem(call.body)
        return _taken(call, *self.logins.redeem(message.word, message.verifier))

    async def ask(self, call: Call) -> Json:
        login = self.logins.ask(_request(call), call.trace.address)
        return _render(login) | {"path": f"/console/login?code={login.code}"}

    async def waiting(self, call: Call) -> Json:
        return _render(self.logins.waiting(call.path["code"]))

    async def allow_code(self, call: Call) -> Json:
        self.logins.allow_code(call.principal, call.path["code"])
        return {}

    async def refuse_code(self, call: Call) -> Json:
        self.logins.refuse_code(call.path["code"])
        return {}

    async def redeem_code(self, call: Call) -> Json:
        code = call.path["code"]
        taken = self.logins.redeem_code(code, wire.parse_redeem(call.body).verifier)
        if taken is None:
            return {"waiting": True}
        return _taken(call, *taken)


def _taken(call: Call, token: AccessToken, text: str) -> Json:
    call.trace.who = Principal(PrincipalKind.ACCOUNT, token.account, token=token.id)
    call.trace.what = f"makes token {token.id} of {token.account}"
    return wire.render_new_token(token, text)


def _request(call: Call) -> LoginRequest:
    message = wire.parse_login(call.body)
    return LoginRequest(message.challenge, message.title)


def _render(login: WaitingLogin) -> Json:
    return {
        "code": login.code,
        "title": login.request.title,
        "address": login.address,
        "expireTime": time_text(login.until_at),
    }


def _refused(error: TrainshedError) -> RawAnswer:
    page = console.refusal(error.message)
    headers = {
        "content-type": page.file.media_type,
        "content-security-policy": policy(page.inline_scripts),
        **_UNSTORED,
    }
    return RawAnswer(page.file.content, to_http(error)[0], headers)


def provider_methods(provider: ProviderSignInHandlers, logins: LoginHandlers) -> tuple[Method, ...]:
    """Public: who comes by them brings a signed attempt, or a word or code with its verifier."""
    public, own = Permission.PUBLIC, Permission.ACCOUNT_OWN
    code = "/v1/logins/{code}"
    return (
        row("GET", START, provider.begin, public),
        replace(row("GET", CALLBACK, provider.callback, public), page=True),
        row("POST", "/v1/logins:allow", logins.allow, own),
        row("POST", "/v1/logins:redeem", logins.redeem, public),
        row("POST", "/v1/logins", logins.ask, public),
        row("POST", f"{code}:allow", logins.allow_code, own),
        row("POST", f"{code}:refuse", logins.refuse_code, own),
        row("POST", f"{code}:redeem", logins.redeem_code, public),
        row("GET", code, logins.waiting, own),
    )
