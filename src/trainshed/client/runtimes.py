"""The server's runtimes as methods: list, build, follow a build, remove. `Client.runtimes()` makes it.

Answers are the server's JSON. `built` outlasts a restart of the server; the other methods ask once.
"""

from collections.abc import Iterator

from trainshed.client.connection import Connection, Json
from trainshed.client.errors import Interrupted, Unreachable
from trainshed.client.notation import loads
from trainshed.client.resume import RetryBudget


class RuntimesClient:
    def __init__(self, connection: Connection, place: str) -> None:
        self._connection = connection
        self._path = f"{place}/runtimes"

    def all(self) -> list[Json]:
        """The environments jobs can run in: built, being built, and those that could be built."""
        return self._connection.request("GET", self._path).get("runtimes", [])

    def build(self, name: str, requirements: list[str]) -> Json:
        """Starts the build of a runtime with these requirements, unless it exists."""
        body = {"name": name, "requirements": requirements}
        return self._connection.request("POST", f"{self._path}:build", body, repeatable=True)

    def follow(self, identity: str) -> Iterator[Json]:
        """The states of a build as they change; the last is its outcome."""
        for line in self._connection.lines(f"{self._path}/{identity}:follow"):
            yield loads(line)

    def built(self, name: str, requirements: list[str]) -> Iterator[Json]:
        """Builds a runtime and follows the build to its end.

        A restart of the server ends a build: this then asks for it again.
        """
        budget = RetryBudget()
        begun: Json = {}
        while True:
            try:
                begun = self.build(name, requirements)
                yield begun
                for state in self.follow(str(begun["id"])) if begun.get("id") else ():
                    budget.restore()
                    yield state
                return
            except (Interrupted, Unreachable) as error:
                if not begun:
                    raise
                budget.spend(error)

    def remove(self, identity: str) -> Json:
        return self._connection.request("DELETE", f"{self._path}/{identity}")

    def prune(self) -> list[Json]:
        """Removes every runtime that no job wants; returns those removed."""
        return self._connection.request("POST", f"{self._path}:prune", {}).get("removed", [])
