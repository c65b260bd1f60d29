"""Fleet: the backends of a server as one. Nodes belong to members; a run goes where its node belongs.

The control loops and services call it and never learn which member has a run. Members may share a node, as
processes and containers share this machine: there the first member that runs the image gets it. While a late
member is not there (fleet_member.py) its jobs wait with a reason, and runs left in it are neither shown nor
called lost. Every member must know a run by its RunKey alone. The members never learn of each other.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from trainshed.backends.fleet_abilities import (
    FleetCallers,
    FleetImages,
    FleetNodeStats,
    FleetShells,
    FleetStacks,
    FleetStats,
    FleetViews,
    backends_there,
)
from trainshed.backends.fleet_member import Member
from trainshed.backends.fleet_sites import SiteView, Use, chosen, has_room, in_order
from trainshed.core.errors import Conflict, Unavailable
from trainshed.core.jobs.job import JobSpec
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.readiness import PreparationProgress, Readiness, ReadinessState, together
from trainshed.core.jobs.replica import Handle, Observation
from trainshed.core.metrics import Measure
from trainshed.core.names import RunKey
from trainshed.core.ports import Backend, Capabilities
from trainshed.core.queue.fleet import Admission, Node
from trainshed.core.supplies.image_port import ImageInventory


class Fleet:
    def __init__(
        self,
        members: Sequence[Member],
        uses: Mapping[str, Use] | None = None,
        accelerator_of: Callable[[str], str] = lambda device: "",
    ) -> None:
        """Of members that run the same image on the same node, the one that is named first runs it.

        Where members are at several sites, `uses` says what for each of these is used. `accelerator_of` gives
        the type by which jobs ask for a device.
        """
        self._members = members = tuple(members)
        self._uses, self._accelerator_of = uses or {}, accelerator_of
        self._sites = {
            site: tuple(member for member in members if member.site == site) for site in in_order(self._uses)
        }
        self._site_nodes: Mapping[str, tuple[Node, ...]] = {}  # as of the last look
        self._placed: dict[str, str] = {}  # the site of each job that has runs
        self._formerly: dict[str, tuple[Member, ...]] = {}  # by node, also those that are gone
        self._at_node: Mapping[str, tuple[Member, ...]] = {}  # by the node's name, as of the last look
        self.stats, self.stacks, self.shells = FleetStats(members), FleetStacks(members), FleetShells(members)
        self.views, self.images, self.callers, self.node_stats = (
            FleetViews(members),
            FleetImages(members),
            FleetCallers(members),
            FleetNodeStats(members),
        )

    @property
    def capabilities(self) -> Capabilities:
        """What any member can do, and what holds for every run."""
        each = [member.capabilities for member in self._members]
        return Capabilities(
            name=", ".join(can.name for can in each),
            survives_server=all(can.survives_server for can in each),
            kills_escapees=all(can.kills_escapees for can in each),
            measures=frozenset[Measure]().union(*(can.measures for can in each)),
            moves=any(can.moves for can in each),
            private_network=any(can.private_network for can in each),
            starts_at_once=min(can.starts_at_once for can in each),
        )

    @property
    def image_inventories(self) -> tuple[ImageInventory, ...]:
        """Of the members that are there."""
        backends = backends_there(self._members)
        return tuple(inventory for backend in backends for inventory in backend.image_inventories)

    async def start(self) -> None:
        for member in self._members:
            await member.start()

    async def close(self) -> None:
        for member in self._members:
            await member.close()

    async def nodes(self) -> tuple[Node, ...]:
        """The nodes of all members; one that several share is there once, as the first of them tells it."""
        nodes: dict[str, Node] = {}
        members: dict[str, tuple[Member, ...]] = {}
        for member in self._members:
            for node in await member.nodes():
                nodes.setdefault(node.name, node)
                members[node.name] = (*members.get(node.name, ()), member)
        self._at_node = members
        self._formerly |= members
        site_of = {name: those[0].site if self._sites else "" for name, those in members.items()}
        offered = tuple(
            replace(
                node,
                backends=_names(members[node.name]),
                site=site_of[node.name],
                accelerator=self._accelerator_of(node.gpu_kind) if node.gpus else "",
            )
            for node in nodes.values()
        )
        self._site_nodes = {site: tuple(n for n in offered if n.site == site) for site in self._sites}
        return offered

    def refuse_image(self, image: str) -> str | None:
        sentence: str | None = None
        for member in self._members:
            sentence = member.refuse(image, sentence or "")
            if sentence is None or member.owns(image):
                break
        return sentence

    def refuse_together(self, images: Sequence[str]) -> str | None:
        """Why one job cannot have all of these images; None where it can, on any node."""
        clash: list[tuple[Member, str]] = []
        for members in dict.fromkeys(self._at_node.values()) or (self._members,):
            firsts: dict[Member, str] = {}  # the first image of each member
            for image in images:
                firsts.setdefault(_runner(members, image), image)
            if len(firsts) == 1 and all(member.runs(image) for member in firsts for image in images):
                return None
            if len(firsts) > 1 and not clash:
                clash = [(member, firsts[member]) for member in members if member in firsts]
        if not clash:
            return None
        (member, image), (other, another) = clash[:2]
        return (
            f"One job cannot run both '{image}', which runs {member.runs_as}, and "
            f"'{another}', which runs {other.runs_as}: their replicas could not reach each other by the "
            "addresses in CLUSTER_SPEC. Give every worker pool a container image, or every one a runtime."
        )

    def prepare(self, spec: JobSpec, job: str = "") -> Readiness:
        """Each image is prepared by the first member that runs it, of the site where the job has runs.

        While it has none its readiness says at which sites it may be placed.
        """
        if not self._sites:
            return self._prepare_by(self._members, spec, job)
        if (site := self._placed.get(job)) is not None:
            return replace(self._prepare_by(self._sites[site], spec, job), sites=(site,))
        views: list[SiteView] = []
        is_begun = False
        for site in self._candidates(spec):
            if self._uses[site] is Use.NEEDED and views:
                continue  # another can run such a job
            readiness = self._prepare_by(self._sites[site], spec, "" if is_begun else job)
            is_begun |= readiness.standing is not ReadinessState.FAILED
            views.append(SiteView(site, readiness, self._is_away(site, spec)))
        return chosen(views)

    def _candidates(self, spec: JobSpec) -> list[str]:
        """The sites that run all images of the job; only those where it fits whole, where there are any."""
        images = {pool.image for pool in spec.pools if not pool.is_empty}
        able = [
            site
            for site, members in self._sites.items()
            if all(any(member.runs(image) for member in members) for image in images)
        ] or list(self._sites)
        if len(able) == 1:
            return able
        return [site for site in able if has_room(spec, self._site_nodes.get(site, ()))] or able

    def _is_away(self, site: str, spec: JobSpec) -> bool:
        members = self._sites[site]
        return any(_runner(members, pool.image).is_away for pool in spec.pools if not pool.is_empty)

    def _prepare_by(self, members: tuple[Member, ...], spec: JobSpec, job: str) -> Readiness:
        if len(spec.pools) == 1:
            return _runner(members, spec.pools[0].image).prepare(spec, job)
        parts = self._parts(members, spec)
        if len(parts) == 1:
            ((member, part),) = parts.items()
            return member.prepare(part, job)
        return together([member.prepare(part, job) for member, part in parts.items()])

    def preparing(self) -> tuple[PreparationProgress, ...]:
        return tuple(item for backend in backends_there(self._members) for item in backend.preparing())

    def render(self, launch: Launch) -> Mapping[str, object]:
        members = self._at_node.get(launch.placement.node, self._members)
        return _runner(members, launch.image).there().render(launch)

    async def launch(self, launch: Launch) -> Handle:
        key, node = launch.key, launch.placement.node
        members = self._at_node.get(node) or await self._members_at(node, launch)
        runner = _runner(members, launch.image)
        backend = runner.backend or await runner.get()
        for member in self._members:
            if member is runner:
                continue
            if key.name.job in member.left:
                member.there()
            if member.backend is not None and (known := await _cleared(member.backend, key)) is not None:
                return known
        if self._sites:
            self._placed[key.name.job] = runner.site
        return await backend.launch(launch)

    async def observe(self, job: str) -> tuple[Observation, ...]:
        seen: tuple[Observation, ...] = ()
        for member, backend in self._knowing(job):
            here = await backend.observe(job)
            if here and self._sites:
                self._placed[job] = member.site
            seen += here
        return seen

    async def stop(self, key: RunKey, *, force: bool) -> None:
        for _, backend in self._knowing(key.name.job):
            await backend.stop(key, force=force)

    async def remove(self, job: str) -> None:
        for member in self._members:
            member.forget(job)
        for _, backend in self._knowing(job):
            await backend.remove(job)
        self._placed.pop(job, None)

    async def jobs(self) -> frozenset[str]:
        jobs = frozenset[str]().union(*(member.left for member in self._members))
        for backend in backends_there(self._members):
            jobs |= await backend.jobs()
        return jobs

    async def address(self, admission: Admission, spec: JobSpec, avoid: frozenset[int]) -> Admission:
        places = {(place.pool, place.node) for place in admission.placements}
        runners = {_runner(await self._members_at(node), spec.pools[pool].image) for pool, node in places}
        runner = next(member for member in self._members if member in runners)
        return await (await runner.get()).address(admission, spec, avoid)

    def on_change(self, hint: Callable[[str], None]) -> None:
        for member in self._members:
            member.on_change(hint)

    # Which members

    async def _members_at(self, node: str, launch: Launch | None = None) -> tuple[Member, ...]:
        """Those that have the node; for a launch also those that had it, where they can run it elsewhere."""
        if node not in self._at_node:
            await self.nodes()
        if node in self._at_node:
            return self._at_node[node]
        had = self._formerly.get(node, self._members) if launch is not None else ()
        site = self._placed.get(launch.key.name.job) if launch is not None else None
        movers = tuple(m for m in had if m.capabilities.moves and site in (None, m.site))
        if launch is None or not any(member.runs(launch.image) for member in movers):
            raise Unavailable(f"Node '{node}' is not there now: no backend offers it.")
        return movers

    def _parts(self, members: tuple[Member, ...], spec: JobSpec) -> dict[Member, JobSpec]:
        """The job as each member sees it that has something to do for it."""
        pools = [pool for pool in spec.pools if not pool.is_empty]
        runners = [_runner(members, pool.image) for pool in pools]
        needed = [member for member in members if member in runners] or [members[0]]
        if len(needed) == 1:
            return {needed[0]: spec}
        placed = list(zip(pools, runners, strict=True))
        return {
            member: replace(spec, pools=tuple(pool for pool, runner in placed if runner is member))
            for member in needed
        }

    def _knowing(self, job: str) -> Iterator[tuple[Member, Backend]]:
        """The members that may have runs of the job; at the end Unavailable where one is not there."""
        absent: list[Member] = []
        for member in self._members:
            if job in member.left:
                absent.append(member)
            elif member.backend is not None:
                yield member, member.backend
        for member in absent:  # it may have been found meanwhile
            yield member, member.there()


def _names(members: Sequence[Member]) -> tuple[str, ...]:
    return tuple(backend.capabilities.name for backend in backends_there(members))


def _runner(members: Sequence[Member], image: str) -> Member:
    """Of members that share a node, the one that runs the image there: the first that does, else the last."""
    for member in members[:-1]:
        if member.runs(image):
            return member
    return members[-1]


async def _cleared(beside: Backend, key: RunKey) -> Handle | None:
    """No other run of that name is alive there. The handle of this very run, where it is there.

    What an image is run by may change from one server to the next; what a name stands for may not.
    """
    for seen in await beside.observe(key.name.job):
        if seen.key == key:
            return seen.handle
        if seen.key.name == key.name and seen.key.run > key.run:
            raise Conflict(f"A later run than {key} has been started.")
        if seen.key.name == key.name and seen.alive:
            await beside.stop(seen.key, force=True)
            if any(item.key == seen.key and item.alive for item in await beside.observe(key.name.job)):
                raise Unavailable(f"Run {seen.key} is still alive although it was killed: {key} has to wait.")
    return None
