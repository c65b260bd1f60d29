"""How a program in one replica starts programs in other replicas of its job, as others do over ssh. Pure.

The reader of a grammar says by RemoteWords which pools take part. `core/jobs/launching.py` makes the
RemoteRole of each launch, `service/access.py` adds the secret of the job, and a backend calls
`with_remote_program` with the place of the program that does it (`backends/machine/remote.h`). Texts of the
job name that place and what goes with it: `$(remote-program)`, `$(host-list)`, `$(own-folder)`,
`$(loopback)`. Nothing here knows what program asks.
"""

import hmac
from collections.abc import Mapping
from dataclasses import replace

from trainshed.core.jobs.launch import Launch, RemoteRole
from trainshed.core.jobs.pool_words import HOST_LIST, LOOPBACK, OWN_FOLDER, REMOTE_PROGRAM, LateValues

SERVE = "$(serve)"  # the command of a pool that does nothing but start what others ask for
SECRET, HOSTS, LIST = "TRAINSHED_REMOTE_SECRET", "TRAINSHED_REMOTE_HOSTS", "TRAINSHED_REMOTE_LIST"
PATIENCE = 600  # seconds for which a program waits for those that are to start others
_ANYWHERE = "::"  # there callers by IPv4 arrive too
_INTERFACE = "lo"  # of a machine, to itself


def remote_secret(token: str) -> str:
    """What proves that two replicas belong to one job. The job's token cannot be found from it."""
    return hmac.digest(token.encode(), b"programs in other replicas", "sha256").hex()


def with_remote_secret(launch: Launch, token: str) -> Launch:
    """The launch with the secret of the job that has this token."""
    env = {**launch.env, SECRET: remote_secret(token)}
    return replace(launch, env=env, secrets=launch.secrets | {SECRET})


def with_remote_program(launch: Launch, program: str, folder: str = "") -> Launch:
    """The launch as it is to be rendered, where the program is at this place.

    `folder`: the replica's own, where replicas share a machine. The list of hosts is there then. Else it is
    where its grammar has it, in a folder that is made for it.
    """
    role = launch.remote
    if role is None:
        return launch
    place = f"{folder}/{role.list_place.rpartition('/')[2]}" if folder else role.list_place
    values = {REMOTE_PROGRAM: program, HOST_LIST: place}
    values |= {OWN_FOLDER: folder, LOOPBACK: _INTERFACE} if folder else {}
    command, args = (_filled(words, values, role, place) for words in (launch.command, launch.args))
    env = _env(launch, values, role, place) | {HOSTS: role.servers}
    if not role.serves:
        scratch = launch.scratch if folder else _with_folder(launch, place)
        before = (program, "--launch", place, str(PATIENCE))
        env[LIST] = role.rows
        return replace(launch, env=env, command=command, args=args, before=before, scratch=scratch)
    address = launch.placement.host if _is_address(launch.placement.host) else _ANYWHERE
    server = (program, "--serve", launch.key.name.task, address, str(launch.placement.port))
    if launch.command == (SERVE,):
        return replace(launch, env=env, command=server, args=())
    return replace(launch, env=env, command=command, args=args, before=server)


def _env(launch: Launch, values: Mapping[str, str], role: RemoteRole, place: str) -> dict[str, str]:
    """Variables that name what only replicas of one machine have are for those."""
    unknown = [f"$({name})" for name in (OWN_FOLDER, LOOPBACK) if name not in values]
    wanted = {name: text for name, text in launch.env.items() if not any(word in text for word in unknown)}
    return {name: _filled((text,), values, role, place)[0] for name, text in wanted.items()}


def _filled(
    words: tuple[str, ...], values: Mapping[str, str], role: RemoteRole, place: str
) -> tuple[str, ...]:
    texts = LateValues(values).fill_all(words)
    if role.serves or place == role.list_place:
        return texts
    return tuple(text.replace(role.list_place, place) for text in texts)


def _with_folder(launch: Launch, place: str) -> tuple[str, ...]:
    """The folders made for the replica, with that of the list, unless the job has something else there."""
    folder = place.rpartition("/")[0]
    taken = {*launch.scratch, *(mount.target for mount in launch.nfs)}
    return launch.scratch if folder in taken else (*launch.scratch, folder)


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdecimal()
