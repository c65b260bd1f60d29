"""Supervises runs in pods: from the pod's creation to the end of its last process.

The backend calls it, and tells it how pods change. It keeps a channel to the init of every pod that runs. The
init's word counts first; where it is silent, what Kubernetes says of its container; where nobody knows how a
run ended, it is lost. An end is shown only when all output is here and nothing of the run is alive. The pods
of a gang begin their programs together, once each of them has answered.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from trainshed.backends.cluster.api import ApiFault, ClusterApi, Object
from trainshed.backends.cluster.channel import ChannelBroken, PodChannel
from trainshed.backends.cluster.pod_state import PodState, state_of
from trainshed.backends.cluster.run import PodRun
from trainshed.backends.machine.init_record import parse_record
from trainshed.background_tasks import BackgroundTasks
from trainshed.core.names import ReplicaName
from trainshed.core.ports import RunFiles
from trainshed.core.replica import Exit

_KILLING = 10.0  # seconds of killing after which the caller gets control back
_UNLAUNCHED = 10.0  # seconds for which a gang waits for replicas that nobody launches
_AGAIN = 0.2  # seconds between two orders to kill
_SILENT = 3.0  # seconds after which the pod of an init that does not listen is deleted
_LEAVING = 2.0  # seconds for an init to end after it was told that all is here
_LEAST_PAUSE, _MOST_PAUSE = 0.05, 2.0  # seconds before a pod that did not answer is tried again
_KILLED, _ASKED = 9, 15


@dataclass(slots=True, eq=False)
class _Supervision:
    """What the supervisor has for one run while that is alive."""

    channel: PodChannel
    news: asyncio.Event = field(default_factory=asyncio.Event)  # its pod or its record has changed
    is_told: bool = False  # that its program may begin
    is_awaited: bool = False  # its launch waits for it, and needs no hints


class PodRunSupervisor:
    def __init__(
        self,
        api: ClusterApi,
        files: RunFiles,
        hint: Callable[[PodRun], None],
        peers: Callable[[ReplicaName], Iterable[PodRun]],
        is_node_silent: Callable[[str], bool],
    ) -> None:
        """`peers` gives the runs of a replica's attempt."""
        self._api, self._files, self._hint, self._peers = api, files, hint, peers
        self._is_node_silent = is_node_silent
        self._background = BackgroundTasks()
        self._supervised: dict[PodRun, _Supervision] = {}
        self._by_pod: dict[str, PodRun] = {}

    async def close(self) -> None:
        await self._background.close()

    def supervise(self, run: PodRun, token: str, *, may_have_begun: bool) -> None:
        """Its pod was created. It may have begun by itself, or by the word of an earlier server."""
        if run in self._supervised or run.gone.is_set():
            return
        output = self._files.output(run.key.name)
        channel = PodChannel(self._api, run.pod, token, output, run.base)
        self._supervised[run] = _Supervision(channel, is_told=may_have_begun)
        self._by_pod[run.pod] = run
        run.show_alive()
        self._background.run(self._follow(run, self._supervised[run]))

    def pod_changed(self, pod: Object, is_gone: bool) -> None:
        run = self._by_pod.get(str(pod["metadata"]["name"]))
        if run is None:
            return
        state = None if is_gone else state_of(pod)
        if state == run.state:
            return
        waits_for = run.state.waits_for if run.state is not None else ""
        run.state = state
        if state is not None and state.waits_for != waits_for and not run.record.begun:
            run.show_alive()
            self._hint_of_start(run)
        self._tell(run)

    async def begun(self, run: PodRun, patience: float) -> None:
        """Wait until its program has begun or can never begin, or the patience is over."""
        supervision = self._supervised.get(run)
        if supervision is None:
            return
        supervision.is_awaited = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while not run.record.begun and not run.gone.is_set():
                    await self._news(run, patience)
        supervision.is_awaited = False

    async def ask(self, run: PodRun) -> None:
        if run.asked or run.gone.is_set():
            return
        run.asked = True
        run.mark("asked")
        if not self._may_have_begun(run):
            await self._withdraw(run, _ASKED)
        elif (supervision := self._supervised.get(run)) is not None:
            supervision.channel.order("term")

    async def kill(self, run: PodRun) -> None:
        """Kill all of it, until it is gone or the time is up."""
        run.killed = True
        if not self._may_have_begun(run):
            await self._withdraw(run, _KILLED)
            return
        loop, supervision = asyncio.get_running_loop(), self._supervised.get(run)
        began = loop.time()
        while supervision is not None and not run.gone.is_set() and loop.time() < began + _KILLING:
            is_heard = supervision.channel.order("kill")
            is_late = loop.time() > began + _SILENT
            if is_late and not is_heard and run.state is not None and not run.state.is_leaving:
                await self._api.delete("pods", run.pod, grace=1)
            await run.pause(_AGAIN)
        if not run.gone.is_set() and run.state is not None and run.state.has_not_begun:
            await self._withdraw(run, _KILLED)  # its node was told to end it, and has not begun it since

    # One run

    async def _follow(self, run: PodRun, supervision: _Supervision) -> None:
        pause = _LEAST_PAUSE
        try:
            while not run.gone.is_set():
                state = run.state
                if state is None or state.is_over:
                    self._conclude(run, state)
                elif state.is_running and state.address:
                    began = asyncio.get_running_loop().time()
                    with contextlib.suppress(ChannelBroken):
                        await supervision.channel.follow(state.address, lambda text: self._read(run, text))
                    if run.record.exit is not None:
                        self._end(run, run.record.exit)
                        continue
                    lasted = asyncio.get_running_loop().time() - began
                    pause = _LEAST_PAUSE if lasted > _MOST_PAUSE else min(pause * 2, _MOST_PAUSE)
                    if self._is_node_silent(state.node):
                        self._lose(run)
                    else:
                        await self._news(run, pause)
                else:
                    await self._news(run, None)
        finally:
            self._supervised.pop(run, None)
            self._by_pod.pop(run.pod, None)

    def _read(self, run: PodRun, text: bytes) -> None:
        """The init has told its record: for the first time, or because something happened."""
        supervision = self._supervised.get(run)
        if supervision is None:
            return
        before, run.record = run.record, parse_record(text)
        if run.record != before:
            run.keep_record(text)
        if run.record.exit is not None:
            supervision.channel.order("done")
            self._background.run(self._hang_up(run, supervision))
            return
        if run.killed or run.asked:
            supervision.channel.order("kill" if run.killed else "term")
        elif not run.record.begun:
            self._begin_gang(run)
        run.show_alive()
        if run.record != before:
            self._tell(run)
            if run.record.held is None:
                self._hint_of_start(run)
            else:
                self._hint(run)

    def _hint_of_start(self, run: PodRun) -> None:
        supervision = self._supervised.get(run)
        if supervision is None or not supervision.is_awaited:
            self._hint(run)

    async def _hang_up(self, run: PodRun, supervision: _Supervision) -> None:
        """Where an init stays although it was told that all is here, its connection is given up."""
        await run.pause(_LEAVING)
        supervision.channel.hang_up()

    def _begin_gang(self, run: PodRun, *, is_late: bool = False) -> None:
        """Tell all pods of its gang to begin, where each of them has answered.

        One that was not even launched for a while is not waited for.
        """
        latest: dict[tuple[int, int], PodRun] = {}
        for peer in self._peers(run.key.name):
            place = (peer.key.name.pool, peer.key.name.index)
            if place not in latest or latest[place].key.run < peer.key.run:
                latest[place] = peer
        there = [peer for peer in latest.values() if self._has_answered(peer)]
        if len(there) < (len(latest) if is_late else run.gang):
            if len(latest) < run.gang and not is_late:
                self._background.run(self._begin_later(run))
            return
        for peer in there:
            supervision = self._supervised.get(peer)
            if supervision is not None and not peer.record.begun and not peer.killed and not peer.asked:
                supervision.is_told |= supervision.channel.order("go")

    async def _begin_later(self, run: PodRun) -> None:
        await run.pause(_UNLAUNCHED)
        if not run.gone.is_set() and not run.record.begun:
            self._begin_gang(run, is_late=True)

    def _has_answered(self, run: PodRun) -> bool:
        supervision = self._supervised.get(run)
        return run.record.begun or (supervision is not None and supervision.channel.is_open)

    def _conclude(self, run: PodRun, state: PodState | None) -> None:
        """Its container has ended, or the pod is gone: as much as anybody can know is known now."""
        if state is not None and state.record:
            text = state.record.encode()
            if (record := parse_record(text)).held is not None and record.exit is None:
                text += b"exit 0 0\n"  # its place was kept, and is gone: what was held is its end
            run.record = parse_record(text)
            if run.record.exit is not None:
                with contextlib.suppress(OSError):  # the pod has it too
                    run.keep_record(text)
                self._end(run, run.record.exit)
                return
        if state is not None and state.out_of_memory:
            self._end_by(run, _KILLED, oom=1)
        elif run.killed:
            self._end_by(run, _KILLED)
        elif run.asked and not run.record.begun:
            self._end_by(run, _ASKED)
        else:
            self._lose(run)

    def _lose(self, run: PodRun) -> None:
        """Nobody can know how it ended. Should its machine come back, nothing of it may run on there."""
        run.mark("lost")
        self._background.run(self._take_away(run))
        self._end(run, Exit())

    async def _take_away(self, run: PodRun) -> None:
        with contextlib.suppress(ApiFault):
            await take_away(self._api, run.pod)

    def _end_by(self, run: PodRun, signal: int, *, oom: int = 0) -> None:
        """It was killed, and its init could not tell: write that for it."""
        with contextlib.suppress(OSError):  # on a full disk it is remembered as long as this server lives
            run.write_end(signal, oom)
        self._end(run, Exit(signal=signal))

    def _end(self, run: PodRun, exit: Exit) -> None:
        if run.gone.is_set():
            return
        run.show_end(exit)
        self._tell(run)
        self._hint(run)

    def _may_have_begun(self, run: PodRun) -> bool:
        supervision, state = self._supervised.get(run), run.state
        if run.record.begun or supervision is None:
            return True
        if state is not None and state.has_not_begun:
            # What is known of it may be a moment old, and one that waits for nobody begins by itself.
            return supervision.is_told and run.gang == 1 and bool(state.node)
        return supervision.is_told

    async def _withdraw(self, run: PodRun, signal: int) -> None:
        """Take away a pod whose program was never told to begin."""
        await take_away(self._api, run.pod)
        self._end_by(run, signal)

    def _tell(self, run: PodRun) -> None:
        if (supervision := self._supervised.get(run)) is not None:
            supervision.news.set()

    async def _news(self, run: PodRun, seconds: float | None) -> None:
        supervision = self._supervised.get(run)
        if supervision is None:
            return
        supervision.news.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(supervision.news.wait(), seconds)


async def take_away(api: ClusterApi, pod: str) -> None:
    """Delete a pod at once, with our finalizer. One that is not there is no fault."""
    try:
        await api.patch("pods", pod, {"metadata": {"finalizers": None}})
    except ApiFault as fault:
        if not fault.is_missing:
            raise
        return
    await api.delete("pods", pod, grace=0)
