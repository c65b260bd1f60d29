"""Supervises runs in pods: from the pod's creation to the end of its last process.

The backend calls it, and tells it how pods change. It keeps a channel to the init of every pod that runs. The
init's word counts first; where it is silent, what Kubernetes says of its container; where nobody knows how a
run ended, it is lost. An end is shown only when all output is here and nothing of the run is alive. The pods
of a gang begin their programs together, once each of them has answered.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

from trainshed.backends.cluster.api import ApiFault, ClusterApi
from trainshed.backends.cluster.channel import PodChannel
from trainshed.backends.cluster.file_exchange import FileExchange
from trainshed.backends.cluster.gang_start import GangStart
from trainshed.backends.cluster.job_objects import take_away, take_away_at_last
from trainshed.backends.cluster.objects import Object
from trainshed.backends.cluster.pod_connection import ChannelBroken, PodDoor
from trainshed.backends.cluster.pod_reach import unheard_note
from trainshed.backends.cluster.pod_state import PodState
from trainshed.backends.cluster.run import PodRun
from trainshed.backends.cluster.surroundings import Surroundings
from trainshed.backends.cluster.tunnel import PodTunnel
from trainshed.backends.machine.init_record import parse_record
from trainshed.backends.machine.loopback import LoopbackPort
from trainshed.background_tasks import BackgroundTasks
from trainshed.core.jobs.replica import Exit
from trainshed.core.ports import RunFiles

_KILLING = 10.0  # seconds of killing after which the caller gets control back
_AGAIN = 0.2  # seconds between two orders to kill
_SILENT = 3.0  # seconds after which the pod of an init that does not listen is deleted
_UNHEARD = 30.0  # seconds more for a silent node of which no init has spoken
_UNBEGUN = 10.0  # seconds for a node to tell of a pod that was deleted before its container began
_UNPLACED = 10.0  # seconds after which it is looked at whether the node that a pod waits for can take it
_LEAVING = 2.0  # seconds for an init to end after it was told that all is here
_LEAST_PAUSE, _MOST_PAUSE = 0.05, 2.0  # seconds before a pod that did not answer is tried again
_KILLED, _ASKED = 9, 15
_UNFETCHED = (
    "Its program ended well, but what it wrote below /gcs was gone with its pod before it was fetched."
)


@dataclass(slots=True, eq=False)
class _Supervision:
    """What the supervisor has for one run while that is alive."""

    channel: PodChannel
    news: asyncio.Event = field(default_factory=asyncio.Event)  # its pod or its record has changed
    is_told: bool = False  # that its program may begin
    is_awaited: bool = False  # its launch waits for it, and needs no hints
    tunnel: "asyncio.Task[None] | None" = None  # by which its programs reach the server, once it has answered
    exchange: FileExchange | None = None  # of its files, where it has any
    last: bytes = b""  # the record with its end, while files are still fetched


class PodRunSupervisor:
    def __init__(
        self,
        api: ClusterApi,
        files: RunFiles,
        hint: Callable[[PodRun], None],
        surroundings: Surroundings,
        loopback: LoopbackPort,
    ) -> None:
        self._api, self._files, self._hint, self._loopback = api, files, hint, loopback
        self._around = surroundings
        self._background = BackgroundTasks()
        self._supervised: dict[PodRun, _Supervision] = {}
        self._by_pod: dict[str, PodRun] = {}
        self._gangs = GangStart(surroundings, self._may_begin, self._begin, self._background)

    async def close(self) -> None:
        await self._background.close()

    def supervise(self, run: PodRun, token: str, *, may_have_begun: bool) -> None:
        """Its pod was created. It may have begun by itself, or by the word of an earlier server."""
        if run in self._supervised or run.gone.is_set():
            return
        output = self._files.output(run.key.name)
        door = PodDoor(api=self._api, pod=run.pod, token=token, route=run.route)
        channel = PodChannel(door, output, run.base)
        exchange = FileExchange(run, door, lambda: self._exchanged(run)) if run.places else None
        self._supervised[run] = _Supervision(channel, is_told=may_have_begun, exchange=exchange)
        if exchange is not None and exchange.gcs is not None:
            exchange.others = lambda: self._sharing(run)
        self._by_pod[run.pod] = run
        run.show_alive()
        self._background.run(self._follow(run, self._supervised[run]))

    def pod_changed(self, pod: Object, is_gone: bool) -> None:
        run = self._by_pod.get(str(pod["metadata"]["name"]))
        if run is None:
            return
        state = None if is_gone else self._around.read_state(pod)
        if state == run.state:
            return
        before, run.state = run.state, state
        if state is not None and not run.record.begun and (before is None or before.shows != state.shows):
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

    def take_away(self, run: PodRun) -> None:
        """Remove the pod of a run that is lost, in the background, unless there is a new one of its name."""
        is_meant = lambda: self._by_pod.get(run.pod) in (None, run)  # noqa: E731
        self._background.run(take_away_at_last(self._api, run.pod, is_meant))

    # One run

    async def _follow(self, run: PodRun, supervision: _Supervision) -> None:
        pause = _LEAST_PAUSE
        try:
            while not run.gone.is_set():
                state = run.state
                if state is None or state.is_over:
                    self._conclude(run, state)
                elif state.is_leaving and state.has_not_begun:
                    # Our finalizer would keep it as it is for ever, since nobody is to say that it is over.
                    if not state.node or not await self._news(run, _UNBEGUN):
                        self._conclude(run, state)
                elif state.is_running and state.address:
                    began = asyncio.get_running_loop().time()
                    with contextlib.suppress(ChannelBroken):
                        await supervision.channel.follow(state.address, lambda text: self._read(run, text))
                    if run.record.exit is not None:
                        await self._look_once_more(run, run.record.exit)
                        self._end(run, run.record.exit)
                        continue
                    lasted = asyncio.get_running_loop().time() - began
                    pause = _LEAST_PAUSE if lasted > _MOST_PAUSE else min(pause * 2, _MOST_PAUSE)
                    if self._around.is_node_silent(state.node):
                        self._lose(run, f"Node {state.node} is gone or does not answer any more.")
                    else:
                        await self._news(run, pause)
                elif state.node and self._around.is_node_silent(state.node):
                    # No init has spoken yet, so nothing but its lease tells of the node: that may be late.
                    if not await self._news(run, _UNHEARD) and self._around.is_node_silent(state.node):
                        self._lose(run, f"Node {state.node} is gone or does not answer any more.")
                elif state.node:
                    await self._news(run, _MOST_PAUSE)
                elif not await self._news(run, _UNPLACED) and (why := await self._around.displace(run)):
                    run.note_interruption(why)
        finally:
            if supervision.tunnel is not None:
                supervision.tunnel.cancel()
            self._supervised.pop(run, None)
            self._by_pod.pop(run.pod, None)

    def _read(self, run: PodRun, text: bytes) -> None:
        """The init has told its record: for the first time, or because something happened."""
        supervision = self._supervised.get(run)
        if supervision is None:
            return
        if supervision.exchange is not None and not self._has_files(supervision, supervision.exchange, text):
            return
        before, run.record = run.record, parse_record(text)
        if run.record != before:
            run.keep_record(text)
        if run.record.unheard and not run.note.endswith(unheard := unheard_note(run.record.unheard)):
            run.add_note(unheard)
        if run.record.exit is not None:
            supervision.channel.order("done")
            self._background.run(self._hang_up(run, supervision))
            return
        self._open_tunnel(run, supervision)
        if run.killed or run.asked:
            supervision.channel.order("kill" if run.killed else "term")
        elif not run.record.begun:
            self._gangs.look(run)
        else:
            self._tell_names(run, supervision)
        run.show_alive()
        if run.record != before:
            self._tell(run)
            if run.record.held is None:
                self._hint_of_start(run)
            else:
                self._hint(run)

    def _open_tunnel(self, run: PodRun, supervision: _Supervision) -> None:
        address = run.state.address if run.state is not None else ""
        if self._loopback.dial is not None and supervision.tunnel is None and run.reaches and address:
            tunnel = PodTunnel(supervision.channel.door, self._loopback.dial, run.key.name.job)
            supervision.tunnel = self._background.run(tunnel.keep(address))

    # Its files

    def _has_files(self, supervision: _Supervision, exchange: FileExchange, text: bytes) -> bool:
        """Whether the record may count. One with an end has to wait until all that was written is here."""
        record = parse_record(text)
        if not exchange.is_begun:
            exchange.is_begun = True
            exchange.is_there |= record.begun  # by the word of an earlier server, which had brought all
            self._background.run(exchange.follow())
        if record.exit is None or exchange.is_whole:
            return True
        supervision.last = text
        exchange.end()
        return False

    def _exchanged(self, run: PodRun) -> None:
        """All that it is brought is there, or all that it wrote is here, or there is a new sentence."""
        supervision = self._supervised.get(run)
        if supervision is None or supervision.exchange is None:
            return
        if supervision.exchange.is_whole and supervision.last:
            self._read(run, supervision.last)
        elif not run.record.begun:
            run.show_alive()
            if supervision.exchange.is_there and not run.killed and not run.asked:
                self._gangs.look(run)
            self._hint_of_start(run)

    def _sharing(self, run: PodRun) -> list[FileExchange]:
        """The exchanges of other runs with the same view."""
        others = [self._supervised.get(peer) for peer in self._around.peers(run.key.name)]
        exchanges = [other.exchange for other in others if other is not None and other.exchange is not None]
        same = [peer for peer in exchanges if peer.gcs is not None and peer.gcs.top == run.places.gcs]
        return [peer for peer in same if peer.run is not run]

    def _hint_of_start(self, run: PodRun) -> None:
        supervision = self._supervised.get(run)
        if supervision is None or not supervision.is_awaited:
            self._hint(run)

    async def _hang_up(self, run: PodRun, supervision: _Supervision) -> None:
        """Where an init stays although it was told that all is here, its connection is given up."""
        await run.pause(_LEAVING)
        supervision.channel.hang_up()

    def _begin(self, run: PodRun) -> None:
        supervision = self._supervised.get(run)
        if supervision is None or run.killed or run.asked:
            return
        self._tell_names(run, supervision)
        if not run.record.begun:
            supervision.is_told |= supervision.channel.order("go")

    def _tell_names(self, run: PodRun, supervision: _Supervision) -> None:
        """Where its peers are now, by their names of other tools; it may have missed that one has moved."""
        if run.has_hosts:
            orders = run.host_orders(self._around.peers(run.key.name))
            supervision.channel.order(f"{orders}hosts")

    def _may_begin(self, run: PodRun) -> bool:
        """Whether its pod has answered and has its files, or has begun already."""
        supervision = self._supervised.get(run)
        if run.record.begun or supervision is None:
            return run.record.begun
        exchange = supervision.exchange
        return supervision.channel.is_open and (exchange is None or exchange.is_there)

    def _conclude(self, run: PodRun, state: PodState | None) -> None:
        """Its container has ended, or the pod is gone: as much as anybody can know is known now."""
        if run.record.exit is not None:
            self._end(run, run.record.exit)
            return
        if state is not None and state.record:
            text = state.record.encode()
            if (record := parse_record(text)).held is not None and record.exit is None:
                text += b"exit 0 0\n"  # its place was kept, and is gone: what was held is its end
            run.record = record = parse_record(text)
            if record.exit is not None and record.exit.ok and run.places.gcs and not record.unchanged:
                run.add_note(_UNFETCHED)
                self._lose(run, "")
                return
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
        elif state is None:
            self._lose(run, "Its pod is gone: somebody deleted it at once.")
        else:
            run.add_note(state.ended_as)
            self._lose(run, "")

    def _lose(self, run: PodRun, interruption: str) -> None:
        """Nobody can know how it ended. Should its machine come back, nothing of it may run on there."""
        self._see_interruption(run, Exit(), interruption)
        run.mark("lost")
        self.take_away(run)
        self._end(run, Exit())

    def _end_by(self, run: PodRun, signal: int, *, oom: int = 0) -> None:
        """It was killed, and its init could not tell: write that for it."""
        with contextlib.suppress(OSError):  # on a full disk it is remembered as long as this server lives
            run.write_end(signal, oom)
        self._end(run, Exit(signal=signal))

    def _end(self, run: PodRun, exit: Exit) -> None:
        if run.gone.is_set():
            return
        self._see_interruption(run, exit)
        run.show_end(exit)
        self._tell(run)
        self._hint(run)

    async def _look_once_more(self, run: PodRun, exit: Exit) -> None:
        """The end of a program may be known before it is known that somebody deletes its pod."""
        if exit.ok or run.killed or run.asked or run.state is None or run.state.interruption:
            return
        with contextlib.suppress(ApiFault):
            run.state = self._around.read_state(await self._api.get("pods", run.pod))

    def _see_interruption(self, run: PodRun, exit: Exit, words: str = "") -> None:
        """Whether somebody else ended it. What it failed by itself before, or we asked for, is none."""
        state = run.state
        if state is not None and state.over_disk:
            run.full = run.full or state.over_disk
        if exit.ok or run.killed or run.asked or run.interrupted or run.record.held is not None:
            return
        if run.ended_by_itself:
            return
        words = (state.interruption if state is not None else "") or words
        if words and state is not None and state.is_leaving and self._around.is_drained(state.node):
            words = f"{words} Node {state.node} is being drained."
        if words:
            run.note_interruption(words)

    def _may_have_begun(self, run: PodRun) -> bool:
        supervision, state = self._supervised.get(run), run.state
        if run.record.begun or supervision is None:
            return True
        if state is not None and state.has_not_begun:
            # What is known of it may be a moment old, and one that waits for nobody begins by itself.
            return supervision.is_told and run.begins_alone and bool(state.node)
        return supervision.is_told

    async def _withdraw(self, run: PodRun, signal: int) -> None:
        """Take away a pod whose program was never told to begin."""
        await take_away(self._api, run.pod)
        self._end_by(run, signal)

    def _tell(self, run: PodRun) -> None:
        if (supervision := self._supervised.get(run)) is not None:
            supervision.news.set()

    async def _news(self, run: PodRun, seconds: float | None) -> bool:
        """Wait for some, for so long at most; whether there were any."""
        supervision = self._supervised.get(run)
        if supervision is None:
            return False
        supervision.news.clear()
        try:
            await asyncio.wait_for(supervision.news.wait(), seconds)
        except TimeoutError:
            return False
        return True
