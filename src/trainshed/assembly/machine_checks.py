"""Looks at this machine for all that a server needs of it. `doctor.py` calls it.

Nothing stays: what is tried is tried in a folder of its own, which goes. A server that runs here is not
disturbed. What only some jobs need is a warning, never missing.
"""

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncGenerator
from pathlib import Path

from trainshed.backends.container.engine_finder import NoEngine, look
from trainshed.backends.machine.node import LocalNode
from trainshed.backends.process.keeper import CompiledKeeper, make_keeper
from trainshed.backends.process.net import RunCgroups
from trainshed.backends.process.views import ProcessViews
from trainshed.certificates.pair import CertificatePair
from trainshed.core.checkup import Finding, Grade
from trainshed.core.errors import Unavailable
from trainshed.settings.table import GIB, Settings, SettingsError
from trainshed.store.connection import SqlError
from trainshed.store.postgres import PostgresDatabase

_COMPILER = "apt-get install gcc libc6-dev"
_ROOM = 10 * GIB


async def check_keeping(settings: Settings) -> AsyncGenerator[Finding]:
    """What every server needs: a home with room, and its database."""
    yield await asyncio.to_thread(_home, settings.home)
    if settings.database:
        yield await asyncio.to_thread(_database, settings.database)
    if settings.tls_cert is not None and settings.tls_key is not None:
        yield await asyncio.to_thread(_certificate, settings.tls_cert, settings.tls_key)


async def check_machine(settings: Settings, scratch: Path) -> AsyncGenerator[Finding]:
    """What jobs on this machine need. `scratch` is an empty folder."""
    keeper = await asyncio.to_thread(make_keeper, scratch)
    if isinstance(keeper, CompiledKeeper):
        yield Finding(what="compiler", grade=Grade.OK, sentence="what starts programs is compiled")
    else:
        sentence = "without a C compiler programs are started by a shell script: no /gcs, and no containers"
        yield Finding(what="compiler", grade=Grade.WARNING, sentence=sentence, remedy=_COMPILER)
    views = ProcessViews(scratch / "jobs", scratch / "trash", lambda _: None)
    yield _mounts(await asyncio.to_thread(views.try_to_mount, keeper))
    node = LocalNode(settings.cpus, settings.memory)
    yield await asyncio.to_thread(_groups, scratch, node)
    [machine] = await node.nodes()
    gpus = f"{len(machine.gpus)} {machine.gpu_kind}".strip() if machine.gpus else "none"
    yield Finding(what="GPUs", grade=Grade.OK, sentence=gpus)
    engine = await look(settings.engine, os.environ)
    if isinstance(engine, NoEngine):
        sentence = f"no container engine: {engine.why}. Jobs with images wait"
        yield Finding(what="engine", grade=Grade.WARNING, sentence=sentence, remedy=engine.remedy)
    else:
        yield Finding(what="engine", grade=Grade.OK, sentence=str(engine))
    if shutil.which("openssl"):
        yield Finding(what="openssl", grade=Grade.OK, sentence="certificates for Google's names can be made")
    else:
        sentence = "without openssl Google's names do not lead here inside jobs"
        yield Finding(
            what="openssl", grade=Grade.WARNING, sentence=sentence, remedy="apt-get install openssl"
        )
    yield _port(settings)


def _home(home: Path) -> Finding:
    place = next(path for path in (home, *home.parents) if path.exists())
    if not os.access(place, os.W_OK | os.X_OK):
        sentence = f"{place} cannot be written by this user"
        return Finding(
            what="home", grade=Grade.MISSING, sentence=sentence, remedy="choose another place with --home"
        )
    free = shutil.disk_usage(place).free
    sentence = f"{home}, {free / GIB:.0f} GiB free"
    if free >= _ROOM:
        return Finding(what="home", grade=Grade.OK, sentence=sentence)
    remedy = "free some space: trainshed delete, trainshed images prune, trainshed runtimes prune"
    return Finding(what="home", grade=Grade.WARNING, sentence=sentence, remedy=remedy)


def _database(url: str) -> Finding:
    database = PostgresDatabase(url)
    try:
        database.connect(writing=False).close()
    except SqlError as error:
        sentence = database.explain(error).message
    except Unavailable as error:
        sentence = error.message
    else:
        return Finding(what="database", grade=Grade.OK, sentence="PostgreSQL answers")
    remedy = "check the URL in TRAINSHED_DATABASE with: psql"
    return Finding(what="database", grade=Grade.MISSING, sentence=sentence, remedy=remedy)


def _certificate(certificate: Path, key: Path) -> Finding:
    try:
        names = CertificatePair(certificate, key).names
    except SettingsError as error:
        sentence, _, remedy = str(error).rpartition(": ")
        return Finding(what="TLS", grade=Grade.MISSING, sentence=sentence, remedy=remedy)
    return Finding(what="TLS", grade=Grade.OK, sentence=f"{certificate} is for {', '.join(names)}")


def _mounts(fault: str) -> Finding:
    if not fault:
        return Finding(what="/gcs", grade=Grade.OK, sentence="buckets can be mounted")
    sentence = f"buckets are copied instead of mounted: {fault}"
    remedy = "run the server as root, or allow user namespaces: sysctl kernel.unprivileged_userns_clone=1"
    return Finding(what="/gcs", grade=Grade.WARNING, sentence=sentence, remedy=remedy)


def _groups(scratch: Path, node: LocalNode) -> Finding:
    groups = RunCgroups(scratch, node.ceiling)
    try:
        groups.open()
        limits = groups.limits
    finally:
        groups.close()
    if limits:
        return Finding(what="cgroups", grade=Grade.OK, sentence=f"the kernel limits {' and '.join(limits)}")
    sentence = "no control groups: the server watches memory and processes itself, which takes it a moment"
    remedy = "run the server as root, or as a service with Delegate=yes"
    return Finding(what="cgroups", grade=Grade.WARNING, sentence=sentence, remedy=remedy)


def _port(settings: Settings) -> Finding:
    place = f"{settings.host}:{settings.port}"
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((settings.host, settings.port))
        except OSError as error:
            runs = (settings.home / "server.json").exists()
            sentence = "a server runs there" if runs else f"{place} is taken: {error.strerror}"
            remedy = "" if runs else "choose another port with --port"
            grade = Grade.OK if runs else Grade.WARNING
            return Finding(what="port", grade=grade, sentence=sentence, remedy=remedy)
    return Finding(what="port", grade=Grade.OK, sentence=f"{place} is free")
