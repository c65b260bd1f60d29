"""Which files may be stored, and what counts as complete."""

import json
from datetime import timedelta

from tests.builders import a_job, a_pool, at, seconds
from trainshed.core.jobs.job import JobSpec, Pool
from trainshed.core.jobs.replica import Exit
from trainshed.core.outputs import (
    MANIFEST,
    QUIET,
    SETTLE,
    EndedWriter,
    SettlingFiles,
    StoreBatch,
    Unit,
    UnitKind,
    Writers,
    batches,
    ended_well,
    manifest_of,
    named_in,
    unit_of,
)
from trainshed.core.view import Stored, Written, named_buckets, wants_view

OUT = "gs://b/out"
ALIVE = Writers(alive=True)
MOMENT = timedelta(milliseconds=1)


def written(name: str, changed: float = 0, stamp: str = "1") -> Written:
    return Written(bucket="b", name=name, path=f"/x/{name}", size=1, stamp=stamp, changed_at=at(changed))


def look(*files: Written, now: float, since: float = 0, end: Writers = ALIVE) -> dict[str, StoreBatch]:
    """The batches by their unit's prefix, of files first seen at `since`."""
    patience = SettlingFiles()
    patience.look(files, at(since))
    patience.look(files, at(now))
    return {batch.unit.prefix: batch for batch in batches(files, OUT, patience, at(now), end)}


def killed(when: float) -> Writers:
    return Writers(ended=[EndedWriter(at(when), well=False)])


def well(when: float) -> Writers:
    return Writers(ended=[EndedWriter(at(when), well=True)], succeeded=True)


def test_a_file_that_was_just_seen_is_not_stored_and_one_that_has_settled_is():
    settled = SETTLE.total_seconds()
    assert not look(written("x"), now=settled - 0.1)
    assert look(written("x"), now=settled)[""].files == [written("x")]


def test_a_file_that_changes_has_to_settle_anew():
    patience = SettlingFiles()
    patience.look([written("x", stamp="1")], at(0))
    patience.look([written("x", stamp="2")], at(10))
    assert not patience.is_still(written("x", stamp="2"), at(11), SETTLE)
    assert patience.is_still(written("x", stamp="2"), at(10) + SETTLE, SETTLE)


def test_a_checkpoint_waits_until_all_of_it_is_quiet():
    quiet = QUIET.total_seconds()
    patience = SettlingFiles()
    first, second = written("out/checkpoints/1/a"), written("out/checkpoints/1/b")
    patience.look([first], at(0))
    patience.look([first, second], at(4))
    assert not batches([first, second], OUT, patience, at(quiet + 1), ALIVE)
    [batch] = batches([first, second], OUT, patience, at(4 + quiet), ALIVE)
    assert batch.complete
    assert batch.files == [first, second]


def test_a_checkpoint_is_complete_sooner_where_the_program_went_on_to_a_later_one():
    files = written("out/checkpoints/1/a", 0), written("out/checkpoints/2/a", 1)
    found = look(*files, now=SETTLE.total_seconds())
    assert list(found) == ["out/checkpoints/1/"]


def test_the_checkpoint_that_was_being_written_when_its_program_was_killed_is_left_out():
    files = written("out/checkpoints/1/a", 0), written("out/checkpoints/2/a", 1)
    found = look(*files, now=3, end=killed(1.5))
    assert list(found) == ["out/checkpoints/1/"]


def test_a_checkpoint_that_was_quiet_when_its_program_was_killed_is_complete():
    found = look(written("out/checkpoints/1/a", 0), now=100, end=killed(QUIET.total_seconds()))
    assert found["out/checkpoints/1/"].complete


def test_a_checkpoint_is_complete_that_was_written_after_another_replica_had_been_killed():
    files = written("out/checkpoints/1/a", 2), written("out/checkpoints/latest", 2)
    ends = [EndedWriter(at(1.9), well=False), EndedWriter(at(2.5), well=True)]
    assert all(batch.complete for batch in look(*files, now=3, end=Writers(ended=ends)).values())
    ends = [EndedWriter(at(2.1), well=False), EndedWriter(at(2.5), well=True)]
    assert not look(*files, now=3, end=Writers(ended=ends))


def test_the_checkpoint_of_a_killed_replica_is_left_out_while_others_live_on():
    files = written("out/checkpoints/1/a", 2), written("out/checkpoints/2/a", 20)
    rest = Writers(ended=[EndedWriter(at(20.5), well=False)], alive=True)
    assert list(look(*files, now=60, end=rest)) == ["out/checkpoints/1/"]


def test_a_program_ends_well_with_code_0_and_with_the_code_of_one_that_was_asked_to_stop():
    assert ended_well(Exit(code=0))
    assert ended_well(Exit(code=143))
    assert not ended_well(Exit(code=1))
    assert not ended_well(Exit(signal=15))
    assert not ended_well(Exit())
    assert not ended_well(None)


def test_all_is_complete_where_the_program_ended_well():
    files = written("out/checkpoints/1/a", 9.9), written("out/model/m", 9.9), written("other", 9.9)
    found = look(*files, now=10, since=10, end=well(10))
    assert {prefix: batch.complete for prefix, batch in found.items()} == {
        "out/checkpoints/1/": True,
        "out/model/": True,
        "": False,
    }


def test_a_model_is_not_complete_before_the_job_has_succeeded():
    assert not look(written("out/model/m"), now=100)["out/model/"].complete
    assert not look(written("out/model/m"), now=100, end=killed(50))["out/model/"].complete


def test_a_checkpoint_that_is_to_be_renamed_waits_for_its_name():
    for step in ("tmp-checkpoint-5", "5.tmp", ".5", "5.orbax-checkpoint-tmp-77", "step_partial"):
        name = f"out/checkpoints/{step}/a"
        assert not look(written(name), now=100)
        assert not look(written(name), now=100, end=killed(50))
        assert look(written(name), now=100, end=well(50))
    assert look(written("out/checkpoints/attempt-1/a"), now=100)


def test_checkpoints_are_stored_in_the_order_they_were_written():
    files = [written(f"out/checkpoints/{n}/a", 10 - n) for n in range(5)]
    assert list(look(*files, now=100)) == [f"out/checkpoints/{n}/" for n in (4, 3, 2, 1, 0)]


def test_what_a_program_itself_calls_a_manifest_is_not_taken_for_one():
    assert not look(written(f"out/model/{MANIFEST}"), now=100, end=well(50))


def test_names_belong_to_their_units():
    assert unit_of("b", "out/model/a/b", OUT).kind is UnitKind.MODEL
    assert unit_of("b", "out/checkpoints/x", OUT) == Unit(UnitKind.CHECKPOINTS, "b", "out/checkpoints/")
    assert unit_of("b", "out/checkpoints/x/y/z", OUT) == Unit(UnitKind.CHECKPOINT, "b", "out/checkpoints/x/")
    for bucket, name, output in (
        ("c", "out/model/a", OUT),
        ("b", "out/model", OUT),
        ("b", "outer/model/a", OUT),
        ("b", "out/model/a", ""),
    ):
        assert unit_of(bucket, name, output).kind is UnitKind.FREE
    assert unit_of("b", "model/a", "gs://b/").prefix == "model/"


def test_a_manifest_names_the_files_of_its_unit_and_no_others():
    def stored(name: str, *, manifest: bool = False) -> Stored:
        return Stored(bucket="b", name=name, stamp="1", size=3, crc32c="c", generation=7, manifest=manifest)

    files = [stored("c/1"), stored("c/ü/2"), stored(f"c/{MANIFEST}", manifest=True), stored("d/1")]
    all_of_it = {(one.bucket, one.name): one for one in files}
    folder = manifest_of(Unit(UnitKind.CHECKPOINT, "b", "c/"), all_of_it, "j", 2)
    assert named_in(folder) == {"1": (3, "c"), "ü/2": (3, "c")}
    assert json.loads(folder)["attempt"] == 2
    assert set(named_in(manifest_of(Unit(UnitKind.CHECKPOINTS, "b", "c/"), all_of_it, "j", 2))) == {"1"}


def test_a_job_that_does_not_speak_of_gcs_needs_no_view_from_the_start():
    assert not wants_view(a_job(a_pool()).spec)
    assert not wants_view(JobSpec(pools=(Pool(args=("--data", "gs://b/x"), replicas=1),)))


def test_a_job_that_speaks_of_gcs_or_has_an_output_needs_its_view_from_the_start():
    assert wants_view(a_job(output=OUT).spec)
    for pool in (
        Pool(args=("--data=/gcs/b/x",)),
        Pool(command=("ls", "/gcs")),
        Pool(env=(("DATA", "/gcs/b"),)),
        Pool(env=(("TRAINSHED_LOCAL_PATHS", "1"),)),
    ):
        assert wants_view(JobSpec(pools=(pool,)))


def test_the_buckets_a_job_names_are_found_wherever_they_stand():
    pool = Pool(
        command=("sh", "-c", "cp '/gcs/first/x y' . && ls gs://sec_ond/a/b*.csv"),
        env=(("A", "/gcs/thi.rd"), ("B", "/gcs")),
    )
    spec = JobSpec(pools=(pool,), output="gs://last/out")
    assert named_buckets(spec) == {
        "last": ("out",),
        "first": ("x",),
        "sec_ond": ("a",),
        "thi.rd": ("",),
    }


def test_waits_are_those_documented():
    assert (seconds(2), seconds(5)) == (SETTLE, QUIET)


def test_only_a_path_that_begins_with_gcs_is_one_of_a_bucket():
    for text in ("/srv/x/gcs/r.py", "./gcs/b/x", "~/gcs/b/x", "$HOME/gcs/b/x", "/gcsfuse/b/x", "x-/gcs/b"):
        spec = JobSpec(pools=(Pool(command=("cat", text)),))
        assert not wants_view(spec) and not named_buckets(spec), text
    counted = ("/gcs/bb/x", "--in=/gcs/bb/x", "a,/gcs/bb/x", "cat </gcs/bb/x", "open('/gcs/bb/x')")
    for text in (*counted, "a:/gcs/bb/x", "file:///gcs/bb/x"):
        spec = JobSpec(pools=(Pool(command=("cat", text)),))
        assert wants_view(spec) and named_buckets(spec) == {"bb": ("x",)}, text
    assert wants_view(JobSpec(pools=(Pool(command=("ls", "/gcs")),)))


def test_an_output_said_with_s3_has_the_same_units():
    assert unit_of("b", "out/model/x", "s3://b/out") == unit_of("b", "out/model/x", OUT)
    assert unit_of("b", "out/model/x", OUT).kind is UnitKind.MODEL
