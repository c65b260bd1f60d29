"""One installation on top of an image: the container that installs, and the image that is committed from it.

`DerivedImages` calls it, once at a time for each image, and the base image is here. The program inside
writes to a file, which is read as it grows; the init's record tells its end. The caller removes the
container and the folder afterwards, whatever the outcome.
"""

import asyncio
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trainshed.backends.container.containers import EngineContainers
from trainshed.backends.container.engine import Engine
from trainshed.backends.container.engine_errors import EngineFault, FaultKind
from trainshed.backends.container.render import LABEL
from trainshed.backends.container.render_installer import InstallerFiles, body, changes
from trainshed.backends.container.run import BLANK
from trainshed.backends.machine.additions import INSTALLER
from trainshed.backends.machine.init_record import InitRecord, parse_record
from trainshed.backends.machine.loopback import LoopbackPort, loopback_ports
from trainshed.core.errors import Unavailable
from trainshed.core.jobs.replica import Exit
from trainshed.core.supplies.image import ImageConfig
from trainshed.core.supplies.layer_port import InstallKit, PipListener
from trainshed.disk.regular_file import read_regular

LOOK = 0.1  # seconds between two reads of the record
ASK = 5.0  # seconds between two checks of the container
LONGEST = 7200.0  # seconds: an installation that hangs must not block others for ever
MOST_HEARD = 1024 * 1024  # bytes of output read at a look: what is more comes at the next ones
PATIENCE = 60.0  # seconds to wait for an engine that does not answer to the commit


class InstallFailed(Exception):
    """With the exit code of the program that failed."""

    def __init__(self, code: int, why: str = "") -> None:
        super().__init__(why)
        self.code, self.why = code, why


@dataclass(slots=True, kw_only=True)
class Installation:
    engine: Engine
    containers: EngineContainers
    base: ImageConfig
    name: str  # of its container
    folder: Path
    init: str
    home: str  # its id
    loopback: LoopbackPort
    listener: PipListener
    memory: int = 0
    _read: int = 0
    _rest: bytes = b""

    async def run(self, kit: InstallKit, moved: Callable[[], None]) -> None:
        """Install. Raises InstallFailed."""
        ports = sorted(loopback_ports(kit.addresses)) if self.loopback.folder is not None else []
        self.loopback.passed.update(ports)
        files = await asyncio.to_thread(self._lay_out, kit)
        labels = {f"{LABEL}.home": self.home}
        made = body(self.base, files, kit.shown, ports=ports, labels=labels, memory=self.memory)
        try:
            await self.containers.remove(self.name)
            await self.containers.create(self.name, made)
            await self.containers.start(self.name)
        except EngineFault as fault:
            if fault.kind is FaultKind.MISSING:
                raise Unavailable(f"The image is no longer here: {fault.message}") from fault
            raise InstallFailed(1, f"The container engine does not start it: {fault.message}") from fault
        end = await self._end(files, moved)
        if end != Exit(code=0):
            raise InstallFailed(128 + end.signal if end.signal else end.code or 1)

    async def commit(self, name: str, digest: str) -> str:
        """Commit the container under a name; returns the image's id."""
        repository, _, tag = name.rpartition(":")
        query = {
            "container": self.name,
            "repo": repository,
            "tag": tag,
            "pause": False,
            "changes": changes(self.base, digest),
        }
        until = time.monotonic() + PATIENCE
        while True:
            try:
                await self.engine.ask("POST", "/commit", query, {})
                made = str((await self.engine.ask("GET", f"/images/{name}/json"))["Id"])
                return made if made.startswith("sha256:") else f"sha256:{made}"
            except EngineFault as fault:
                raise InstallFailed(1, f"The container engine does not keep it: {fault.message}") from fault
            except Unavailable:
                if time.monotonic() > until:
                    raise
            await asyncio.sleep(1.0)

    def _lay_out(self, kit: InstallKit) -> InstallerFiles:
        shutil.rmtree(self.folder, ignore_errors=True)
        tmp = self.folder / "tmp"
        tmp.mkdir(parents=True, mode=0o700)
        self.folder.chmod(0o700)
        for name, content in (("plan", json.dumps(kit.plan).encode()), ("record", BLANK), ("log", b"")):
            handle = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
        self._read, self._rest = 0, b""
        return InstallerFiles(
            init=self.init,
            installer=str(INSTALLER),
            plan=str(self.folder / "plan"),
            record=str(self.folder / "record"),
            log=str(self.folder / "log"),
            tmp=str(tmp),
            loopback=str(self.loopback.folder or ""),
        )

    async def _end(self, files: InstallerFiles, moved: Callable[[], None]) -> Exit:
        begun = asked = time.monotonic()
        while True:
            await asyncio.sleep(LOOK)
            end = _read(files.record).exit
            if self._listen(files.log):
                moved()
            if end is not None:
                return end
            now = time.monotonic()
            if now - begun > LONGEST:
                raise InstallFailed(
                    124, f"It was ended because it took longer than {LONGEST / 60:.0f} minutes."
                )
            if now - asked > ASK:
                asked = now
                await self._look(files)

    async def _look(self, files: InstallerFiles) -> None:
        """Raise InstallFailed where its container has ended and the record has no end."""
        try:
            info = await self.containers.look(self.name)
        except (EngineFault, Unavailable):
            return
        if (info is None or not info.running) and _read(files.record).exit is None:
            more = " for want of memory" if info is not None and info.out_of_memory else ""
            raise InstallFailed(1, f"Its container was ended from outside{more}.")

    def _listen(self, log: str) -> bool:
        """Pass new output to the listener; whether there was any."""
        output = read_regular(log, MOST_HEARD, self._read)
        self._read += len(output)
        *lines, rest = (self._rest + output).split(b"\n")
        self._rest = rest[-MOST_HEARD:]  # of a line that does not end, its end is what matters
        for line in lines:
            self.listener.hear(line.decode(errors="replace"))
        return bool(lines)


def _read(record: str) -> InitRecord:
    return parse_record(read_regular(record, len(BLANK)))
