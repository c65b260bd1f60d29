"""One run as a pod: its folder on the server, which outlives the pod, and what the server remembers of it.

    launch.json   the pod's name, where its output begins in the files of the replica, and its limits
    record        what its init wrote so far; once that has the end, nobody needs the pod any more
    created       exists before its program can begin: without a pod it is then lost, and never launched again
    asked         exists once it was asked to end
    interrupted   who else ended it, where somebody did
    files.json    which files it is brought, and which are fetched (pod_places.py)
    lost          exists once nobody can know how it ended

The backend and its parts call it from one event loop. It never talks to the cluster.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from trainshed.backends.cluster.grouping import UNDECIDED, Grouping
from trainshed.backends.cluster.pod_connection import PodRoute
from trainshed.backends.cluster.pod_places import PodPlaces, read_pod_places
from trainshed.backends.cluster.pod_state import PodState
from trainshed.backends.machine.init_record import MOST_RECORD, InitRecord, parse_record
from trainshed.backends.machine.run import MOST_LAUNCH, KnownRun, as_limit, as_plain, note_of
from trainshed.core.event import Reason
from trainshed.core.jobs.replica import Exit, Handle, Sight
from trainshed.core.names import RunKey
from trainshed.core.obstacle import Obstacle
from trainshed.core.ports import Sink
from trainshed.disk.regular_file import read_regular, write_regular

_AT_ONCE = timedelta(seconds=2)  # events that are no further apart may have one cause


@dataclass(slots=True, eq=False)
class PodRun(KnownRun):
    pod: str  # its name
    _: KW_ONLY
    base: tuple[int, int] = (0, 0)  # where its output begins in the replica's files
    gang: int = 1  # pods that begin together
    gpus: int = 0
    record: InitRecord = field(default_factory=InitRecord)
    state: PodState | None = None  # as the cluster shows it; None: there is no such pod
    has_limits: bool = True
    killed: bool = False  # it was to be ended at once
    reaches: bool = False  # its pod has ports that lead to the server
    places: PodPlaces = field(default_factory=PodPlaces)  # of its files, here
    bringing: str = ""  # how far its files are, a sentence, while they are on their way
    has_spy: bool = False  # py-spy was brought there by this server
    isolated: bool = False  # a network policy keeps its job apart
    grouping: Grouping = UNDECIDED
    names: tuple[str, ...] = ()  # of other tools, by which its peers find it
    has_hosts: bool = False  # its pod has a file of names of its own
    aliases: tuple[tuple[str, str], ...] = ()  # addresses and names in it that are always the same
    route: PodRoute = field(default_factory=PodRoute)  # what is known of the way to its pod
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def begins_alone(self) -> bool:
        """Whether its program begins without a word of the server."""
        return self.gang == 1 and not self.places.waits

    @property
    def handle(self) -> Handle:
        return {"pod": self.pod}

    def read(self) -> InitRecord:
        return self.record

    def refused_processes(self) -> str:
        return ""

    def host_orders(self, peers: "Iterable[PodRun]") -> str:
        """What its init is to be told of its peers' names, as lines."""
        rows = list(self.aliases)
        for peer in peers:
            state = peer.state
            if state is not None and state.is_running and state.address and not peer.gone.is_set():
                names = (*peer.names, peer.key.name.task) if peer is self else peer.names
                rows += [(state.address, name) for name in names]
        return "".join(f"host {address} {name}\n" for address, name in rows)

    # The files

    def prepare(self, output: Sink) -> None:
        """Write where its output will begin, before there can be any: once, however often it is launched."""
        if os.path.exists(f"{self.folder}/launch.json"):
            return
        os.makedirs(self.folder, 0o700, exist_ok=True)
        self.base = (_size(output.stdout), _size(output.stderr))
        launch = {
            "pod": self.pod,
            "base": self.base,
            "gang": self.gang,
            "gpus": self.gpus,
            "hold": self.holds,
            "reaches": self.reaches,
            "isolated": self.isolated,
            "group": self.grouping.name,
            "queue": self.grouping.queue,
            "names": self.names,
            "has_hosts": self.has_hosts,
            "aliases": self.aliases,
            "memory": as_plain(self.memory),
            "created_at": self.created_at.timestamp(),
        }
        write_regular(f"{self.folder}/.launch.json", json.dumps(launch).encode())
        os.rename(f"{self.folder}/.launch.json", f"{self.folder}/launch.json")

    def keep_record(self, text: bytes) -> None:
        write_regular(f"{self.folder}/.record", text[:MOST_RECORD])
        os.rename(f"{self.folder}/.record", f"{self.folder}/record")

    def write_end(self, signal: int, oom: int) -> None:
        """As its init would have written it."""
        now = time.time_ns()
        began = int(self.record.started_at.timestamp() * 1e9) if self.record.started_at else now
        text = f"init {self.record.boot or '-'} {began}\noom {oom}\nsignal {signal} {now}\n".encode()
        self.record = parse_record(text)
        self.keep_record(text)

    def unmark(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(f"{self.folder}/{name}")

    def mark(self, name: str) -> None:
        with contextlib.suppress(OSError):  # on a full disk it is remembered as long as this server lives
            write_regular(f"{self.folder}/{name}", b"")

    def add_note(self, sentence: str) -> None:
        """After what is said of it already; an empty one adds nothing."""
        self.note = f"{self.note} {sentence}".strip()

    def note_interruption(self, sentence: str) -> None:
        """Somebody else ends it: a later server is to know that too."""
        self.interrupted = sentence
        self.leave_note("interrupted", sentence)

    @property
    def is_lost(self) -> bool:
        return self.observation is not None and self.observation.sight is Sight.LOST

    @property
    def ended_by_itself(self) -> bool:
        """Whether its program ended well before somebody deleted its pod.

        Pods of a drained node are deleted one after another, and a program may end because a peer is gone.
        """
        ended, deleted = self.record.ended_at, self.state.deleted_at if self.state else None
        return (
            self.record.unasked and ended is not None and deleted is not None and ended + _AT_ONCE < deleted
        )

    # How it is shown

    def show_alive(self) -> None:
        if self.gone.is_set():
            return
        started_at, self.node = self.record.started_at, self.state.node if self.state else self.node
        if started_at is None:
            self.show(Sight.STARTING, None, obstacle=self._obstacle())
        elif self.record.held is not None:
            ended_at, memory = self.record.ended_at, self.killed_for_memory if self.record.oom else ""
            self.show(Sight.HELD, started_at, exit=self.record.held, ended_at=ended_at, out_of_memory=memory)
        else:
            self.show(Sight.RUNNING, started_at)

    def _obstacle(self) -> Obstacle | None:
        """Why it has not begun: its files are on their way, or what its pod waits for."""
        if self.bringing:
            return Obstacle(reason=Reason.STARTING, message=self.bringing, remedy="It starts by itself.")
        return self.state.obstacle if self.state else None

    def show_end(self, exit: Exit) -> None:
        record = self.record
        self.unstarted = self.unstarted or record.unstarted
        self.node = self.state.node if self.state else self.node
        self.show(
            Sight.LOST if exit.lost else Sight.ENDED,
            record.started_at or self.created_at,
            exit=exit,
            ended_at=record.ended_at or (self.state and self.state.ended_at) or datetime.now(UTC),
            out_of_memory=self.killed_for_memory if record.oom else "",
        )


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0


def _grouping(launch: dict[str, Any]) -> Grouping:
    return Grouping(
        name=str(launch.get("group") or ""),
        queue=str(launch.get("queue") or ""),
        count=int(launch.get("gang") or 0),
    )


def reload_run(key: RunKey, path: Path) -> PodRun:
    """A run as an earlier server left it."""
    launch: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        launch = json.loads(read_regular(path / "launch.json", MOST_LAUNCH))
    out, err = launch.get("base") or (0, 0)
    run = PodRun(
        key,
        str(path),
        str(launch.get("pod") or ""),
        base=(int(out), int(err)),
        gang=int(launch.get("gang") or 1),
        gpus=int(launch.get("gpus") or 0),
        holds=bool(launch.get("hold")),
        reaches=bool(launch.get("reaches")),
        isolated=bool(launch.get("isolated")),
        grouping=_grouping(launch),
        names=tuple(map(str, launch.get("names") or ())),
        has_hosts=bool(launch.get("has_hosts")),
        aliases=tuple((str(address), str(name)) for address, name in launch.get("aliases") or ()),
        memory=as_limit(launch.get("memory")),
        asked=(path / "asked").exists(),
        interrupted=note_of(path, "interrupted"),
        places=read_pod_places(str(path)),
    )
    run.created_at = datetime.fromtimestamp(float(launch.get("created_at") or 0), UTC)
    with contextlib.suppress(OSError):
        run.record = parse_record(read_regular(path / "record", MOST_RECORD))
    if run.record.exit is not None:
        run.show_end(run.record.exit)
    elif (path / "lost").exists():
        run.show_end(Exit())
    return run
