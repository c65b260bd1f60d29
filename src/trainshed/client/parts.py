"""ClientParts: what else a server has beside jobs, each with a client of its own. `Client` inherits it.

Each is imported when it is asked for: a submit needs none of them.
"""

from trainshed.client.address import quoted

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from trainshed.client.accounts import AccountsClient
    from trainshed.client.connection import Connection
    from trainshed.client.costs import CostsClient
    from trainshed.client.image_caches import ImageCachesClient
    from trainshed.client.images import ImagesClient
    from trainshed.client.machines import MachinesClient
    from trainshed.client.named_secrets import NamedSecretsClient
    from trainshed.client.notices import NoticesClient
    from trainshed.client.resources import ResourcesClient
    from trainshed.client.runtimes import RuntimesClient
    from trainshed.client.shares import SharesClient
    from trainshed.client.storage import StorageClient


class ClientParts:
    url: str
    project: str
    location: str
    _token: "str | None"
    _ca: str
    _connection: "Connection"

    def place(self, location: "str | None" = None) -> str:
        """The path of the project and location all else is below."""
        return f"/v1/projects/{quoted(self.project)}/locations/{quoted(location or self.location)}"

    def storage(self) -> "StorageClient":
        """The buckets of the same server."""
        from trainshed.client.storage import StorageClient

        return StorageClient(self.url, self._token, self._ca)

    def images(self) -> "ImagesClient":
        """The images of the same server."""
        from trainshed.client.images import ImagesClient

        return ImagesClient(self._connection, self.place())

    def image_caches(self) -> "ImageCachesClient":
        from trainshed.client.image_caches import ImageCachesClient

        return ImageCachesClient(self._connection, self.place())

    def resources(self) -> "ResourcesClient":
        """The persistent resources of the same project and location."""
        from trainshed.client.resources import ResourcesClient

        return ResourcesClient(self._connection, self.place())

    def named_secrets(self) -> "NamedSecretsClient":
        """The secrets of the same project, by name."""
        from trainshed.client.named_secrets import NamedSecretsClient

        return NamedSecretsClient(self._connection, self.project)

    def runtimes(self) -> "RuntimesClient":
        """The environments of jobs on the same server."""
        from trainshed.client.runtimes import RuntimesClient

        return RuntimesClient(self._connection, self.place())

    def machines(self) -> "MachinesClient":
        """The machines and the queue of the same server."""
        from trainshed.client.machines import MachinesClient

        return MachinesClient(self._connection, self.place())

    def accounts(self) -> "AccountsClient":
        """The accounts of the same server: who may come in, and what they did."""
        from trainshed.client.accounts import AccountsClient

        return AccountsClient(self._connection)

    def shares(self) -> "SharesClient":
        """How the machines of the same server are divided among projects."""
        from trainshed.client.shares import SharesClient

        return SharesClient(self._connection)

    def costs(self, location: str) -> "CostsClient":
        """What jobs of the project cost at a location, "-" for all; "" for those of the whole server."""
        from trainshed.client.costs import CostsClient

        return CostsClient(self._connection, self.place(location) if location else "")

    def notices(self, project: str = "", *, is_own: bool = False, user: str = "") -> "NoticesClient":
        """Who is told what becomes of jobs of the project; "-" means of all projects."""
        from trainshed.client.notices import NoticesClient

        return NoticesClient(self._connection, project or self.project, is_own=is_own, user=user)
