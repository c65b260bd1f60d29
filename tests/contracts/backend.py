"""The promises of core.ports.Backend as tests. A backend inherits BackendContract and supplies one World.

A test may branch on a declared capability, never on a class.
"""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders import a_job, a_pool, an_admission
from tests.contracts.backend_bench import Bench, World, benched, until
from trainshed.core.event import Reason
from trainshed.core.jobs.job import JobSpec
from trainshed.core.jobs.readiness import READY, ReadinessState
from trainshed.core.jobs.replica import Exit, Sight


def spec_of(*images: str) -> JobSpec:
    return JobSpec(pools=tuple(replace(a_pool(), image=image) for image in images))


class WritesHere:
    """For backends whose replicas write straight into the server's files."""

    async def test_output_is_written_while_no_server_runs(self, bench: Bench):
        await bench.backend.launch(bench.launch(bench.programs.prints("alone\n")))
        await bench.backend.close()
        await until(lambda: bench.out() == "alone\n")
        bench.backend = await bench.world.backend()
        assert (await bench.ended(bench.key())).exit == Exit(code=0)


class BackendContract:
    many = 50  # runs at once

    @pytest.fixture
    async def world(self, tmp_path: Path):
        raise NotImplementedError
        yield

    @pytest.fixture
    async def bench(self, world: World, tmp_path: Path):
        async with benched(world, tmp_path) as bench:
            yield bench

    # 1. launch is idempotent

    async def test_launching_a_run_twice_gives_the_first_handle_and_one_run(self, bench: Bench):
        first = await bench.backend.launch(bench.launch(bench.programs.prints("once\n")))
        await bench.ended(bench.key())
        second = await bench.backend.launch(bench.launch(bench.programs.prints("once\n")))
        assert first == second
        assert len(await bench.backend.observe(bench.job)) == 1
        assert bench.out() == "once\n"

    async def test_launching_a_run_many_times_at_once_starts_it_once(self, bench: Bench):
        launch = bench.launch(bench.programs.prints("once\n"))
        handles = await asyncio.gather(*(bench.backend.launch(launch) for _ in range(5)))
        await bench.ended(bench.key())
        assert all(handle == handles[0] for handle in handles)
        assert bench.out() == "once\n"

    async def test_a_new_server_launching_the_same_run_does_not_start_it_again(self, bench: Bench):
        launch = bench.launch(bench.programs.sleeps())
        first = await bench.backend.launch(launch)
        await until(lambda: "ready" in bench.out())
        await bench.renew()
        assert await bench.backend.launch(launch) == first
        seen = await bench.see(bench.key())
        assert seen is not None and seen.alive and seen.handle == first
        assert bench.out() == "ready\n"

    # 2. one run of a name at a time

    async def test_a_new_run_begins_only_when_the_earlier_one_is_gone(self, bench: Bench):
        first = await bench.begin(bench.programs.stubborn())
        await bench.backend.launch(bench.launch(bench.programs.stubborn(), run=1))
        old, new = await bench.see(first), await bench.see(bench.key(1))
        assert old is not None and old.sight is Sight.ENDED and old.exit == Exit(signal=9)
        assert new is not None and new.sight is Sight.RUNNING

    async def test_a_new_server_ends_the_earlier_run_before_it_launches_the_next(self, bench: Bench):
        first = await bench.begin(bench.programs.stubborn())
        await bench.renew()
        await bench.backend.launch(bench.launch(bench.programs.stubborn(), run=1))
        old = await bench.see(first)
        assert old is not None and old.exit == Exit(signal=9)

    # 3. observe tells the truth

    @pytest.mark.parametrize("code", [0, 1, 3, 129, 137, 143, 255])
    async def test_an_exit_code_is_shown_as_a_code(self, bench: Bench, code: int):
        seen = await bench.run(bench.programs.exits(code))
        assert seen.sight is Sight.ENDED
        assert seen.exit == Exit(code=code)

    @pytest.mark.parametrize("number", [1, 2, 6, 9, 11, 15])
    async def test_a_death_by_signal_is_shown_as_a_signal(self, bench: Bench, number: int):
        seen = await bench.run(bench.programs.dies(number))
        assert seen.sight is Sight.ENDED
        assert seen.exit == Exit(signal=number)

    async def test_a_run_is_shown_from_its_launch_with_its_times(self, bench: Bench):
        handle = await bench.backend.launch(bench.launch(bench.programs.sleeps()))
        running = await bench.see(bench.key())
        assert running is not None and running.sight is Sight.RUNNING
        assert running.handle == handle and running.exit is None
        assert running.started_at is not None and running.ended_at is None
        await bench.backend.stop(bench.key(), force=True)
        ended = await bench.ended(bench.key())
        assert ended.started_at == running.started_at
        assert ended.ended_at is not None and ended.ended_at >= running.started_at

    async def test_each_job_is_shown_its_own_runs_only(self, bench: Bench):
        await bench.backend.launch(bench.launch(bench.programs.exits(0)))
        assert await bench.backend.observe("another") == ()
        assert bench.job in await bench.backend.jobs()

    async def test_a_run_is_ended_only_when_its_abandoned_children_are_gone(self, bench: Bench):
        seen = await bench.run(bench.programs.abandons(bench.job, 4))
        assert seen.exit == Exit(code=4)
        if bench.backend.capabilities.kills_escapees:
            assert bench.world.leftovers(bench.job) == []

    async def test_a_new_server_finds_a_running_run_and_later_its_true_end(self, bench: Bench):
        if not bench.backend.capabilities.survives_server:
            return
        key = await bench.begin(bench.programs.sleeps())
        await bench.renew()
        seen = await bench.see(key)
        assert seen is not None and seen.sight is Sight.RUNNING
        await bench.backend.stop(key, force=False)
        assert (await bench.ended(key)).exit == Exit(signal=15)

    async def test_what_ended_while_no_server_ran_is_found_with_its_true_end(self, bench: Bench):
        if not bench.backend.capabilities.survives_server:
            return
        await bench.backend.launch(bench.launch(bench.programs.exits(143)))
        await bench.renew()
        assert (await bench.ended(bench.key())).exit == Exit(code=143)
        await bench.renew()
        assert (await bench.ended(bench.key())).exit == Exit(code=143)

    async def test_a_hint_follows_the_end_of_a_run(self, bench: Bench):
        key = await bench.begin(bench.programs.sleeps())
        hinted: asyncio.Queue[str] = asyncio.Queue()
        bench.backend.on_change(hinted.put_nowait)
        await bench.backend.stop(key, force=False)
        assert await hinted.get() == bench.job
        seen = await bench.see(key)
        assert seen is not None and not seen.alive

    async def test_a_hint_follows_the_end_of_a_run_of_an_earlier_server(self, bench: Bench):
        key = await bench.begin(bench.programs.sleeps())
        await bench.renew()
        hinted: asyncio.Queue[str] = asyncio.Queue()
        bench.backend.on_change(hinted.put_nowait)
        await bench.backend.stop(key, force=False)
        assert await hinted.get() == bench.job

    # 4. lost, never guessed

    async def test_a_run_whose_status_nobody_holds_is_lost_and_all_of_it_is_gone(self, bench: Bench):
        key = await bench.begin(bench.programs.stubborn())
        await bench.world.lose(key)
        seen = await bench.ended(key)
        assert seen.sight is Sight.LOST
        assert seen.exit is not None and seen.exit.lost
        assert bench.world.leftovers(bench.job) == []

    async def test_a_run_lost_while_no_server_ran_is_lost(self, bench: Bench):
        key = await bench.begin(bench.programs.stubborn())
        await bench.backend.close()
        await bench.world.lose(key)
        bench.backend = await bench.world.backend()
        assert (await bench.ended(key)).sight is Sight.LOST
        assert bench.world.leftovers(bench.job) == []

    # 5. stopping

    async def test_asking_many_times_asks_once(self, bench: Bench):
        key = await bench.begin(bench.programs.counts())
        await asyncio.gather(*(bench.backend.stop(key, force=False) for _ in range(3)))
        await until(lambda: "term" in bench.out())
        await bench.renew()
        await bench.backend.stop(key, force=False)
        await bench.backend.stop(key, force=True)
        await bench.ended(key)
        assert bench.out() == "ready\nterm\n"

    async def test_a_run_asked_right_after_its_launch_hears_it(self, bench: Bench):
        await bench.backend.launch(bench.launch(bench.programs.sleeps()))
        await bench.backend.stop(bench.key(), force=False)
        assert (await bench.ended(bench.key())).exit == Exit(signal=15)

    async def test_a_run_killed_right_after_its_launch_ends_by_that_signal(self, bench: Bench):
        await bench.backend.launch(bench.launch(bench.programs.sleeps()))
        await bench.backend.stop(bench.key(), force=True)
        assert (await bench.ended(bench.key())).exit == Exit(signal=9)

    async def test_force_ends_what_ignores_the_question(self, bench: Bench):
        key = await bench.begin(bench.programs.stubborn())
        await bench.backend.stop(key, force=False)
        await bench.backend.stop(key, force=True)
        assert (await bench.ended(key)).exit == Exit(signal=9)

    async def test_force_kills_what_double_forked_away(self, bench: Bench):
        if not bench.backend.capabilities.kills_escapees:
            return
        key = await bench.begin(bench.programs.escapes(bench.job))
        await bench.renew()
        await bench.backend.stop(key, force=True)
        await bench.ended(key)
        assert bench.world.leftovers(bench.job) == []

    # 6. what is not there

    async def test_stopping_or_removing_what_is_not_there_is_no_error(self, bench: Bench):
        await bench.backend.stop(bench.key(), force=False)
        await bench.backend.stop(bench.key(), force=True)
        await bench.backend.remove(bench.job)
        assert await bench.backend.observe(bench.job) == ()

    async def test_stopping_what_has_ended_changes_nothing(self, bench: Bench):
        before = await bench.run(bench.programs.exits(3))
        await bench.backend.stop(bench.key(), force=False)
        await bench.backend.stop(bench.key(), force=True)
        assert await bench.see(bench.key()) == before

    # 7. removing

    async def test_removing_forgets_the_job_and_keeps_its_logs(self, bench: Bench):
        await bench.run(bench.programs.prints("kept\n"))
        await bench.backend.remove(bench.job)
        assert await bench.backend.observe(bench.job) == ()
        assert bench.job not in await bench.backend.jobs()
        assert bench.world.private_files(bench.job) == []
        assert bench.out() == "kept\n"
        await bench.renew()
        assert bench.job not in await bench.backend.jobs()

    async def test_removing_leaves_no_process_of_a_run_that_still_lives(self, bench: Bench):
        await bench.begin(bench.programs.escapes(bench.job))
        await bench.backend.remove(bench.job)
        assert bench.world.leftovers(bench.job) == []
        assert bench.world.private_files(bench.job) == []

    # 8. what cannot be started

    async def test_a_program_that_is_not_there_ends_with_127_and_says_so(self, bench: Bench):
        assert (await bench.run(bench.programs.missing())).exit == Exit(code=127)
        assert "No such file" in bench.err()

    async def test_a_program_that_may_not_run_ends_with_126_and_says_so(self, bench: Bench):
        assert (await bench.run(bench.programs.forbidden())).exit == Exit(code=126)
        assert "ermission denied" in bench.err()

    # 9. output

    async def test_output_is_in_order_and_a_restart_appends_to_it(self, bench: Bench):
        text = "".join(f"{n}\n" for n in range(2000))
        await bench.run(bench.programs.prints(text))
        await bench.backend.launch(bench.launch(bench.programs.prints("again\n"), run=1))
        await bench.ended(bench.key(1))
        assert bench.out() == text + "again\n"

    async def test_output_of_a_time_without_a_server_is_whole_when_the_end_is_shown(self, bench: Bench):
        text = "".join(f"{n}\n" for n in range(2000))
        await bench.backend.launch(bench.launch(bench.programs.prints(text)))
        await bench.renew()
        assert (await bench.ended(bench.key())).exit == Exit(code=0)
        assert bench.out() == text

    # 10. the loop goes on

    async def test_other_work_goes_on_while_runs_are_started_and_killed(self, bench: Bench):
        turns = 0

        async def turn() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(turn())
        await bench.begin(bench.programs.stubborn())
        before = turns
        await bench.backend.stop(bench.key(), force=True)
        assert turns > before
        before = turns
        await bench.backend.remove(bench.job)
        assert turns > before
        other.cancel()

    # 11 to 13. what a job needs is made ready before it is launched

    async def test_an_image_that_is_there_is_ready(self, bench: Bench):
        assert bench.backend.prepare(spec_of(bench.world.image)) == READY
        assert bench.backend.prepare(spec_of(bench.world.image), "a") == READY

    async def test_asking_begins_it_and_each_that_waits_is_hinted_when_it_is_ready(self, bench: Bench):
        image, hints = bench.world.unmake(), list[str]()
        bench.backend.on_change(hints.append)
        assert bench.backend.prepare(spec_of(image), "a").standing is ReadinessState.PREPARING
        assert (
            bench.backend.prepare(spec_of(bench.world.image, image), "b").standing is ReadinessState.PREPARING
        )
        waiting = bench.backend.prepare(spec_of(image), "a").waiting
        assert waiting.reason is Reason.PREPARING and waiting.message
        await bench.world.make(image, well=True)
        await until(lambda: {"a", "b"} <= set(hints))
        assert bench.backend.prepare(spec_of(image), "a").is_ready
        assert (await bench.run(bench.programs.exits(3))).exit == Exit(code=3)

    async def test_without_a_job_nothing_is_begun_and_nobody_hinted(self, bench: Bench):
        image, hints = bench.world.unmake(), list[str]()
        bench.backend.on_change(hints.append)
        assert bench.backend.prepare(spec_of(image)).standing is ReadinessState.PREPARING
        await bench.world.make(image, well=False)
        assert bench.backend.prepare(spec_of(image)).standing is ReadinessState.PREPARING
        assert hints == []

    async def test_what_failed_stays_failed_for_those_who_waited_and_the_next_begins_anew(self, bench: Bench):
        image = bench.world.unmake()
        bench.backend.prepare(spec_of(image), "a")
        await bench.world.make(image, well=False)
        failed = bench.backend.prepare(spec_of(image), "a")
        assert failed.standing is ReadinessState.FAILED
        assert failed.message and failed.verdict is not None and failed.verdict.advice
        assert bench.backend.prepare(spec_of(image), "b").standing is ReadinessState.PREPARING
        assert bench.backend.prepare(spec_of(image), "a").standing is ReadinessState.FAILED
        await bench.world.make(image, well=True)
        assert bench.backend.prepare(spec_of(image), "b").is_ready

    # And the rest of the port

    async def test_many_runs_at_once_each_have_their_own_end(self, bench: Bench):
        launches = [bench.launch(bench.programs.exits(i), index=i) for i in range(self.many)]
        await asyncio.gather(*(bench.backend.launch(launch) for launch in launches))
        for i in range(self.many):
            assert (await bench.ended(bench.key(index=i))).exit == Exit(code=i)

    async def test_rendering_starts_nothing_and_gives_the_same_each_time(self, bench: Bench):
        launch = bench.launch(bench.programs.prints("no"))
        assert bench.backend.render(launch) == bench.backend.render(launch)
        assert str(bench.folder) not in str(bench.backend.render(launch))  # its output has no place yet
        assert await bench.backend.observe(bench.job) == ()

    async def test_a_refused_image_is_named_and_a_known_one_is_not_refused(self, bench: Bench):
        refused = bench.world.refused
        sentence = bench.backend.refuse_image(refused)
        assert sentence is not None and refused in sentence
        assert bench.backend.refuse_image(bench.world.image) is None

    async def test_there_is_a_node_with_room(self, bench: Bench):
        node, *_ = await bench.backend.nodes()
        assert node.cpus > 0 and node.memory > 0 and node.host

    @pytest.mark.parametrize("count", [1, 3, 500])
    async def test_replicas_have_addresses_of_their_own_and_none_of_a_port_to_avoid(
        self, bench: Bench, count: int
    ):
        job = a_job(a_pool(replicas=count))
        avoid = frozenset(range(10_000, 20_000))
        first = await bench.backend.address(an_admission(job, bench.node), job.spec, frozenset())
        second = await bench.backend.address(an_admission(job, bench.node), job.spec, avoid)
        for found in (first, second):
            places = {(place.host, place.port) for place in found.placements}
            assert len(places | {(found.placements[0].host, found.master_port)}) == count + 1
        if not bench.backend.capabilities.private_network:
            assert not avoid & second.ports
            assert not first.ports & second.ports

    # 14. what is to be held keeps its place

    @pytest.mark.parametrize("force", [False, True])
    async def test_a_program_that_ends_badly_leaves_its_place_until_that_is_stopped(
        self, bench: Bench, force: bool
    ):
        hinted: asyncio.Queue[str] = asyncio.Queue()
        bench.backend.on_change(hinted.put_nowait)
        command = bench.programs.abandons(bench.job, 3)
        await bench.backend.launch(replace(bench.launch(command), held=True))
        assert await hinted.get() == bench.job
        held = await bench.see(bench.key())
        assert held is not None and held.exit == Exit(code=3) and held.ended_at is not None
        if "cannot be held" in held.note:
            assert not held.alive
            return
        assert held.sight is Sight.HELD and held.alive
        await bench.renew()
        again = await bench.see(bench.key())
        assert again is not None and again.sight is Sight.HELD
        assert (again.exit, again.ended_at) == (held.exit, held.ended_at)
        await bench.backend.stop(bench.key(), force=force)
        ended = await bench.ended(bench.key())
        assert ended == replace(again, sight=Sight.ENDED)
        assert bench.world.leftovers(bench.job) == []

    async def test_a_death_by_signal_is_held_and_stays_one(self, bench: Bench):
        await bench.backend.launch(replace(bench.launch(bench.programs.dies(11)), held=True))
        await until(lambda: self._known(bench))
        await bench.backend.stop(bench.key(), force=False)
        assert (await bench.ended(bench.key())).exit == Exit(signal=11)

    @staticmethod
    async def _known(bench: Bench) -> bool:
        seen = await bench.see(bench.key())
        return seen is not None and seen.exit is not None

    async def test_what_ends_well_or_was_asked_to_end_is_not_held(self, bench: Bench):
        await bench.backend.launch(replace(bench.launch(bench.programs.exits(0)), held=True))
        assert (await bench.ended(bench.key())).exit == Exit(code=0)
        await bench.backend.launch(replace(bench.launch(bench.programs.sleeps(), run=1), held=True))
        await until(lambda: "ready" in bench.out())
        await bench.backend.stop(bench.key(1), force=False)
        assert (await bench.ended(bench.key(1))).exit == Exit(signal=15)

    async def test_the_next_run_takes_the_place_of_one_that_is_held(self, bench: Bench):
        await bench.backend.launch(replace(bench.launch(bench.programs.exits(1)), held=True))
        await until(lambda: self._known(bench))
        await bench.backend.launch(bench.launch(bench.programs.sleeps(), run=1))
        old, new = await bench.see(bench.key()), await bench.see(bench.key(1))
        assert old is not None and old.sight is Sight.ENDED and old.exit == Exit(code=1)
        assert new is not None and new.sight is Sight.RUNNING

    async def test_a_held_place_whose_holder_is_killed_has_ended_as_its_program_did(self, bench: Bench):
        await bench.backend.launch(replace(bench.launch(bench.programs.exits(5)), held=True))
        await until(lambda: self._known(bench))
        seen = await bench.see(bench.key())
        assert seen is not None
        if seen.alive:
            await bench.world.lose(bench.key())
        assert (await bench.ended(bench.key())).exit == Exit(code=5)

    # 15. peers have names

    @pytest.mark.parametrize("host", ["digits-worker-1", "digits-worker-1.default.svc.cluster.local"])
    async def test_a_program_finds_its_peers_by_their_names(self, bench: Bench, host: str):
        job = a_job(a_pool(replicas=2))
        found = await bench.backend.address(an_admission(job, bench.node), job.spec, frozenset())
        names = (("digits-worker-0",), ("digits-worker-1", "digits-worker-1.default.svc.cluster.local"))
        hosts = tuple(place.host for place in found.placements)
        for index, program in ((1, bench.programs.sleeps()), (0, bench.programs.finds(host))):
            launch = bench.launch(program, index=index)
            place = replace(launch.placement, host=hosts[index])
            await bench.backend.launch(replace(launch, placement=place, peers=hosts, names=names))
        seen = await bench.ended(bench.key())
        assert seen.exit == Exit(code=0) or "not found by their names" in seen.note, bench.err()
        await bench.backend.remove(bench.job)
        assert bench.world.private_files(bench.job) == []
