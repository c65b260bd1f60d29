"""The Launch: everything a backend needs to start one run of one replica, wherever its machine is.

`core/jobs/launching.py` makes it; backends read it. It names no file of the server: a backend whose replicas
see the server's disk asks `core.ports.RunFiles` for those that they write.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from trainshed.core.google import GoogleAccess
from trainshed.core.jobs.limits import SharedRoom
from trainshed.core.jobs.nfs import NfsMount
from trainshed.core.names import RunKey
from trainshed.core.queue.fleet import Placement
from trainshed.core.view import View

# The label of a job that names a queue of its cluster, as people write it for Kueue.
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRole:
    """The part of a replica where programs start programs in other replicas (`core/jobs/remote_start.py`)."""

    serves: bool  # it starts what others ask for; else its program is one that asks
    servers: str  # those that serve, a word each: NAME,NAME=HOST:PORT
    rows: str  # the list of hosts, as programs read it
    list_place: str  # where programs look for that list


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    key: RunKey
    image: str
    command: tuple[str, ...]  # replaces the image's entry point where given
    args: tuple[str, ...]
    before: tuple[str, ...] = ()  # a program of ours that becomes or accompanies all that, with its arguments
    remote: RemoteRole | None = None
    module: str = ""  # run as `python -m module` where given
    packages: tuple[str, ...] = ()
    code: str = ""  # the id of the folder that is its working directory (core.supplies.code)
    working_directory: str = ""  # where in the code it starts; empty: at the top
    requirements: tuple[str, ...] = ()  # lines of a requirements file, on top of the image
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    secrets: frozenset[str] = frozenset()  # names in `env` whose values no file of a run may have
    # The contents of files that its user alone may read, by name. They are gone when the run is.
    secret_files: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    google: GoogleAccess | None = None  # None: Google's host names lead to Google
    placement: Placement
    accelerator: str = ""  # the type of GPU it asks for; any will do where no machine has that type
    room: SharedRoom | None = None  # what the job's replicas share, where the job was cut to fit
    peers: tuple[str, ...] = ()  # the hosts of all replicas of the job, in their order
    names: tuple[tuple[str, ...], ...] = ()  # further names of each of these hosts; empty: they have none
    grace: timedelta = timedelta(seconds=30)
    view: View | None = None  # the buckets that it sees below /gcs
    nfs: tuple[NfsMount, ...] = ()
    disk: int = 0  # bytes it may fill; 0: no limit
    scratch: tuple[str, ...] = ()  # paths of folders that are empty at its start
    isolated: bool = False  # it reaches its peers and this server, and nothing else
    held: bool = False  # if its program fails, keep its files and network until it is stopped
    queue: str = ""  # of a cluster, as the job names it; empty: it names none
    watched: bool = False  # its stacks may be taken while it runs
