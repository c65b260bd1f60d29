"""The machines of the server, its queue, quotas, what is prepared for jobs, and its console, as methods."""

from trainshed.client.connection import Connection, Json


class MachinesClient:
    def __init__(self, connection: Connection, place: str) -> None:
        self._connection, self._place = connection, place

    def nodes(self) -> list[Json]:
        """What is free of each machine, who holds the rest, and what it does just now."""
        return self._connection.request("GET", f"{self._place}/nodes").get("nodes", [])

    def queue(self, limit: int) -> Json:
        """The first `limit` waiting jobs in their order, with when they may start: {jobs, totalSize}."""
        return self._connection.request("GET", f"{self._place}/queue?pageSize={limit}&eta=true")

    def quotas(self) -> list[Json]:
        """What the project may have of each resource, what its share uses, and what waiting jobs ask for."""
        return self._connection.request("GET", f"{self._place}/quotas").get("quotas", [])

    def preparations(self) -> list[Json]:
        """What is made or fetched before jobs can start, and how far each is."""
        return self._connection.request("GET", f"{self._place}/preparations").get("preparations", [])

    def console_ticket(self) -> Json:
        """A ticket that signs a browser in to the console, once, within a minute."""
        return self._connection.request("POST", "/v1/console:ticket", {}, repeatable=True)
