"""What a backend needs to start one run of one replica: everything, and nothing to look up."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from trainshed.core.fleet import Placement
from trainshed.core.limits import SharedRoom
from trainshed.core.names import RunKey
from trainshed.core.nfs import NfsMount
from trainshed.core.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    key: RunKey
    image: str
    command: tuple[str, ...]  # replaces the image's entry point where given
    args: tuple[str, ...]
    module: str = ""  # run as `python -m module` where given
    packages: tuple[str, ...] = ()
    code: str = ""  # the folder it finds as its working directory, by id (core.code)
    working_directory: str = ""  # where in the code it starts; at its top where empty
    requirements: tuple[str, ...] = ()  # lines of a requirements file, on top of the image
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    google_env: Mapping[str, str] = field(
        default_factory=dict[str, str]
    )  # weaker; empty: Google's names mean Google
    placement: Placement
    room: SharedRoom | None = None  # what it shares with others of its job, where that was cut to fit
    peers: tuple[str, ...] = ()  # the hosts of all replicas of the job, in their order
    stdout: str  # the files its output goes straight into, opened for appending
    stderr: str
    report: str = ""  # the file it may report into, which the variable of that name tells too
    grace: timedelta = timedelta(seconds=30)
    view: View | None = None  # what it finds of buckets below /gcs
    nfs: tuple[NfsMount, ...] = ()
    disk: int = 0  # bytes it may fill; as much as there is where 0
    scratch: tuple[str, ...] = ()  # folders it finds empty, by their paths
    isolated: bool = False  # it reaches its peers and this server, and nothing else
    held: bool = False  # should its program end badly, its place is kept until it is stopped
    watched: bool = False  # where it stands may be asked while it runs
