"""Shares: the tree that divides the machines among projects. Pure.

`settings/share_file.py` reads one, `core/queue/share_use.py` counts by it, `core/queue/guarantee.py` says who
has a right to what. A share has a nominal amount of each divided resource: what its jobs can always have.
Beyond that its jobs borrow what other shares lend. A project belongs to one share; a project that no share
names belongs to the root, which has all machines and is guaranteed nothing while it has shares below it.
Where no shares are set, and a spot job is there, the tree is `UNDIVIDED`. A persistent resource is a share
too (`core/queue/persistent_resource.py`): it is reserved for the jobs that name it.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from math import inf
from typing import NamedTuple, Protocol, TypeAlias

from trainshed.core.errors import Invalid, Violation
from trainshed.core.jobs.job import Job, JobSpec
from trainshed.core.queue.machine import in_cpus, in_gib

ROOT = "root"
MOST_DEPTH = 20  # shares above each other
_SHOWN = 20  # names of shares in a violation
CPUS, MEMORY, GPUS = "cpus", "memory", "gpus"  # any other resource is a type of GPU, as jobs name it

Amounts: TypeAlias = Mapping[str, float]  # by resource; memory in bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    name: str
    parent: str = ROOT
    projects: tuple[str, ...] = ()
    nominal: Amounts = field(default_factory=dict[str, float])
    borrow: Amounts = field(default_factory=dict[str, float])  # at most beyond it; not named: no limit
    lend: Amounts = field(default_factory=dict[str, float])  # at most of what is unused; not named: all
    per_user: Amounts = field(default_factory=dict[str, float])  # what one user may have at most
    weight: float = 1
    budget: Decimal | None = None  # what its jobs may cost in a month
    is_reserved: bool = False  # of a persistent resource: it lends and borrows nothing


class _Part(Protocol):
    """A replica's need or its placement: `gpus` is a number or the devices."""

    @property
    def pool(self) -> int: ...
    @property
    def cpus(self) -> float: ...
    @property
    def memory(self) -> int: ...
    @property
    def gpus(self) -> "int | tuple[str, ...]": ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Stake:
    """What a job counts for in the tree."""

    job: str
    share: str
    user: str = ""  # empty where no limit per user applies
    amounts: Amounts
    priority: int = 0
    created_at: datetime
    is_spot: bool = False
    # Among the jobs of its share.
    place: tuple[int, datetime, str] = field(init=False, compare=False, repr=False)
    # The same for all that their shares treat alike. A text: a tuple is hashed anew each time.
    size: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        amounts = [(item, float(amount)) for item, amount in self.amounts.items()]
        object.__setattr__(self, "place", (-self.priority, self.created_at, self.job))
        object.__setattr__(self, "size", f"{self.share!r} {self.user!r} {amounts}")


class ShareLane(NamedTuple):
    """For whom a job counts."""

    share: str = ""
    is_spot: bool = False
    user: str = ""  # where a share limits what one user may have


@dataclass(frozen=True)
class ShareTree:
    """All shares by name, the root included. Make one with `share_tree`."""

    shares: Mapping[str, Share]
    divided: frozenset[str]  # the resources that nominal amounts are named for, but in reserved shares
    past: Mapping[str, Amounts] = field(default_factory=dict[str, Amounts])  # what projects had lately
    accounts: Mapping[str, datetime] = field(default_factory=dict[str, datetime])  # when each was added

    @cached_property
    def is_set(self) -> bool:
        """Whether people have set shares. Else only spot jobs give way."""
        return any(name != ROOT and not share.is_reserved for name, share in self.shares.items())

    @cached_property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        below: dict[str, list[str]] = {name: [] for name in self.shares}
        for name, share in self.shares.items():
            if name != ROOT:
                below[share.parent].append(name)
        return {name: tuple(sorted(names)) for name, names in below.items()}

    @cached_property
    def paths(self) -> Mapping[str, tuple[str, ...]]:
        """From each share up to the root."""
        return {name: _path(self.shares, name) for name in self.shares}

    @cached_property
    def upwards(self) -> tuple[str, ...]:
        """All shares, each after those below it."""
        return tuple(sorted(self.shares, key=lambda name: (-len(self.paths[name]), name)))

    @cached_property
    def reserved(self) -> tuple[str, ...]:
        return tuple(name for name, share in self.shares.items() if share.is_reserved)

    def is_parted(self, share: str) -> bool:
        """Whether other shares than reserved ones are below it."""
        return any(not self.shares[child].is_reserved for child in self.children[share])

    @cached_property
    def nominal(self) -> Mapping[str, Amounts]:
        """Of each share. One that names none of a resource has what those below it have together."""
        amounts: dict[str, dict[str, float]] = {}
        for name in self.upwards:
            named = self.shares[name].nominal
            if self.shares[name].is_reserved:
                amounts[name] = {**dict.fromkeys(self.divided, 0), **named}
                continue
            below = [child for child in self.children[name] if not self.shares[child].is_reserved]
            amounts[name] = {
                item: inf if name == ROOT else named.get(item, sum(amounts[child][item] for child in below))
                for item in self.divided
            }
        return amounts

    @cached_property
    def past_use(self) -> Mapping[tuple[str, str], float]:
        """What each share, with those below it, had lately at a time of each resource."""
        use: dict[tuple[str, str], float] = {}
        for project, amounts in self.past.items():
            for share in self.paths[self.share_of(project)]:
                for item, amount in amounts.items():
                    use[share, item] = use.get((share, item), 0) + amount
        return use

    @cached_property
    def budgets(self) -> Mapping[str, Decimal]:
        return {name: share.budget for name, share in self.shares.items() if share.budget is not None}

    @cached_property
    def _by_project(self) -> Mapping[str, str]:
        return {project: name for name, share in self.shares.items() for project in share.projects}

    def share_of(self, project: str) -> str:
        return self._by_project.get(project, ROOT)

    def share_of_job(self, job: Job) -> str:
        """The persistent resource that it names, while it is there; else the share of its project."""
        resource = job.persistent_resource
        return resource if resource in self.shares else self.share_of(job.project)

    def limit(self, share: str, item: str) -> float:
        """How much jobs of the share may have at most, borrowed included."""
        if self.shares[share].is_reserved:
            return self.nominal[share].get(item, 0)
        return self.nominal[share].get(item, inf) + self.shares[share].borrow.get(item, inf)

    @cached_property
    def limits(self) -> Mapping[str, Amounts]:
        """The limit of each share for each resource that has one; of others a reserved share has none."""
        return {
            name: {item: most for item in self.nominal[name] if (most := self.limit(name, item)) < inf}
            for name in self.shares
        }

    @cached_property
    def kept(self) -> frozenset[str]:
        """The resources of which some share does not lend all."""
        kept = (share.nominal if share.is_reserved else share.lend for share in self.shares.values())
        return frozenset[str]().union(*kept)

    @cached_property
    def bounded(self) -> frozenset[str]:
        """The shares that limit what their jobs, or those of one user, may have."""
        return frozenset(
            name
            for name, share in self.shares.items()
            if self.limits[name] or share.per_user or share.is_reserved
        )

    @cached_property
    def bounds(self) -> Mapping[str, tuple[str, ...]]:
        """Of each share, those on its path that are bounded."""
        paths = self.paths.items()
        return {share: tuple(name for name in path if name in self.bounded) for share, path in paths}

    @cached_property
    def bounded_items(self) -> frozenset[str]:
        """The resources of which some share has a nominal amount, or limits what one user may have."""
        named = (*self.nominal.values(), *(share.per_user for share in self.shares.values()))
        return frozenset[str]().union(*named)

    @cached_property
    def _with_users(self) -> frozenset[str]:
        """The shares in which it counts who the user is."""
        return frozenset(
            name for name, path in self.paths.items() if any(self.shares[above].per_user for above in path)
        )

    def groups_as(self, other: "ShareTree") -> bool:
        """Whether every job counts for the same in both, as far as a look at their parts tells."""
        return self.shares is other.shares and self.accounts is other.accounts

    def lane_of(self, job: Job) -> ShareLane:
        share = self.share_of_job(job)
        user = self._user_of(job) if share in self._with_users else ""
        return ShareLane(share, job.spec.scheduling.is_spot, user)

    def _user_of(self, job: Job) -> str:
        """Who submitted it. A job that is older than the account of that name is of a namesake before."""
        since = self.accounts.get(job.submitter)
        if since is None or job.created_at >= since:
            return job.submitter
        return f"{job.submitter} (before {since:%Y-%m-%d %H:%M:%S})"

    def stake(self, job: Job, parts: Iterable[_Part]) -> Stake:
        return stake_of(job, amounts_of(job.spec, parts), self.lane_of(job))


def stake_of(job: Job, amounts: Amounts, lane: ShareLane) -> Stake:
    return Stake(
        job=job.id,
        share=lane.share,
        user=lane.user,
        amounts=amounts,
        priority=job.spec.scheduling.priority,
        created_at=job.created_at,
        is_spot=lane.is_spot,
    )


def amounts_of(spec: JobSpec, parts: Iterable[_Part]) -> Amounts:
    """What these replicas count for: GPUs by their number, and by the type that the job names."""
    amounts: dict[str, float] = {}
    for part in parts:
        gpus = part.gpus if isinstance(part.gpus, int) else len(part.gpus)
        kind = spec.pools[part.pool].accelerator
        counts = ((CPUS, part.cpus), (MEMORY, part.memory), (GPUS, gpus), (kind, gpus if kind else 0))
        for item, count in counts:
            if count:
                amounts[item] = amounts.get(item, 0) + count
    return amounts


def share_tree(shares: Iterable[Share]) -> ShareTree:
    """The tree of these shares. Raises Invalid with every violation."""
    named = {share.name: share for share in shares}
    astray = dict(_of_parents(named))
    left = {named[name].parent for name in astray}
    named |= {name: replace(named[name], parent=ROOT) for name in astray}  # so that all can be looked at
    named.setdefault(ROOT, Share(name=ROOT, parent=""))
    divided = frozenset(item for name, share in named.items() if name != ROOT for item in share.nominal)
    tree = ShareTree(named, divided)
    faults = [Violation(f"share.{name}.parent", text) for name, text in astray.items()]
    faults += [*_of_projects(named), *_of_amounts(tree, left)]
    if faults:
        raise Invalid(tuple(faults))
    return tree


def in_amount(item: str, amount: float) -> str:
    """An amount of a resource in words."""
    if amount == inf:
        return f"any number of {item}"
    if item == MEMORY:
        return in_gib(int(amount)) if amount else "0 GiB"
    if item == CPUS:
        return f"{in_cpus(amount)} CPU{'' if amount == 1 else 's'}"
    what = item if item != GPUS else "GPU" if amount == 1 else "GPUs"
    return f"{amount:g} {what}"


def _path(shares: Mapping[str, Share], name: str) -> tuple[str, ...]:
    path = [name]
    while path[-1] != ROOT:
        path.append(shares[path[-1]].parent)
    return tuple(path)


def _of_parents(shares: Mapping[str, Share]) -> Iterable[tuple[str, str]]:
    """The shares whose parent is wrong, and why."""
    known = {ROOT, *shares}
    for name, share in shares.items():
        if name != ROOT and share.parent not in known:
            names = ", ".join(sorted(known)[:_SHOWN])
            more = f" or {len(known) - _SHOWN} others" if len(known) > _SHOWN else ""
            yield name, f"must be one of {names}{more}, not '{share.parent}'."
            continue
        path = [name]
        while (above := shares[path[-1]].parent if path[-1] in shares else ROOT) in shares and above != ROOT:
            if above in path:
                yield name, f"leads back to '{above}': a tree has no circles."
                break
            path.append(above)
            if len(path) > MOST_DEPTH:
                yield (
                    name,
                    f"is below more than {MOST_DEPTH - 1} others: name one that is nearer to the root.",
                )
                break


def _of_projects(shares: Mapping[str, Share]) -> Iterable[Violation]:
    owners: dict[str, str] = {}
    for name, share in shares.items():
        for project in share.projects:
            if owners.setdefault(project, name) != name:
                where = f"share.{name}.projects"
                yield Violation(where, f"has '{project}', which share '{owners[project]}' has too.")


def _of_amounts(tree: ShareTree, left: Container[str]) -> Iterable[Violation]:
    """Those in `left` may have no share below them only because a parent is wrong."""
    for name, share in tree.shares.items():
        below = tree.children[name]
        yield from _of_undivided(tree, share)
        if name == ROOT:
            for word in ("nominal", "borrow", "lend"):
                if getattr(share, word):
                    yield Violation(f"share.{ROOT}.{word}", "cannot be set: the root has all machines.")
            continue
        for item in sorted(tree.divided):
            if not below and item not in share.nominal and name not in left:
                why = "which other shares have: say how many, or 0."
                yield Violation(f"share.{name}.nominal", f"must name {item}, {why}")
            together = sum(tree.nominal[child][item] for child in below)
            if together > share.nominal.get(item, inf):
                has, want = in_amount(item, share.nominal[item]), in_amount(item, together)
                text = f"is {has}, and the shares below it have {want} together: raise it, or lower theirs."
                yield Violation(f"share.{name}.nominal.{item}", text)


def _of_undivided(tree: ShareTree, share: Share) -> Iterable[Violation]:
    for word in ("per_user",) if share.name == ROOT else ("borrow", "lend", "per_user"):
        for item, amount in sorted(getattr(share, word).items()):
            if item not in tree.divided:
                names = ", ".join(sorted(tree.divided)) or "none"
                text = (
                    f"is {in_amount(item, amount)}, and no share has a nominal amount of {item}. Divided are "
                    f"{names}. Name it in the nominal amounts too, or leave it out here."
                )
                yield Violation(f"share.{share.name}.{word}.{item}", text)


UNDIVIDED = share_tree(())
