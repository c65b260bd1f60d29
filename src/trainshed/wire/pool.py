"""One worker pool: checks the machine, the program and the count, and renders a pool as JSON.

`custom_job` and the dialects call it. The types of all fields must have been checked before. Names are
looked up in the server's `Offer`; a refusal of an unknown name suggests similar ones. A pool without any
field is empty and keeps its position, since the position is the role.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from trainshed.core.accounts.permission import Principal
from trainshed.core.jobs.job import MAX_ENV, MAX_REPLICAS, Pool
from trainshed.core.jobs.named_secret import FILE_SCHEME, NAME_RULE, SCHEME, reference_of
from trainshed.core.jobs.nfs import MOST as MOST_MOUNTS
from trainshed.core.jobs.nfs import NfsMount, folder_fault
from trainshed.core.jobs.nfs import faults as mount_faults
from trainshed.core.jobs.secret import MASK, JobSecrets, is_secret_name, shown_env
from trainshed.core.queue.machine import Catalogue, Machine
from trainshed.core.supplies.image import hidden_sentence, is_seen
from trainshed.core.supplies.package import faults as package_faults
from trainshed.wire import base, enums, job_schema, scalars, staged
from trainshed.wire.faults import Faults
from trainshed.wire.job_schema import ContainerSpec, EnvVar, MachineSpec, PythonPackageSpec

REDUCER_MACHINE = "n1-highcpu-16"  # as in Google's own examples
REDUCER_POOL = 2
LARGEST_PROGRAM = 1024 * 1024  # bytes of command, arguments and environment together
LARGEST_DISK = 64_000  # GiB
SHOWN = 6  # known names in a refusal, where none is similar
LARGEST_WORD = 128 * 1024 - 1  # bytes of one argument or variable: the limit of Linux

_MASKED = (
    f'is "{MASK}", which stands for a secret in answers: give the value itself, and "secret": true '
    "unless the name of the variable says so."
)
_REDUCER_IMAGE = re.compile(r"(?:.*/)?reduction-?server(?:[:@].*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a server offers: its machine types, and why an image cannot run there (None: it can)."""

    catalogue: Catalogue
    refuse_image: Callable[[str], str | None]
    refuse_together: Callable[[Sequence[str]], str | None] = lambda _: None  # the images of one job

    def to(self, principal: Principal) -> "Offer":
        """What it offers them: no images named after projects of which they may see nothing."""
        if principal.sees_all:
            return self

        def refuse_image(image: str) -> str | None:
            return self.refuse_image(image) if is_seen(image, principal) else hidden_sentence(image)

        return replace(self, refuse_image=refuse_image)

    def check_together(self, pools: Sequence[Pool], path: str, faults: Faults) -> None:
        """Record a fault where the images cannot run in one job."""
        images = tuple(dict.fromkeys(pool.image for pool in pools if not pool.is_empty and pool.image))
        if len(images) > 1 and not faults.under(path) and (refusal := self.refuse_together(images)):
            faults.add(path, refusal)


class PoolParser:
    """Converts pools to core values and collects faults. The values are valid only if there are none.

    Values of secrets are in `secrets`, and not in the pools. A masked value is that of `before`, the
    secrets of an earlier job, where these have it.
    """

    def __init__(self, offer: Offer, faults: Faults, before: JobSecrets | None = None) -> None:
        self._offer = offer
        self._faults = faults
        self._before = before or {}
        self.secrets: dict[int, dict[str, str]] = {}

    def parse(self, pool: job_schema.WorkerPoolSpec, path: str, number: int) -> Pool:
        if pool.is_empty and not self._faults.under(path):
            return Pool()
        machine = self._machine(pool.machine_spec, f"{path}.machine_spec")
        program = self._program(pool, path, number)
        extras = base.write(pool, job_schema.PoolExtras)
        if pool.machine_spec and (machine_extras := base.write(pool.machine_spec, job_schema.MachineExtras)):
            extras["machineSpec"] = machine_extras
        image = str(program.get("image", ""))
        mounts = self._mounts(pool.nfs_mounts, f"{path}.nfs_mounts")
        return Pool(
            **machine,
            **program,
            replicas=self._replicas(pool.replica_count, f"{path}.replica_count"),
            is_reducer=number == REDUCER_POOL and bool(_REDUCER_IMAGE.fullmatch(image)),
            nfs=mounts,
            disk=self._disk(pool.disk_spec, f"{path}.disk_spec"),
            scratch=self._scratch(pool.scratch_dirs, mounts, f"{path}.scratch_dirs"),
            extras=extras,
        )

    def parse_machines(
        self, spec: MachineSpec | None, count: int | None, path: str, extras: dict[str, object]
    ) -> Pool:
        """A number of machines, without a program."""
        machine = self._machine(spec, f"{path}.machine_spec")
        replicas = self._replicas(count, f"{path}.replica_count")
        return Pool(**machine, replicas=replicas, extras=extras)

    def parse_reducer(self, reducer: job_schema.ReductionServerSpec, path: str) -> Pool:
        """Some documents put the reducers inside the pool they serve. Google's API has them as pool 2."""
        if reducer.container_spec is None:
            self._faults.add(f"{path}.container_spec", "is required: it names the reducer's image.")
        spec = reducer.machine_spec or MachineSpec(machine_type=REDUCER_MACHINE)
        return Pool(
            **self._machine(spec, f"{path}.machine_spec"),
            **self._container(
                reducer.container_spec or ContainerSpec(), f"{path}.container_spec", REDUCER_POOL
            ),
            replicas=self._replicas(reducer.replica_count, f"{path}.replica_count"),
            is_reducer=True,
        )

    def _replicas(self, count: int | None, path: str) -> int:
        if count is None:
            return 1
        if not 1 <= count <= MAX_REPLICAS:
            self._faults.add(path, f"must be between 1 and {MAX_REPLICAS}, not {count}.")
        return count

    def _mounts(self, specs: tuple[job_schema.NfsMountSpec, ...], path: str) -> tuple[NfsMount, ...]:
        if not specs:
            return ()
        mounts = tuple(
            NfsMount(server=s.server, path=s.path, mount_point=s.mount_point, read_only=s.read_only)
            for s in specs
        )
        if len(mounts) > MOST_MOUNTS:
            self._faults.add(path, f"must have at most {MOST_MOUNTS} mounts, not {len(mounts)}.")
        for number, field, sentence in mount_faults(mounts):
            self._faults.add(f"{path}[{number}].{field}", sentence)
        return mounts

    def _scratch(self, paths: tuple[str, ...], mounts: tuple[NfsMount, ...], path: str) -> tuple[str, ...]:
        taken = [mount.target for mount in mounts] if paths else []
        if len(paths) > MOST_MOUNTS:
            self._faults.add(path, f"must have at most {MOST_MOUNTS} folders, not {len(paths)}.")
        for number, folder in enumerate(paths):
            if sentence := folder_fault(folder) if folder.startswith("/") else "must begin with a slash.":
                self._faults.add(f"{path}[{number}]", sentence)
            elif folder in paths[:number] or folder in taken:
                self._faults.add(f"{path}[{number}]", f"is given twice: {_quoted(folder)}.")
        return paths

    def _disk(self, spec: job_schema.DiskSpec | None, path: str) -> int:
        """The disk limit of a replica in bytes; 0 is no limit."""
        size = spec.boot_disk_size_gb if spec else 0
        if size and not 1 <= size <= LARGEST_DISK:
            self._faults.add(
                f"{path}.boot_disk_size_gb", f"must be between 1 and {LARGEST_DISK}, not {size}."
            )
        return size << 30

    def _machine(self, spec: MachineSpec | None, path: str) -> dict[str, Any]:
        spec = spec or MachineSpec()
        machine = self._offer.catalogue.machine(spec.machine_type)
        if not spec.machine_type:
            self._faults.add(f"{path}.machine_type", "is required, for example n1-standard-4.")
        elif machine is None:
            self._faults.add(
                f"{path}.machine_type", _unknown_machine(spec.machine_type, self._offer.catalogue)
            )
        accelerator, count = self._accelerators(spec, machine, path)
        return {
            "machine_type": spec.machine_type,
            "cpus": machine.cpus if machine else 0,
            "memory": machine.memory if machine else 0,
            "accelerator": accelerator,
            "accelerators": count,
        }

    def _accelerators(self, spec: MachineSpec, machine: Machine | None, path: str) -> tuple[str, int]:
        kind, count = spec.accelerator_type, spec.accelerator_count
        known = self._offer.catalogue.accelerators
        if kind and kind not in known:
            sentence = f"{_quoted(kind)} is not a known accelerator type.{_near(kind, known) or _all(known)}"
            self._faults.add(f"{path}.accelerator_type", sentence)
        if count < 0:
            self._faults.add(f"{path}.accelerator_count", f"must not be negative, as {count} is.")
        elif kind and not count:
            self._faults.add(
                f"{path}.accelerator_count", "must be at least 1 where acceleratorType is given."
            )
        elif count and not kind and not (machine and machine.accelerators):
            self._faults.add(f"{path}.accelerator_type", "is required where acceleratorCount is given.")
        if machine is None or not machine.accelerators:
            return kind, count
        has = f"{machine.name} comes with {machine.accelerators} {machine.accelerator}"
        if kind in known and kind != machine.accelerator:
            self._faults.add(f"{path}.accelerator_type", f"does not fit: {has}, not {kind}.")
        elif count > 0 and count != machine.accelerators:
            self._faults.add(f"{path}.accelerator_count", f"does not fit: {has}, not {count}.")
        return machine.accelerator, machine.accelerators

    def _program(self, pool: job_schema.WorkerPoolSpec, path: str, number: int) -> dict[str, Any]:
        container, package = pool.container_spec, pool.python_package_spec
        if container is not None and package is not None:
            self._faults.add(f"{path}.python_package_spec", "must not be given together with containerSpec.")
        if container is None and package is None and not self._faults.under(f"{path}.python_package_spec"):
            self._faults.add(
                f"{path}.container_spec", "is required: exactly one of containerSpec, pythonPackageSpec."
            )
        if container is not None:
            return self._container(container, f"{path}.container_spec", number)
        if package is not None:
            return self._package(package, f"{path}.python_package_spec", number)
        return {}

    def _container(self, spec: ContainerSpec, path: str, number: int) -> dict[str, Any]:
        self._image(spec.image_uri, f"{path}.image_uri")
        env = self._env(spec.env, f"{path}.env", number)
        self._size((*spec.command, *spec.args), env, path)
        command, packages = staged.unwrap(spec.command)
        program = {
            "image": spec.image_uri,
            "command": command,
            "args": spec.args,
            "env": self._concealed(env, spec.env, number),
        }
        return program | {"packages": packages} if packages else program

    def _package(self, spec: PythonPackageSpec, path: str, number: int) -> dict[str, Any]:
        self._image(spec.executor_image_uri, f"{path}.executor_image_uri")
        if not spec.python_module:
            self._faults.add(f"{path}.python_module", "is required, for example trainer.task.")
        elif not all(word.isidentifier() for word in spec.python_module.split(".")):
            sentence = (
                f"must be a module's dotted name such as trainer.task, not {_quoted(spec.python_module)}."
            )
            self._faults.add(f"{path}.python_module", sentence)
        for at, why in package_faults(spec.package_uris):
            self._faults.add(f"{path}.package_uris[{at}]", why)
        env = self._env(spec.env, f"{path}.env", number)
        self._size(spec.args, env, path)
        return {
            "image": spec.executor_image_uri,
            "packages": spec.package_uris,
            "module": spec.python_module,
            "args": spec.args,
            "env": self._concealed(env, spec.env, number),
        }

    def _image(self, image: str, path: str) -> None:
        if not image:
            self._faults.add(path, "is required.")
        elif refusal := self._offer.refuse_image(image):
            self._faults.add(path, refusal)

    def _env(self, env: tuple[EnvVar, ...], path: str, pool: int) -> tuple[tuple[str, str], ...]:
        """The variables with their real values."""
        if len(env) > MAX_ENV:
            self._faults.add(path, f"must have at most {MAX_ENV} variables, not {len(env)}.")
        seen: set[str] = set()
        for number, variable in enumerate(env):
            where = f"{path}[{number}].name"
            if not variable.name:
                self._faults.add(where, "is required.")
            elif "=" in variable.name or not variable.name.isprintable():
                self._faults.add(
                    where,
                    f"must be printable characters without '=', which {scalars.shown(variable.name)} is not.",
                )
            elif variable.name in seen:
                self._faults.add(where, f"is given twice: {_quoted(variable.name)}.")
            seen.add(variable.name)
        before = self._before.get(pool, {})
        values = [before.get(item.name, MASK) if item.value == MASK else item.value for item in env]
        for number, value in enumerate(values):
            if value == MASK:
                self._faults.add(f"{path}[{number}].value", _MASKED)
            elif value.startswith((SCHEME, FILE_SCHEME)) and not reference_of(value):
                scheme = SCHEME if value.startswith(SCHEME) else FILE_SCHEME
                self._faults.add(f"{path}[{number}].value", f"names no secret: {scheme}NAME has {NAME_RULE}.")
        return tuple((variable.name, value) for variable, value in zip(env, values, strict=True))

    def _concealed(
        self, env: tuple[tuple[str, str], ...], given: tuple[EnvVar, ...], pool: int
    ) -> tuple[tuple[str, str], ...]:
        """The variables with masks; the values of secrets go to `secrets`."""
        marked = {
            item.name
            for item in given
            if (item.secret or item.value == MASK or is_secret_name(item.name))
            and not reference_of(item.value)
        }
        if not marked:
            return env
        self.secrets[pool] = {name: value for name, value in env if name in marked}
        return tuple((name, MASK if name in marked else value) for name, value in env)

    def _size(self, words: Sequence[str], env: Sequence[tuple[str, str]], path: str) -> None:
        total = 0
        for word in (*words, *(f"{name}={value}" for name, value in env)):
            size = len(word) if word.isascii() else len(word.encode())
            total += size + 1
            if size > LARGEST_WORD:
                self._faults.add(
                    path, f"has an argument or variable of {size} bytes; Linux takes {LARGEST_WORD}."
                )
        if total > LARGEST_PROGRAM:
            sentence = (
                f"has {total} bytes of command, arguments and environment; at most {LARGEST_PROGRAM} fit."
            )
            self._faults.add(path, sentence)


def _unknown_machine(name: str, catalogue: Catalogue) -> str:
    instead = _near(name, catalogue.machines) or _all(catalogue.families)
    return f"{_quoted(name)} is not a known machine type.{instead}"


def _near(name: str, known: Iterable[str]) -> str:
    # Limit the length: matching compares the name with every candidate.
    close = difflib.get_close_matches(name[:64], list(known), n=3, cutoff=0.75)
    return f" Did you mean {' or '.join(close)}?" if close else ""


def _all(known: Iterable[str]) -> str:
    names = list(known)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f" Known are {', '.join(names[:SHOWN])}{more}."


def _quoted(name: str) -> str:
    return f'"{name[:100]}"'


def render_machine(pool: Pool, *, enum_ints: bool) -> dict[str, Any]:
    machine: dict[str, Any] = {"machineType": pool.machine_type}
    if pool.accelerator:
        machine["acceleratorType"] = enums.render_enum(
            pool.accelerator, enums.ACCELERATORS, as_ints=enum_ints
        )
        machine["acceleratorCount"] = pool.accelerators
    return machine


def render_pool(pool: Pool, *, enum_ints: bool) -> dict[str, Any]:
    if pool.is_empty:
        return {}
    machine = render_machine(pool, enum_ints=enum_ints)
    answer: dict[str, Any] = {"machineSpec": machine, "replicaCount": str(pool.replicas)}
    program: dict[str, Any]
    if pool.module:
        answer["pythonPackageSpec"] = program = {"executorImageUri": pool.image}
        if pool.packages:
            program["packageUris"] = list(pool.packages)
        program["pythonModule"] = pool.module
    else:
        answer["containerSpec"] = program = {"imageUri": pool.image}
        if pool.command:
            program["command"] = staged.wrap(pool.command, pool.packages)
    if pool.args:
        program["args"] = list(pool.args)
    if pool.env:
        program["env"] = [{"name": name, "value": value} for name, value in shown_env(pool)]
    for name, extra in pool.extras.items():
        if name == "machineSpec" and isinstance(extra, dict):
            machine.update(cast("dict[str, object]", extra))
        else:
            answer[name] = extra
    return answer
