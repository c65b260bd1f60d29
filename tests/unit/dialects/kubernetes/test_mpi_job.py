"""MPIJobs as jobs: the launcher ends them, workers start what mpirun asks for, and nobody needs ssh."""

from typing import Any

import pytest

from tests.unit.dialects.kubernetes.test_manifest import job_of, read, refused
from trainshed.core.jobs.pool_words import PoolWords, RemoteWords
from trainshed.wire.custom_job import render_spec

PI = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: pi, namespace: ml}
spec:
  slotsPerWorker: 2
  sshAuthMountPath: /home/mpiuser/.ssh
  launcherCreationPolicy: WaitForWorkersReady
  runPolicy:
    cleanPodPolicy: Running
    ttlSecondsAfterFinished: 60
    backoffLimit: 2
    activeDeadlineSeconds: 600
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
          - name: launcher
            image: example/pi:1
            securityContext: {runAsUser: 1000}
            command: [mpirun]
            args: [-n, "2", --hostfile, /etc/mpi/hostfile, /home/mpiuser/pi]
            env:
            - {name: WHO, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            resources: {limits: {cpu: 1, memory: 1Gi}}
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - name: worker
            image: example/pi:1
            securityContext: {runAsUser: 1000}
            command: [/usr/sbin/sshd]
            args: [-De, -f, /home/mpiuser/.sshd_config]
            resources: {limits: {cpu: 1, memory: 1Gi}}
"""
BENCHMARKS = """
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: benchmarks}
spec:
  cleanPodPolicy: None
  mainContainer: launcher
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers:
          - name: launcher
            image: example/benchmarks:1
            command: [mpirun, -bind-to, none, -x, LD_LIBRARY_PATH, python, train.py]
            env: [{name: OMPI_MCA_plm_rsh_agent, value: ssh}]
    Worker:
      replicas: 3
      restartPolicy: OnFailure
      template:
        spec:
          containers:
          - {name: worker, image: "example/benchmarks:1", resources: {limits: {nvidia.com/gpu: 1}}}
"""


def spec_of(document: dict[str, Any]) -> Any:
    return render_spec(job_of(document).draft.spec)


def env_of(document: dict[str, Any], pool: int = 0) -> dict[str, str]:
    return dict(job_of(document).draft.spec.pools[pool].env)


def pods(document: dict[str, Any], kind: str = "Worker") -> dict[str, Any]:
    return document["spec"]["mpiReplicaSpecs"][kind]["template"]["spec"]


def test_the_launcher_is_the_first_pool_and_the_workers_serve_it():
    spec = spec_of(read(PI))
    launcher, workers = spec["workerPoolSpecs"]
    assert launcher["containerSpec"]["command"] == ["mpirun"]
    assert launcher["containerSpec"]["args"][2:] == ["--hostfile", "/etc/mpi/hostfile", "/home/mpiuser/pi"]
    assert (workers["containerSpec"]["command"], workers["replicaCount"]) == (["$(serve)"], "2")
    assert "args" not in workers["containerSpec"]
    assert spec["scheduling"]["restartRule"]["maxReplicaRestarts"] == 2
    assert (spec["scheduling"]["timeout"], spec["scheduling"]["drainDuration"]) == ("600s", "0s")


def test_replicas_have_the_names_of_the_operator_and_their_tasks():
    launcher, workers = job_of(read(PI)).manifest.pools
    endings = ("", ".ml", ".ml.svc", ".ml.svc.cluster.local")
    assert launcher == PoolWords(
        hosts=("pi-launcher", *(f"pi-launcher.pi{ending}" for ending in endings), "workerpool0-0"),
        remote=RemoteWords(serves=False, list_place="/etc/mpi/hostfile"),
    )
    assert workers.remote == RemoteWords(serves=True, row="$(host) slots=2", list_place="/etc/mpi/hostfile")
    assert workers.names(1) == (
        "pi-worker-1",
        *(f"pi-worker-1.pi{ending}" for ending in endings),
        "workerpool1-1",
    )
    assert env_of(read(PI))["WHO"] == "pi-launcher"


def test_what_is_ignored_is_said():
    launcher = "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0]"
    worker = launcher.replace("Launcher", "Worker")
    assert sorted(job_of(read(PI)).notes) == [
        "metadata.namespace is ignored: a name is known in its project and location.",
        f"{launcher}.securityContext.runAsUser is ignored: it runs as the image's user.",
        f"{worker}.command is not run: workers need no sshd, and start what mpirun asks for without it.",
        f"{worker}.securityContext.runAsUser is ignored: it runs as the image's user.",
        "spec.runPolicy.ttlSecondsAfterFinished is ignored: ended jobs stay until they are deleted.",
        "spec.sshAuthMountPath is ignored: replicas start programs in each other without keys.",
    ]
    assert sorted(job_of(read(BENCHMARKS)).notes) == [
        "spec.cleanPodPolicy is ignored: workers are stopped when the launcher ends.",
        "spec.mainContainer is ignored: a Pod has one container here.",
        "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].env[0] is ignored: OMPI_MCA_plm_rsh_agent "
        "is set here.",
        "spec.mpiReplicaSpecs.Worker.restartPolicy is ignored: the launcher's, Never, holds for all.",
        f"{worker} asks for any GPU, which is written down as NVIDIA_TESLA_T4.",
    ]


def test_a_worker_without_a_command_serves_and_a_launcher_that_is_never_restarted_ends_the_job():
    spec = spec_of(read(BENCHMARKS))
    assert spec["workerPoolSpecs"][1]["containerSpec"]["command"] == ["$(serve)"]
    assert spec["scheduling"]["disableRetries"] is True


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        (["sh", "-c", "/usr/sbin/sshd -De"], False),
        (["/bin/bash", "-lc", "exec sshd -De -p 2222"], False),
        (["sh", "-c", "prepare && /usr/sbin/sshd -De"], True),
        (["sleep", "infinity"], True),
    ],
)
def test_a_command_that_is_only_sshd_is_not_run_and_any_other_is(command: list[str], runs: bool):
    document = read(BENCHMARKS)
    pods(document)["containers"][0]["command"] = command
    container = spec_of(document)["workerPoolSpecs"][1]["containerSpec"]
    assert container["command"] == (command if runs else ["$(serve)"])


def test_arguments_alone_go_to_the_entry_point_of_the_image():
    document = read(BENCHMARKS)
    pods(document)["containers"][0]["args"] = ["--serve"]
    container = spec_of(document)["workerPoolSpecs"][1]["containerSpec"]
    assert (container.get("command"), container["args"]) == (None, ["--serve"])


def test_each_implementation_has_its_own_variables_and_list():
    assert env_of(read(PI))["OMPI_MCA_plm_rsh_agent"] == "$(remote-program)"
    assert env_of(read(PI))["OMPI_MCA_orte_default_hostfile"] == "$(host-list)"
    assert env_of(read(PI), 1)["OMPI_MCA_btl_vader_backing_directory"] == "$(own-folder)"
    assert "OMPI_MCA_orte_default_hostfile" not in env_of(read(PI), 1)
    assert env_of(read(PI))["OMPI_MCA_btl_tcp_if_include"] == "$(loopback)"
    assert "OMPI_MCA_btl_vader_backing_directory" not in env_of(read(PI))
    document = read(PI)
    document["spec"]["mpiImplementation"] = "Intel"
    assert env_of(document) == {
        "WHO": "pi-launcher",
        "K_MPI_JOB_ROLE": "launcher",
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": "$(remote-program)",
        "I_MPI_HYDRA_HOST_FILE": "$(host-list)",
    }
    document["spec"]["mpiImplementation"] = "MPICH"
    assert env_of(document, 1) == {
        "K_MPI_JOB_ROLE": "worker",
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": "$(remote-program)",
    }
    workers = job_of(document).manifest.pools[1].remote
    assert workers is not None
    assert workers.row == "$(host):2"


def test_what_the_file_says_of_networks_is_left_to_it():
    document = read(PI)
    pods(document, "Launcher")["containers"][0]["args"] += ["-mca", "btl_tcp_if_exclude", "docker0"]
    assert not [name for pool in (0, 1) for name in env_of(document, pool) if "btl_tcp" in name]


def test_a_launcher_that_works_too_is_in_the_list_and_may_be_alone():
    document = read(PI)
    document["spec"] |= {"runLauncherAsWorker": True}
    assert [words.remote.row for words in job_of(document).manifest.pools if words.remote] == [
        "$(host) slots=2",
        "$(host) slots=2",
    ]
    del document["spec"]["mpiReplicaSpecs"]["Worker"]
    assert len(spec_of(document)["workerPoolSpecs"]) == 1


def test_every_violation_is_told_with_its_path():
    document = read(PI)
    document["apiVersion"] = "kubeflow.org/v1alpha1"
    document["spec"] |= {
        "slotsPerWorker": 0,
        "mpiImplementation": "LAM",
        "launcherCreationPolicy": "Later",
        "cleanPodPolicy": "Some",
        "runPolicy": {"suspend": True, "backoffLimit": -1, "cleanPodPolicy": "Never"},
        "slots": 3,
    }
    document["spec"]["mpiReplicaSpecs"]["Launcher"] |= {"replicas": 2, "restartPolicy": "Always"}
    document["spec"]["mpiReplicaSpecs"]["Worker"] |= {"replicas": -1, "restartPolicy": "Sometimes"}
    version = "must be kubeflow.org/v2beta1 or kubeflow.org/v1 for a MPIJob, not 'kubeflow.org/v1alpha1'."
    policy = "must be OnFailure, ExitCode, Never, not '{}': a job is to end."
    assert refused(document) == {
        "apiVersion": version,
        "spec.slots": "is not a field of a MPIJobSpec.",
        "spec.slotsPerWorker": "must be between 1 and 1024, not 0.",
        "spec.mpiImplementation": "must be one of OpenMPI, Intel, MPICH, not 'LAM'.",
        "spec.launcherCreationPolicy": "must be AtStartup or WaitForWorkersReady, not 'Later'.",
        "spec.cleanPodPolicy": "must be None, Running or All, not 'Some'.",
        "spec.runPolicy.cleanPodPolicy": "must be None, Running or All, not 'Never'.",
        "spec.runPolicy.suspend": "cannot be had: apply it when it is to run.",
        "spec.runPolicy.backoffLimit": "must be between 0 and 1000, not -1.",
        "spec.mpiReplicaSpecs.Launcher.replicas": "must be 1: there is one launcher, not 2.",
        "spec.mpiReplicaSpecs.Launcher.restartPolicy": policy.format("Always"),
        "spec.mpiReplicaSpecs.Worker.replicas": "must be at least 0, not -1.",
        "spec.mpiReplicaSpecs.Worker.restartPolicy": policy.format("Sometimes"),
    }


def test_launcher_and_workers_are_required():
    faults = refused({"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "x"}})
    assert faults["spec.mpiReplicaSpecs.Launcher"] == "is required: it runs mpirun."
    assert faults["spec.mpiReplicaSpecs.Worker"] == (
        "is required: at least one worker, or spec.runLauncherAsWorker: true."
    )


@pytest.mark.parametrize(
    "spec", [None, [], "x", {"mpiReplicaSpecs": []}, {"mpiReplicaSpecs": {"Launcher": 3}}]
)
def test_a_document_of_any_shape_is_refused_and_breaks_nothing(spec: Any):
    assert refused(
        {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "x"}, "spec": spec}
    )
