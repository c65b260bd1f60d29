"""What a foreign grammar promises to the replicas of a pool: host names, and numbers in their texts. Pure.

The reader of the grammar makes PoolWords as a part of the job's Origin. `core/jobs/cluster_env.py` and
`core/jobs/launching.py` use them for each start. The texts of such a pool (command, arguments, values of
variables) may have `$(NAME)` for what is known only when a replica is placed. `$$(NAME)` is `$(NAME)` itself.
All other text stays as it is. Each value is short, so that no text can grow without limit.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

# What texts may name where programs start others in other replicas (`core/jobs/remote_start.py`).
REMOTE_PROGRAM, HOST_LIST = "remote-program", "host-list"
OWN_FOLDER, LOOPBACK = "own-folder", "loopback"  # known only where replicas share a machine
_REMOTE = frozenset({REMOTE_PROGRAM, HOST_LIST, OWN_FOLDER, LOOPBACK})
HOST = "$(host)"  # in a row of the list of hosts

JOB_INDEX, POD_INDEX, GLOBAL_INDEX = "job-index", "pod-index", "job-global-index"
_NUMBERS = frozenset({JOB_INDEX, POD_INDEX, GLOBAL_INDEX})

# Variables of every replica that its texts may name.
VARIABLES = frozenset(
    {
        *("MASTER_ADDR", "MASTER_PORT", "PET_MASTER_ADDR", "PET_MASTER_PORT"),
        *("RANK", "PET_NODE_RANK", "TRAINSHED_ATTEMPT"),
    }
)
_REFERENCE = re.compile(r"(\$?)\$\(([^()$]*)\)")
_HOST = re.compile(r"host-([0-9])-([0-9]{1,4})")


def is_late(name: str) -> bool:
    """Whether `$(name)` is known only when a replica is placed."""
    return name in VARIABLES | _NUMBERS | _REMOTE or _HOST.fullmatch(name) is not None


def host_reference(pool: int, index: int) -> str:
    """What stands for the address of that replica in the texts of any replica."""
    return f"$(host-{pool}-{index})"


@dataclass(frozen=True, slots=True)
class LateValues:
    """What one replica knows once it is placed."""

    values: Mapping[str, str]
    hosts: Mapping[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])

    def fill(self, text: str) -> str:
        return _REFERENCE.sub(self._value, text) if "$(" in text else text

    def fill_all(self, texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.fill(text) for text in texts)

    def _value(self, match: re.Match[str]) -> str:
        name = match[2]
        place = _HOST.fullmatch(name)
        value = self.hosts.get((int(place[1]), int(place[2]))) if place else self.values.get(name)
        if value is None:
            return match[0]
        if match[1]:
            return match[0][1:]
        has_port = match.string.startswith(":", match.end())  # an IPv6 address before one stands in brackets
        return f"[{value}]" if has_port and ":" in value else value


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteWords:
    """The part of a pool in a job whose programs start programs in other replicas."""

    serves: bool  # its replicas start what others ask for; else their programs are those that ask
    row: str = ""  # of each of its replicas in the list of hosts; empty: they are not in it
    list_place: str  # where programs look for that list


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolWords:
    hosts: tuple[str, ...] = ()  # names of each replica, with $(NAME) for its numbers
    group: int = 1  # so many replicas of the pool are one job of the grammar
    first: int = 0  # the number of the pool's first job, among those of all pools
    remote: RemoteWords | None = None  # None: no program starts another one elsewhere

    def numbers(self, index: int) -> dict[str, str]:
        job, pod = divmod(index, self.group)
        return {JOB_INDEX: str(job), POD_INDEX: str(pod), GLOBAL_INDEX: str(self.first + job)}

    def names(self, index: int) -> tuple[str, ...]:
        """The names by which other replicas reach this one."""
        return _names(self, index)

    def late_values(
        self, index: int, env: Mapping[str, str], hosts: Mapping[tuple[int, int], str]
    ) -> LateValues:
        """Of the replica with these variables, given the addresses of all."""
        known = {name: env[name] for name in VARIABLES if name in env}
        return LateValues(known | self.numbers(index), hosts)


@functools.lru_cache(maxsize=4096)  # every replica of a job asks for the names of all
def _names(words: PoolWords, index: int) -> tuple[str, ...]:
    return LateValues(words.numbers(index)).fill_all(words.hosts)
