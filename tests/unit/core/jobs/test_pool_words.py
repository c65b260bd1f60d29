"""What a foreign grammar promises its replicas: numbers and addresses in their texts, and names."""

import json
from dataclasses import replace
from typing import Any

from tests.builders import a_job, a_pool, admitted
from trainshed.api.environment import environment
from trainshed.core.jobs.cluster_env import JobCluster
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.launching import Launches
from trainshed.core.jobs.origin import Origin
from trainshed.core.jobs.pool_words import LateValues, PoolWords, host_reference, is_late
from trainshed.core.jobs.replica import Replica
from trainshed.core.jobs.secret import MASK

WORDS = (
    PoolWords(hosts=("set-driver-$(job-index)-$(pod-index)",)),
    PoolWords(hosts=("set-worker-$(job-index)-$(pod-index)", "w$(job-global-index)"), group=2, first=1),
)


def a_set(words: tuple[PoolWords, ...] = WORDS) -> Job:
    env = (("ME", "$(job-index)/$(pod-index) of $(RANK)"), ("KEPT", "$$(RANK) $(HOME) $$ $(host-9-9)"))
    args = ("--driver", f"{host_reference(0, 0)}:$(MASTER_PORT)", "$(TF_CONFIG)")
    worker = replace(a_pool(4), env=env, args=args)
    origin = Origin(kind="manifest", record={}, pools=words)
    return admitted(replace(a_job(a_pool(), worker), origin=origin))


def test_texts_have_the_numbers_and_addresses_of_their_replica():
    launch = Launches(a_set()).of(Replica(pool=1, index=3))
    assert launch.env["ME"] == "1/1 of 4"
    assert launch.args == ("--driver", "10.0.0.1:2300", "$(TF_CONFIG)")


def test_an_ipv6_address_before_a_port_stands_in_brackets():
    job = a_set()
    assert job.status.admission is not None
    places = tuple(replace(place, host="fd00::1") for place in job.status.admission.placements)
    job = replace(job, status=replace(job.status, admission=replace(job.status.admission, placements=places)))
    launch = Launches(job).of(Replica(pool=1, index=3))
    assert launch.args == ("--driver", "[fd00::1]:2300", "$(TF_CONFIG)")
    assert launch.env["MASTER_ADDR"] == "fd00::1"
    assert json.loads(launch.env["TF_CONFIG"])["cluster"]["chief"] == ["[fd00::1]:2222"]
    assert json.loads(launch.env["CLUSTER_SPEC"])["cluster"]["workerpool0"] == ["[fd00::1]:2222"]


def shown(job: Job) -> Any:
    answer: Any = environment(job, {}, "workerpool1-3")
    return answer["replicas"][0]["environment"]


def test_what_users_are_shown_of_the_environment_is_what_programs_find():
    job = a_set()
    assert shown(job)["ME"] == "1/1 of 4"
    secret = replace(job.spec.pools[1], env=(("API_KEY", "$(RANK)"),))
    job = replace(job, spec=replace(job.spec, pools=(job.spec.pools[0], secret)))
    assert shown(job)["API_KEY"] == MASK


def test_an_escaped_reference_and_one_that_is_not_known_stay():
    assert JobCluster(a_set()).env(Replica(pool=1, index=0))["KEPT"] == "$(RANK) $(HOME) $$ $(host-9-9)"


def test_every_replica_is_told_the_names_of_all():
    assert Launches(a_set()).of(Replica(pool=0, index=0)).names == (
        ("set-driver-0-0",),
        ("set-worker-0-0", "w1"),
        ("set-worker-0-1", "w1"),
        ("set-worker-1-0", "w2"),
        ("set-worker-1-1", "w2"),
    )


def test_the_texts_of_any_other_job_are_meant_as_they_are():
    launch = Launches(a_set(())).of(Replica(pool=1, index=3))
    assert launch.env["ME"] == "$(job-index)/$(pod-index) of $(RANK)"
    assert launch.args[1] == "$(host-0-0):$(MASTER_PORT)"
    assert launch.names == ()


def test_only_short_values_can_be_named():
    assert not is_late("TF_CONFIG")
    assert is_late("RANK") and is_late("pod-index") and is_late("host-0-12")
    assert LateValues({"RANK": "1"}).fill("$(RANK)$(RANK)$(") == "11$("
