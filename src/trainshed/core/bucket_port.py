"""The ports to buckets and their objects. Each numbered promise has a contract test.

The adapters in `buckets/` implement them; the service and `control/` call them.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from trainshed.core.bucket import (
    ALWAYS,
    WHOLE,
    Attributes,
    BucketInfo,
    ObjectDraft,
    ObjectInfo,
    ObjectListing,
    ObjectQuery,
    Precondition,
    Span,
    Upload,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """Which promises buckets keep. Each adapter declares it; nobody asks for its class.

    Every bucket keeps the promises that are not named here.
    """

    creates: bool = True  # buckets are made, labelled and removed here; else they are those of the settings
    # 8; else no empty, `.` or `..` part nor one of over 255 bytes, no control character, no backslash, and
    # none that goes on below another.
    any_name: bool = True
    sorted: bool = True  # 7; else in an order of the store's own, in which pages fit together all the same
    rising: bool = True  # 5: generations rise; else they only differ where contents do
    locks_up_to: int | None = None  # 3 holds for objects of so many bytes; larger ones are only looked at
    reads_on: bool = True  # 2: a reader goes on with what it began; else it may break off, never mix
    notices_damage: bool = True  # 6; else in whole reads of what was put through here
    changes: bool = True  # attributes of an object can be changed
    lists_all: bool = True  # a list tells of an object all that `get` does; else no attributes, no CRC32C
    # 11; else a request that is sent again is a new one, and objects go after the one made of them is there.
    remembers: bool = True
    versions: bool = True  # 12; else there are no old versions, and asking for them is Invalid
    own_time: bool = True  # times are those of our clock; else of the store's, to the second


# Calls a function in one of the threads, with the descriptor of a client's socket that has room and does not
# block. The function sends bytes there and returns how many. None: the client is gone.
SocketSender: TypeAlias = Callable[[Callable[[int], int], Executor], Awaitable[int | None]]


@dataclass(frozen=True, slots=True)
class ObjectReading:
    """Bytes of an object that are being read: the object, their offset, their number, the bytes.

    `sent` has most of them sent by the sender; what it yields is to be sent before it goes on. Not every
    bucket has it.
    """

    info: ObjectInfo
    first: int
    length: int
    chunks: AsyncIterator[bytes]
    sent: Callable[[SocketSender], AsyncIterator[bytes]] | None = None


class Bucket(Protocol):
    """The objects of one bucket.

    1. what put has returned survives kill -9 and, on a sane disk, a power cut; until then the old object
       stands.
    2. a reader sees one object whole, the old or the new, also while it is replaced or deleted.
    3. of writers with the same precondition at the same time, exactly one succeeds.
    4. a hash given with the bytes is checked, and an object whose bytes do not have it never comes to be.
    5. every content has its size, CRC32C, soon its MD5 (at once where asked), and a generation higher than
       any before it in the bucket.
    6. bytes that are not those stored are noticed when read, also in part, and never given out: Damaged.
    7. a list is in the order of the names' UTF-8 bytes; pages neither miss nor double what stays.
    8. any valid name is kept apart from every other, and none leads outside of the bucket.
    9. an upload in pieces keeps what it has acknowledged over a restart, and can be asked where it stands.
    10. memory does not grow with the size of an object, and nothing blocks the event loop.
    11. objects that a draft removes go in the same commit in which its own comes to be. A named request that
       was carried out is not carried out again within a day: it gets the first answer.
    12. where the bucket keeps versions, an object that is replaced, or deleted without its generation, stays
       under its generation: told, read, copied, changed, and deleted by it for good. 1 and 6 hold for it.
    """

    name: str
    abilities: Abilities

    async def get(self, name: str, generation: int | None = None) -> ObjectInfo:
        """NotFound where there is none, or none of that generation any more."""
        ...

    async def find(self, query: ObjectQuery) -> ObjectListing: ...

    async def answered(self, request: str) -> ObjectInfo | None:
        """The object that the request of that name made, where it was carried out already."""
        ...

    async def put(self, draft: ObjectDraft, chunks: AsyncIterator[bytes]) -> ObjectInfo: ...

    async def copy(self, draft: ObjectDraft, source: ObjectInfo) -> ObjectInfo:
        """A new object with the bytes of one of these buckets; they may be shared: none is ever changed."""
        ...

    async def read(
        self,
        name: str,
        span: Span = WHOLE,
        generation: int | None = None,
        precondition: Precondition = ALWAYS,
    ) -> ObjectReading: ...

    async def change(
        self,
        name: str,
        to: Callable[[Attributes], Attributes],
        generation: int | None = None,
        precondition: Precondition = ALWAYS,
        request: str = "",
    ) -> ObjectInfo:
        """Other attributes for the same bytes; the metageneration is raised."""
        ...

    async def delete(
        self,
        name: str,
        generation: int | None = None,
        precondition: Precondition = ALWAYS,
        request: str = "",
    ) -> None: ...

    async def begin(self, draft: ObjectDraft) -> Upload:
        """Start an upload in pieces. The precondition is checked now, and again at the end."""
        ...

    async def upload(self, upload: str) -> Upload: ...

    async def append(self, upload: str, offset: int, chunks: AsyncIterator[bytes]) -> Upload:
        """Keep bytes from `offset` on; what is there already is passed over. Invalid where some would be
        missing.

        Where the chunks break off, those that came are kept.
        """
        ...

    async def finish(self, upload: str, *, crc32c: str = "", md5: str = "") -> ObjectInfo:
        """The object of all bytes that came; done once, however often asked."""
        ...

    def received(self, upload: str) -> AsyncIterator[bytes]:
        """The bytes that an upload has so far."""
        ...

    async def abandon(self, upload: str) -> None: ...


class Buckets(Protocol):
    """All buckets of a server.

    1. create and remove survive kill -9; a bucket with anything in it is never removed.
    2. open gives a Bucket for a name without asking; what is done with one that is not there is NotFound.
    3. of buckets kept together, one copies what is in the other.
    """

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def create(self, info: BucketInfo) -> BucketInfo: ...

    async def all(self) -> tuple[BucketInfo, ...]:
        """In the order of their names."""
        ...

    async def get(self, bucket: str) -> BucketInfo: ...

    async def change(
        self,
        bucket: str,
        to: Callable[[BucketInfo], BucketInfo],
        metageneration: int | None = None,
    ) -> BucketInfo:
        """Other labels, versioning or lifecycle; the metageneration is raised."""
        ...

    async def remove(self, bucket: str, metageneration: int | None = None) -> None: ...

    def open(self, bucket: str) -> Bucket: ...

    def together(self, one: str, other: str) -> bool: ...
