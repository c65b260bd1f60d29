"""The jobs of an Experiment's trials: any manifest that becomes a job, with the values of its trial."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from tests.builders import T0, a_job, admitted
from tests.studies.study_builders import a_study
from tests.unit.dialects.kubernetes import test_job_set, test_mpi_job, test_pytorch_job, test_tf_job
from tests.unit.dialects.kubernetes import test_manifest as plain
from tests.unit.dialects.kubernetes import test_train_job as train_job
from tests.unit.dialects.kubernetes.test_experiment import EXPERIMENT, faults, parsed
from trainshed.core.errors import Invalid
from trainshed.core.jobs.cluster_env import JobCluster
from trainshed.core.jobs.replica import Replica
from trainshed.core.jobs.secret import JobSecrets
from trainshed.core.tuning.search_space import TrialPoint
from trainshed.core.tuning.study import StudyKind, Trial
from trainshed.core.tuning.trial_job import trial_origin, trial_spec
from trainshed.dialects.kubernetes.experiment_trials import ExperimentTrials, trial_record, with_trial_spec
from trainshed.dialects.kubernetes.manifest import ExperimentManifest, parse_manifest
from trainshed.service.jobs import JobRequest

SPEC = "spec.trialTemplate.trialSpec"
POINT: TrialPoint = {"lr": 0.02, "layers": 3, "optimizer": "adam"}
TF_JOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - name: tensorflow
            image: digits:1
            command: [train, "--lr=${trialParameters.learningRate}"]
            env: [{name: HF_TOKEN, value: abc}]
"""


def experiment(trial_spec: str | dict[str, Any], **changes: Any) -> dict[str, Any]:
    document = copy.deepcopy(EXPERIMENT)
    document["spec"]["trialTemplate"] |= {
        "trialSpec": yaml.safe_load(trial_spec) if isinstance(trial_spec, str) else trial_spec
    }
    document["spec"] |= changes
    return document


def moving() -> dict[str, Any]:
    """The layers are the number of workers, and the optimizer is a part of the image."""
    job = yaml.safe_load(TF_JOB)
    worker = job["spec"]["tfReplicaSpecs"]["Worker"]
    worker["replicas"] = "${trialParameters.numberLayers}"
    worker["template"]["spec"]["containers"][0]["image"] = "digits:${trialParameters.optimizer}"
    return experiment(job)


def request_of(wanted: ExperimentManifest, point: TrialPoint = POINT) -> JobRequest:
    """What the loop of studies submits for a trial."""
    study = replace(
        a_study(),
        kind=StudyKind.KATIB,
        template=wanted.draft.spec,
        record=trial_record(wanted.trial, moves=wanted.moves),
    )
    trial = Trial(study="7", number=3, point=point, requested_at=T0)
    secrets: JobSecrets = with_trial_spec(
        wanted.draft.secrets, wanted.experiment.job if wanted.moves else None
    )
    request = JobRequest(
        display_name="trial 3",
        spec=trial_spec(study, trial),
        origin=trial_origin("7", 3),
        secrets=secrets,
    )
    return ExperimentTrials(plain.OFFER).request(study, trial, request)


@pytest.mark.parametrize(
    ("manifest", "pools"),
    [
        (plain.POD, 1),
        (plain.JOB, 1),
        (test_job_set.SET, 2),
        (test_pytorch_job.JOB, 2),
        (test_mpi_job.PI, 2),
        (train_job.JOB, 1),
        (test_tf_job.JOB, 4),
    ],
)
def test_a_trial_is_any_manifest_that_becomes_a_job(manifest: str, pools: int):
    wanted = parsed(experiment(manifest))
    alone = plain.job_of(yaml.safe_load(manifest))
    assert [pool.image for pool in wanted.draft.spec.pools] == [pool.image for pool in alone.draft.spec.pools]
    assert len(wanted.draft.spec.pools) == pools
    assert len(wanted.trial.pools) == len(alone.manifest.pools)
    assert wanted.trial.is_indexed == alone.manifest.is_indexed


def test_replicas_of_a_trial_find_what_the_operator_of_their_kind_tells_them():
    request = request_of(parsed(experiment(TF_JOB)))
    job = admitted(replace(a_job(), spec=request.spec, origin=request.origin))
    env = JobCluster(job).env(Replica(pool=0, index=1))
    config = json.loads(env["TF_CONFIG"])
    assert config["task"] == {"type": "worker", "index": 1, "trial": "3"}
    assert config["cluster"] == {"worker": ["10.0.0.1:2222", "10.0.0.1:2223"]}
    assert env["CLOUD_ML_TRIAL_ID"] == "3"
    assert request.spec.pools[0].command == ("train", "--lr=0.02")
    assert request.origin is not None
    assert (request.origin.kind, request.origin.trial) == ("trial", "3")
    assert request.origin.pools[0].names(1)[0] == "random-worker-1"


def test_values_stand_wherever_the_manifest_has_a_place_for_them():
    [pool] = request_of(parsed(moving())).spec.pools
    assert (pool.image, pool.replicas) == ("digits:adam", 3)
    assert pool.command == ("train", "--lr=0.02")
    assert pool.args == ()  # each parameter has its place: none is an argument
    [pool] = request_of(parsed(moving()), {**POINT, "layers": 5, "optimizer": "sgd"}).spec.pools
    assert (pool.image, pool.replicas) == ("digits:sgd", 5)


def test_what_a_secret_is_stays_one_where_the_manifest_is_read_for_each_trial():
    wanted = parsed(moving())
    assert "abc" not in repr(trial_record(wanted.trial, moves=wanted.moves))
    request = request_of(wanted)
    assert request.secrets == {0: {"HF_TOKEN": "abc"}}
    assert "abc" not in repr(request.spec)


def test_a_job_without_words_of_its_own_is_a_trial_as_before():
    wanted = parsed(EXPERIMENT)
    assert trial_record(wanted.trial, moves=wanted.moves) == {}
    request = request_of(wanted)
    assert request.origin == trial_origin("7", 3)
    assert request.spec.pools[0].command[2:] == ("--lr=0.02", "--layers=3", "--optimizer=adam")


def test_a_value_that_makes_no_job_is_refused_with_the_value():
    document = moving()
    document["spec"]["parameters"][2]["feasibleSpace"]["list"] = ["sgd", "not an image"]
    with pytest.raises(Invalid) as refused:
        parse_manifest(document, plain.OFFER)
    [violation] = refused.value.violations
    path = f"{SPEC}.spec.tfReplicaSpecs.Worker.template.spec.containers[0].image"
    assert violation.field == path
    assert "optimizer = 'not an image'" in violation.description


def test_a_place_of_no_parameter_is_refused_wherever_it_is():
    document = moving()
    document["spec"]["trialTemplate"]["trialSpec"]["spec"]["successPolicy"] = "${trialParameters.policy}"
    assert SPEC in faults(document)


def test_faults_of_a_trials_job_are_told_at_its_place():
    document = experiment(TF_JOB)
    job = document["spec"]["trialTemplate"]["trialSpec"]
    job["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = "two"
    assert faults(document) == {f"{SPEC}.spec.tfReplicaSpecs.Worker.replicas"}
    job["apiVersion"] = "kubeflow.org/v9"
    assert f"{SPEC}.apiVersion" in faults(document)
    document = experiment(TF_JOB)
    document["metadata"]["name"] = "Not a name"
    assert faults(document) == {"metadata.name"}


def test_the_container_that_reports_is_the_first_one():
    job = yaml.safe_load(plain.POD)
    job["spec"]["containers"].insert(0, {"name": "sidecar", "image": "digits:1"})
    document = experiment(job)
    document["spec"]["trialTemplate"]["primaryContainerName"] = "main"
    assert faults(document) == {"spec.trialTemplate.primaryContainerName"}
    document["spec"]["trialTemplate"]["primaryContainerName"] = "sidecar"
    assert len(parsed(document).draft.spec.pools) == 2
