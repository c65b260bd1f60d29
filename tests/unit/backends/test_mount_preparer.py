"""What a container is given beside its image is a pure function: here in full."""

from pathlib import Path

from trainshed.backends.container.render import ContainerFrame, Mount, RunMounts, render
from trainshed.backends.container.run_mounts import (
    PreparedFolders,
    can_overlay,
    is_root,
    nfs_volume,
    overlay_volume,
    run_mounts_of,
)
from trainshed.backends.machine.google_redirect import GoogleRedirect
from trainshed.backends.machine.loopback import LoopbackPort, loopback_ports, with_inside_address
from trainshed.core.google import HOSTS, GoogleAccess
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.nfs import NfsMount
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.queue.fleet import Placement
from trainshed.core.supplies.image import ImageConfig

LOOPBACK = LoopbackPort(Path("/h/hatch"), "http://127.0.0.1:8080", frozenset({8333}))
IMAGE = ImageConfig(id="sha256:1", workdir="/app")


def a_launch(**more: object) -> Launch:
    return Launch(
        key=RunKey(ReplicaName("j", 0, 0, 0), 0),
        image="i",
        command=("c",),
        args=(),
        placement=Placement(pool=0, index=0, node="n", host="127.0.0.1", cpus=1, memory=1 << 30),
        **more,  # type: ignore[arg-type]
    )


def test_a_run_that_asks_for_nothing_gets_scratch_alone():
    launch, run_mounts = run_mounts_of(a_launch(), IMAGE, PreparedFolders(tmp="/r/tmp"), LoopbackPort())
    assert launch == a_launch()
    assert run_mounts == RunMounts(
        mounts=(Mount(source="/r/tmp", target="/.trainshed/tmp"),), env={"TMPDIR": "/.trainshed/tmp"}
    )


def test_all_that_a_run_may_find_is_mounted_and_told_as_it_is_inside():
    nfs = NfsMount(server="10.0.0.2", path="/x", mount_point="data")
    places = PreparedFolders(
        tmp="/r/tmp",
        code="/r/work",
        report="/m/report",
        buckets=(Mount(source="v", target="/gcs"),),
        env={"TRAINSHED_GCS_ROOT": "/gcs"},
        nfs=(("n", nfs),),
        quota=5,
        notes=("One.", "Two."),
    )
    told = {"STORAGE_EMULATOR_HOST": "http://127.0.0.1:8080/t/x", "TRAINSHED_REPORT": "elsewhere"}
    launch, run_mounts = run_mounts_of(a_launch(env=told, working_directory="sub"), IMAGE, places, LOOPBACK)
    assert launch.env == {
        "STORAGE_EMULATOR_HOST": "http://127.0.0.1:8080/t/x",
        "TRAINSHED_REPORT": "/.trainshed/report",
        "CLOUD_ML_HP_METRIC_FILE": "/.trainshed/report.hypertune",
        "TRAINSHED_GCS_ROOT": "/gcs",
    }
    assert run_mounts == RunMounts(
        mounts=(
            Mount(source="/r/tmp", target="/.trainshed/tmp"),
            Mount(source="v", target="/gcs"),
            Mount(source="/r/work", target="/trainshed/code"),
            Mount(source="/m/report", target="/.trainshed/report"),
            Mount(source="/m/report.hypertune", target="/.trainshed/report.hypertune"),
            Mount(source="/h/hatch", target="/.trainshed/hatch", read_only=True),
            Mount(
                source="n",
                target="/mnt/nfs/data",
                options={"Type": "volume", "VolumeOptions": {"NoCopy": True}},
            ),
        ),
        env={"TMPDIR": "/.trainshed/tmp"},
        workdir="/trainshed/code/sub",
        loopback_ports=(8080, 8333),
        quota=5,
        note="One. Two.",
    )


def test_the_images_own_tmpdir_is_left_alone():
    image = ImageConfig(id="sha256:1", env={"TMPDIR": "/scratch"})
    assert run_mounts_of(a_launch(), image, PreparedFolders(tmp="/r/tmp"), LoopbackPort())[1].env == {}


def test_loopback_ports_and_quota_are_in_what_the_engine_is_sent():
    frame = ContainerFrame(home="h", init="/init", record="/record", podman=True, network="n")
    body = render(a_launch(), IMAGE, frame, RunMounts(loopback_ports=(8080, 8333), quota=5 << 30))
    assert body["Entrypoint"] == ["/.trainshed/init", "--hatch", "8080", "--hatch", "8333"]
    assert body["HostConfig"]["StorageOpt"] == {"size": str(5 << 30)}  # type: ignore[index]
    assert body["WorkingDir"] == "/app"
    plain = render(a_launch(), IMAGE, frame, RunMounts(workdir="/trainshed/code"))
    assert plain["Entrypoint"] == ["/.trainshed/init"]
    assert "StorageOpt" not in plain["HostConfig"]  # type: ignore[operator]
    assert plain["WorkingDir"] == "/trainshed/code"


def test_a_server_by_another_name_is_found_on_loopback_inside():
    loopback = LoopbackPort(Path("/h"), "http://192.168.1.5:9000")
    env = {"A": "http://192.168.1.5:9000/t/x", "B": '{"url": "http://192.168.1.5:9000/"}', "C": "c"}
    assert with_inside_address(env, loopback) == {
        "A": "http://127.0.0.1:9000/t/x",
        "B": '{"url": "http://127.0.0.1:9000/"}',
        "C": "c",
    }
    assert with_inside_address(env, LoopbackPort()) == env


def test_only_ports_of_this_machine_are_loopback_ports():
    told = ["http://127.0.0.1:8333", "http://localhost:9000/x", "http://10.0.0.1:80", "x", "http://127.0.0.1"]
    assert loopback_ports([*told, "http://127.0.0.1:x", "https://127.0.0.1:1"]) == {8333, 9000}


def test_volumes_are_what_the_engines_local_driver_mounts():
    labels = {"trainshed.home": "h"}
    assert overlay_volume("v", "/f", labels) == {
        "Name": "v",
        "Driver": "local",
        "DriverOpts": {
            "type": "overlay",
            "device": "overlay",
            "o": "lowerdir=/f/lower,upperdir=/f/upper,workdir=/f/work"
            ",index=off,metacopy=off,redirect_dir=off,nodev,nosuid",
        },
        "Labels": labels,
    }
    mount = NfsMount(server="10.0.0.2", path="/x", mount_point="data")
    assert nfs_volume("v", mount, labels) == {
        "Name": "v",
        "Driver": "local",
        "DriverOpts": {"type": "nfs", "device": ":/x", "o": "addr=10.0.0.2,rw"},
        "Labels": labels,
    }


def test_who_is_root_and_which_folders_can_be_named():
    assert [is_root(user) for user in ("", "0", "root", "0:0", "root:users")] == [True] * 5
    assert not any(is_root(user) for user in ("1000", "app", "1:0"))
    assert can_overlay("/home/ü x") and not any(map(can_overlay, ("/a,b", "/a:b", "/a\\b")))


def test_scratch_at_a_path_is_a_folder_of_the_run_and_what_is_not_to_be_written_is_mounted_so():
    _, run_mounts = run_mounts_of(
        a_launch(scratch=("/cache", "/b")), IMAGE, PreparedFolders(tmp="/r/tmp"), LoopbackPort()
    )
    assert run_mounts.mounts[1:] == (
        Mount(source="/r/tmp/.scratch-0", target="/cache"),
        Mount(source="/r/tmp/.scratch-1", target="/b"),
    )
    nfs = NfsMount(server="10.0.0.2", path="/x", mount_point="/data", read_only=True)
    options = nfs_volume("n", nfs, {})["DriverOpts"]
    assert options == {"type": "nfs", "device": ":/x", "o": "addr=10.0.0.2,ro"}


ROOTS = "/h/tls/roots.pem"
GOOGLE = GoogleAccess("http://box:8080", "x")


def named() -> LoopbackPort:
    redirect = GoogleRedirect(roots=ROOTS)
    return LoopbackPort(Path("/h/hatch"), "http://box:8080", frozenset({8333}), google=redirect)


def test_googles_names_lead_to_a_loopback_port_and_are_trusted_by_the_roots_that_are_mounted():
    image = ImageConfig(id="sha256:1", env={"CURL_CA_BUNDLE": "/image/own.pem", "https_proxy": "http://p:1"})
    launch, run_mounts = run_mounts_of(a_launch(google=GOOGLE), image, PreparedFolders(tmp="/r/tmp"), named())
    assert run_mounts.loopback_ports == (8080, 443, 8333)
    assert run_mounts.hosts == dict.fromkeys(HOSTS, "127.0.0.1")
    assert Mount(source=ROOTS, target="/.trainshed/roots.pem", read_only=True) in run_mounts.mounts
    assert launch.env["SSL_CERT_FILE"] == "/.trainshed/roots.pem"
    assert launch.env["GCE_METADATA_HOST"] == "127.0.0.1:8080/t/x"
    assert "CURL_CA_BUNDLE" not in launch.env  # the image's own stays
    assert launch.env["no_proxy"].endswith(",".join(HOSTS))


def test_a_job_that_means_google_is_given_nothing_of_it():
    launch, run_mounts = run_mounts_of(a_launch(), IMAGE, PreparedFolders(tmp="/r/tmp"), named())
    assert (launch.env, run_mounts.hosts) == ({}, {})


def test_a_server_at_port_443_has_no_room_for_googles_names():
    loopback = named()
    loopback.address = "http://box:443"
    assert not loopback.named
    assert loopback.ports == (443, 8333)
