"""The persistent resources of a project and location, as methods."""

from trainshed.client.address import query, quoted
from trainshed.client.connection import Connection, Json


class ResourcesClient:
    def __init__(self, connection: Connection, place: str) -> None:
        self._connection, self._path = connection, f"{place}/persistentResources"

    def create(self, id: str, body: Json) -> Json:
        """The operation that creates it."""
        return self._connection.request("POST", self._path + query({"persistentResourceId": id}), body)

    def find(self) -> list[Json]:
        resources: list[Json] = []
        token: str | None = None
        while token != "":
            page = self._connection.request("GET", self._path + query({"pageToken": token}))
            resources += page.get("persistentResources", [])
            token = page.get("nextPageToken", "")
        return resources

    def get(self, resource: str) -> Json:
        """It may be given by its full name."""
        return self._connection.request("GET", self._place(resource))

    def delete(self, resource: str) -> Json:
        """The operation that deletes it."""
        return self._connection.request("DELETE", self._place(resource))

    def _place(self, resource: str) -> str:
        return f"/v1/{resource}" if resource.startswith("projects/") else f"{self._path}/{quoted(resource)}"
