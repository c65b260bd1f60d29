"""The cluster of a job of AI Platform Training: its tier, and a pool for each role. For `job.py`.

The rules of customJobs check the machine, accelerators, program and count of a role. Faults are reported
with the older API's field names. Pools come by position: master, workers, parameter servers, evaluators. A
worker on a TPU machine never ran the program; it was the TPU that the master used. It becomes the master's
accelerators. The types of all fields must have been checked before.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trainshed.core.jobs.job import Pool
from trainshed.core.queue.machine import Catalogue, ScaleTier
from trainshed.dialects.ai_platform.origin import with_roles
from trainshed.dialects.ai_platform.schema import AcceleratorConfig, ReplicaConfig, TrainingInput
from trainshed.wire import job_schema
from trainshed.wire.faults import Faults
from trainshed.wire.pool import Offer, PoolParser
from trainshed.wire.scalars import shown

ROLES = ("master", "worker", "parameter_server", "evaluator")
CUSTOM, BASIC = "CUSTOM", "BASIC"
_INPUT = "training_input"
_POOL = "pool"


class Translated(Faults):
    """Forwards faults, with each path or its prefix replaced by the name in `names`."""

    def __init__(self, faults: Faults, names: Mapping[str, str]) -> None:
        super().__init__(faults.root)
        self._to = faults
        self._names = names

    def add(self, path: str, sentence: str) -> None:
        self._to.add(self._translate(path), sentence)

    def _translate(self, path: str) -> str:
        if path in self._names:
            return self._names[path]
        first = max((name for name in self._names if path.startswith(f"{name}.")), key=len, default="")
        return f"{self._names[first]}{path[len(first) :]}" if first else path


@dataclass(frozen=True, slots=True)
class Cluster:
    tier: str
    pools: tuple[Pool, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Role:
    """The request for one role."""

    name: str
    machine: str
    count: int
    config: ReplicaConfig

    @property
    def accelerators(self) -> AcceleratorConfig:
        return self.config.accelerator_config or AcceleratorConfig()


def parse_cluster(given: TrainingInput, runtime: str, offer: Offer, faults: Faults) -> Cluster:
    """`runtime` is the image that packages run in."""
    tier = _tier(given, offer.catalogue, faults)
    roles = [_role(name, given, tier, faults) for name in ROLES]
    _check_programs(given, roles, faults)
    roles, remarks = _with_tpus(roles, offer.catalogue)
    pools = [
        _pool(number, role, roles[0], given, runtime, offer, faults) if role.count else Pool()
        for number, role in enumerate(roles)
    ]
    while pools and pools[-1].is_empty:
        pools.pop()
    offer.check_together(pools, _INPUT, faults)
    return Cluster(tier.name, with_roles(tuple(pools)), remarks)


def _tier(given: TrainingInput, catalogue: Catalogue, faults: Faults) -> ScaleTier:
    """The given tier; else CUSTOM where a machine or an image is given, else BASIC."""
    if given.scale_tier and given.scale_tier not in catalogue.tiers:
        known = ", ".join(catalogue.tiers)
        faults.add(f"{_INPUT}.scale_tier", f"must be one of {known}, not {shown(given.scale_tier)}.")
        return catalogue.tiers[CUSTOM]
    types = [getattr(given, f"{name}_type") for name in ROLES]
    images = [config.image_uri for name in ROLES if (config := getattr(given, f"{name}_config"))]
    return catalogue.tiers[given.scale_tier or (CUSTOM if any(types) or any(images) else BASIC)]


def _role(name: str, given: TrainingInput, tier: ScaleTier, faults: Faults) -> _Role:
    machine: str = getattr(given, f"{name}_type")
    config: ReplicaConfig = getattr(given, f"{name}_config") or ReplicaConfig()
    count: int = 1 if name == "master" else getattr(given, f"{name}_count")
    path = f"{_INPUT}.{name}"
    if tier.name != CUSTOM:
        for value, field in ((machine, "type"), (name != "master" and count, "count")):
            if value:
                faults.add(f"{path}_{field}", f"may only be given with scaleTier CUSTOM, not {tier.name}.")
        counts = {"master": 1, "worker": tier.workers, "parameter_server": tier.parameter_servers}
        return _Role(name, getattr(tier, name, ""), counts.get(name, 0), config)
    if count < 0:
        faults.add(f"{path}_count", f"must not be negative, as {count} is.")
        return _Role(name, machine, 0, config)
    if count and not machine and (name != "master" or given.scale_tier == CUSTOM or not config.image_uri):
        needs = "where scaleTier is CUSTOM" if name == "master" else "where a count is given"
        faults.add(f"{path}_type", f"is required {needs}, for example n1-standard-4.")
        return _Role(name, machine, 0, config)
    return _Role(name, machine, count, config)


def _check_programs(given: TrainingInput, roles: list[_Role], faults: Faults) -> None:
    master = roles[0].config
    for role in roles:
        path = f"{_INPUT}.{role.name}_config"
        for field in ("container_command", "container_args"):
            if getattr(role.config, field) and not (role.config.image_uri or master.image_uri):
                faults.add(f"{path}.{field}", "needs an imageUri: without one packages and a module are run.")
        if role.config.container_args and given.args:
            faults.add(f"{path}.container_args", "must not be given together with args.")
    if master.image_uri:
        for field in ("package_uris", "python_module", "runtime_version", "python_version"):
            if getattr(given, field):
                faults.add(f"{_INPUT}.{field}", "must not be given together with masterConfig.imageUri.")
    elif not given.python_module:
        faults.add(
            f"{_INPUT}.python_module",
            "is required, with packageUris, unless masterConfig.imageUri names an image.",
        )


def _with_tpus(roles: list[_Role], catalogue: Catalogue) -> tuple[list[_Role], tuple[str, ...]]:
    master, worker, *others = roles
    machine = catalogue.machines.get(worker.machine)
    kind, each = worker.accelerators.type, worker.accelerators.count
    if not kind and machine:
        kind, each = machine.accelerator, machine.accelerators
    if not worker.count or not kind.startswith("TPU") or master.accelerators.count:
        return roles, ()
    config = dict(vars(master.config)) | {
        "accelerator_config": AcceleratorConfig(type=kind, count=each * worker.count)
    }
    folded = _Role(master.name, master.machine, master.count, ReplicaConfig(**config))
    none = _Role(worker.name, worker.machine, 0, worker.config)
    remark = f"The {kind} of the worker is asked for by the master, which runs the program: no worker starts."
    return [folded, none, *others], (remark,)


def _pool(
    number: int,
    role: _Role,
    master: _Role,
    given: TrainingInput,
    runtime: str,
    offer: Offer,
    faults: Faults,
) -> Pool:
    own = role.config
    says = bool(own.image_uri or own.container_command or own.container_args)
    program = own if says else master.config
    image = own.image_uri or master.config.image_uri
    source = role.name if own.image_uri else master.name
    tail = ("--job-dir", given.job_dir) if given.job_dir else ()
    machine = job_schema.MachineSpec(
        machine_type=role.machine or offer.catalogue.tiers[BASIC].master,
        accelerator_type=role.accelerators.type,
        accelerator_count=role.accelerators.count,
    )
    if image:
        args = (*(program.container_args or given.args), *tail)
        run = job_schema.WorkerPoolSpec(
            replica_count=role.count,
            machine_spec=machine,
            container_spec=job_schema.ContainerSpec(
                image_uri=image, command=program.container_command, args=args
            ),
        )
    else:
        run = job_schema.WorkerPoolSpec(
            replica_count=role.count,
            machine_spec=machine,
            python_package_spec=job_schema.PythonPackageSpec(
                executor_image_uri=runtime,
                package_uris=given.package_uris,
                python_module=given.python_module,
                args=(*given.args, *tail),
            ),
        )
    config = f"{_INPUT}.{role.name}_config"
    names = {
        f"{_POOL}.machine_spec.machine_type": f"{_INPUT}.{role.name}_type",
        f"{_POOL}.machine_spec.accelerator_type": f"{config}.accelerator_config.type",
        f"{_POOL}.machine_spec.accelerator_count": f"{config}.accelerator_config.count",
        f"{_POOL}.replica_count": f"{_INPUT}.{role.name}_count",
        f"{_POOL}.container_spec": f"{_INPUT}.{source}_config",
        f"{_POOL}.python_package_spec.executor_image_uri": f"{_INPUT}.runtime_version",
        f"{_POOL}.python_package_spec": _INPUT,
    }
    return PoolParser(offer, Translated(faults, names)).parse(run, _POOL, number)
