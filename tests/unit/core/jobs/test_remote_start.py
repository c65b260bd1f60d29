"""Programs that replicas start in each other: who serves, who is listed, what is told, what stays secret."""

from dataclasses import replace

from tests.builders import a_job, a_pool, admitted
from trainshed.api.environment import environment
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.launch import Launch, RemoteRole
from trainshed.core.jobs.launching import Launches
from trainshed.core.jobs.origin import Origin
from trainshed.core.jobs.pool_words import PoolWords, RemoteWords
from trainshed.core.jobs.remote_start import remote_secret, with_remote_program, with_remote_secret
from trainshed.core.jobs.replica import Replica

PLACE = "/etc/list/hosts"
STARTER = PoolWords(hosts=("first",), remote=RemoteWords(serves=False, list_place=PLACE))
SERVER = PoolWords(
    hosts=("second-$(job-index)", "longer"),
    remote=RemoteWords(serves=True, row="$(host):3", list_place=PLACE),
)
ENV = (
    ("AGENT", "$(remote-program) -x"),
    ("LIST", "$(host-list)"),
    ("SHARED", "in $(own-folder)"),
    ("NET", "$(loopback)"),
)


def the_job(*pools: PoolWords, command: tuple[str, ...] = ("$(serve)",)) -> Job:
    starter = replace(a_pool(), command=("start",), args=("--hosts", f"file:{PLACE}"), env=ENV)
    server = replace(a_pool(2), command=command, env=(*ENV, ("RANK", "mine")))
    origin = Origin(kind="manifest", record={}, pools=pools or (STARTER, SERVER))
    return admitted(replace(a_job(starter, server), origin=origin))


def a_launch(pool: int, index: int = 0, job: Job | None = None) -> Launch:
    return Launches(job or the_job()).of(Replica(pool=pool, index=index))


def test_a_launch_names_those_that_serve_and_the_list_as_programs_read_it():
    ports = [a_launch(1, index).placement.port for index in range(2)]
    role = RemoteRole(
        serves=False,
        servers=f"workerpool1-0,second-0=10.0.0.1:{ports[0]} workerpool1-1,second-1=10.0.0.1:{ports[1]}",
        rows="workerpool1-0:3\nworkerpool1-1:3\n",
        list_place=PLACE,
    )
    assert a_launch(0).remote == role
    assert a_launch(1).remote == replace(role, serves=True)


def test_a_starter_that_is_listed_too_is_listed_by_its_address():
    words = RemoteWords(serves=False, row="$(host):1", list_place=PLACE)
    remote = a_launch(0, job=the_job(replace(STARTER, remote=words), SERVER)).remote
    assert remote is not None
    assert remote.rows.splitlines()[0] == "10.0.0.1:1"


def test_a_job_without_such_words_has_no_part_in_it():
    launch = a_launch(0, job=the_job(PoolWords(), PoolWords()))
    assert launch.remote is None
    assert with_remote_program(launch, "/bin/remote") == launch


def test_replicas_are_told_no_ranks_but_the_jobs_own():
    launch = a_launch(1)
    assert launch.env["RANK"] == "mine"
    assert not {"WORLD_SIZE", "MASTER_ADDR", "LOCAL_RANK", "PET_NNODES", "TF_CONFIG"} & launch.env.keys()
    assert "CLUSTER_SPEC" in launch.env
    shown = environment(the_job(), {}, "workerpool1-0")
    assert "WORLD_SIZE" not in str(shown["replicas"])


def test_in_an_image_a_starter_finds_the_list_where_its_grammar_has_it():
    launch = with_remote_program(replace(a_launch(0), scratch=("/data",)), "/x/remote")
    assert launch.before == ("/x/remote", "--launch", PLACE, "600")
    assert (launch.command, launch.args) == (("start",), ("--hosts", f"file:{PLACE}"))
    assert launch.scratch == ("/data", "/etc/list")
    assert (launch.env["AGENT"], launch.env["LIST"]) == ("/x/remote -x", PLACE)
    assert not {"SHARED", "NET"} & launch.env.keys()
    assert launch.env["TRAINSHED_REMOTE_LIST"] == "workerpool1-0:3\nworkerpool1-1:3\n"
    again = with_remote_program(replace(a_launch(0), scratch=("/etc/list",)), "/x/remote")
    assert again.scratch == ("/etc/list",)


def test_where_replicas_share_folders_each_has_the_list_in_its_own():
    launch = with_remote_program(a_launch(0), "/x/remote", "/tmp/mine")
    assert launch.before[2] == launch.env["LIST"] == "/tmp/mine/hosts"
    assert launch.args == ("--hosts", "file:/tmp/mine/hosts")
    assert (launch.env["SHARED"], launch.env["NET"], launch.scratch) == ("in /tmp/mine", "lo", ())


def test_a_replica_serves_alone_or_beside_its_own_command():
    port = a_launch(1, 1).placement.port
    alone = with_remote_program(a_launch(1, 1), "/x/remote")
    assert alone.command == ("/x/remote", "--serve", "workerpool1-1", "10.0.0.1", str(port))
    assert (alone.before, alone.args, alone.scratch) == ((), (), ())
    assert "TRAINSHED_REMOTE_LIST" not in alone.env
    beside = a_launch(1, 1, the_job(command=("sleep", "9")))
    named = replace(beside, placement=replace(beside.placement, host="workerpool1-1"))
    launch = with_remote_program(named, "/x/remote")
    assert launch.before == ("/x/remote", "--serve", "workerpool1-1", "::", str(port))
    assert launch.command == ("sleep", "9")


def test_the_secret_is_the_jobs_own_and_does_not_show_its_token():
    launch = with_remote_secret(a_launch(0), "job.1.token")
    secret = launch.env["TRAINSHED_REMOTE_SECRET"]
    assert launch.secrets == {"TRAINSHED_REMOTE_SECRET"}
    assert secret == remote_secret("job.1.token") != remote_secret("job.2.token")
    assert "token" not in secret
    assert len(secret) == 64
