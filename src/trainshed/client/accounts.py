"""The accounts of the server, their groups, roles and tokens, and the audit log, as methods."""

from trainshed.client.address import query, quoted
from trainshed.client.connection import Connection, Json


class AccountsClient:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def me(self) -> Json:
        """Who the server takes us for."""
        return self._connection.request("GET", "/v1/accounts:me")

    def all(self) -> list[Json]:
        return self._connection.request("GET", "/v1/accounts").get("accounts", [])

    def add(self, name: str, kind: str, display_name: str) -> Json:
        body: Json = {"name": name, "kind": kind, "displayName": display_name}
        return self._connection.request("POST", "/v1/accounts", body)

    def set_disabled(self, name: str, is_disabled: bool) -> Json:
        return self._connection.request("PATCH", f"/v1/accounts/{quoted(name)}", {"disabled": is_disabled})

    def unlink(self, name: str) -> Json:
        return self._connection.request("POST", f"/v1/accounts/{quoted(name)}:unlink", {}, repeatable=True)

    def remove(self, name: str) -> None:
        self._connection.request("DELETE", f"/v1/accounts/{quoted(name)}")

    def groups(self) -> list[Json]:
        return self._connection.request("GET", "/v1/groups").get("groups", [])

    def set_group(self, name: str, members: list[str]) -> Json:
        return self._connection.request("PUT", f"/v1/groups/{quoted(name)}", {"members": members})

    def remove_group(self, name: str) -> None:
        self._connection.request("DELETE", f"/v1/groups/{quoted(name)}")

    def policy(self, project: str) -> Json:
        """The roles in a project; without one, on the whole server."""
        return self._connection.request("POST", f"{_place(project)}:getIamPolicy", {}, repeatable=True)

    def set_policy(self, project: str, policy: Json) -> Json:
        return self._connection.request("POST", f"{_place(project)}:setIamPolicy", {"policy": policy})

    def tokens(self, account: str = "") -> list[Json]:
        return self._connection.request("GET", f"/v1/tokens{query({'account': account})}").get("tokens", [])

    def make_token(self, body: Json) -> Json:
        """The answer's `token` is the token itself, which nobody can see again."""
        return self._connection.request("POST", "/v1/tokens", body)

    def revoke(self, token: str) -> None:
        self._connection.request("DELETE", f"/v1/tokens/{quoted(token)}")

    def redeem_login(self, word: str, verifier: str) -> Json:
        """The `token` of a login that was allowed in a browser of this machine."""
        return self._connection.request("POST", "/v1/logins:redeem", {"word": word, "verifier": verifier})

    def ask_login(self, challenge: str, title: str) -> Json:
        """A login that somebody may allow in any browser: {code, path, expireTime}."""
        return self._connection.request("POST", "/v1/logins", {"challenge": challenge, "title": title})

    def redeem_code(self, code: str, verifier: str) -> Json:
        """Its `token`, or {waiting: true} while nobody has allowed it."""
        path = f"/v1/logins/{quoted(code)}:redeem"
        return self._connection.request("POST", path, {"verifier": verifier})

    def audited(self, limit: int, **asked: object) -> list[Json]:
        """The newest rows of the audit log, at most so many: who, project, refused."""
        rows: list[Json] = []
        token: object = ""
        while True:
            page = query({**asked, "pageSize": limit - len(rows), "pageToken": token})
            answer = self._connection.request("GET", f"/v1/audit{page}")
            rows += answer.get("rows", [])
            token = answer.get("nextPageToken", "")
            if not token or len(rows) >= limit:
                return rows


def _place(project: str) -> str:
    return f"/v1/projects/{quoted(project)}" if project else "/v1/server"
