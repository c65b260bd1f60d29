"""What a container is given beside its image, as mounts, variables and a place to start. Pure.

    /trainshed/code          the job's folder, where it has one; where its program starts then
    /.trainshed/tmp          scratch on the disk, its run's own
    /.trainshed/report       where it may report its progress
    /.trainshed/report.hypertune  ... by cloudml-hypertune
    /.trainshed/hatch        the socket of the server (loopback.py)
    /.trainshed/roots.pem    the certificates to trust where Google's names lead to the server
    /gcs, /s3                buckets
    /mnt/nfs/NAME            folders of NFS servers

Paths and addresses a job is told are those inside. The image's own TMPDIR is left alone, the job's own
variables too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from trainshed.backends.container.render import INSIDE, Mount, RunMounts
from trainshed.backends.machine.loopback import INSIDE as LOOPBACK
from trainshed.backends.machine.loopback import LoopbackPort, with_inside_address
from trainshed.core.google import HOSTS, past_proxies
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.nfs import NfsMount
from trainshed.core.metrics import HYPERTUNE, REPORT, hypertune_file
from trainshed.core.supplies.image import ImageConfig

CODE = "/trainshed/code"
TMP = f"{INSIDE}/tmp"
ROOTS = f"{INSIDE}/roots.pem"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedFolders:
    """What was prepared for one run, on this machine."""

    tmp: str
    code: str = ""  # the folder; none where empty
    report: str = ""  # the file
    buckets: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])  # about the buckets
    nfs: tuple[tuple[str, NfsMount], ...] = ()  # by volume
    quota: int = 0  # bytes that the engine itself enforces
    notes: tuple[str, ...] = ()


def run_mounts_of(
    launch: Launch, image: ImageConfig, places: PreparedFolders, loopback: LoopbackPort
) -> tuple[Launch, RunMounts]:
    """The launch with its variables as they are inside, and what is mounted for it."""
    mounts = [Mount(source=places.tmp, target=TMP), *places.buckets]
    google = launch.google if loopback.named else None
    trusted = {} if google is None else google.env(ROOTS)
    trusted = {name: value for name, value in trusted.items() if name not in image.env}
    env = with_inside_address({**trusted, **launch.env, **places.env}, loopback)
    env |= {} if google is None else past_proxies({**image.env, **env})
    if places.code:
        mounts.append(Mount(source=places.code, target=CODE))
    if places.report:
        mounts.append(Mount(source=places.report, target=f"{INSIDE}/report"))
        env[REPORT] = f"{INSIDE}/report"
        mounts.append(Mount(source=hypertune_file(places.report), target=hypertune_file(env[REPORT])))
        env.setdefault(HYPERTUNE, hypertune_file(env[REPORT]))
    if loopback.ports:
        mounts.append(Mount(source=str(loopback.folder), target=f"{INSIDE}/hatch", read_only=True))
    if google is not None:
        mounts.append(Mount(source=loopback.google.roots, target=ROOTS, read_only=True))
    mounts += [volume(name, mount.target) for name, mount in places.nfs]
    mounts += [Mount(source=scratch(places.tmp, n), target=path) for n, path in enumerate(launch.scratch)]
    start = f"{CODE}/{launch.working_directory}".rstrip("/") if places.code else ""
    run_mounts = RunMounts(
        mounts=tuple(mounts),
        env={} if "TMPDIR" in image.env else {"TMPDIR": TMP},
        workdir=start,
        loopback_ports=loopback.ports,
        hosts={} if google is None else dict.fromkeys(HOSTS, LOOPBACK),
        quota=places.quota,
        note=" ".join(places.notes),
    )
    return replace(launch, env=env), run_mounts


def scratch(tmp: str, number: int) -> str:
    """The folder behind one of the scratch paths of a job."""
    return f"{tmp}/.scratch-{number}"


def volume(name: str, target: str) -> Mount:
    """A volume of the engine. Nothing of the image is copied into it."""
    return Mount(source=name, target=target, options={"Type": "volume", "VolumeOptions": {"NoCopy": True}})


def overlay_volume(name: str, folder: str, labels: Mapping[str, str]) -> dict[str, object]:
    """The body of a volume that shows `lower` with what is written in `upper`, to all who have it at once."""
    layers = {"lowerdir": "lower", "upperdir": "upper", "workdir": "work"}
    options = ",".join(f"{word}={folder}/{layer}" for word, layer in layers.items())
    # As the keeper mounts it: `upper` then has whole files under their own names.
    options += ",index=off,metacopy=off,redirect_dir=off,nodev,nosuid"
    return _local(name, {"type": "overlay", "device": "overlay", "o": options}, labels)


def nfs_volume(name: str, mount: NfsMount, labels: Mapping[str, str]) -> dict[str, object]:
    """The body of a volume that is a folder of an NFS server."""
    options = {
        "type": "nfs",
        "device": f":{mount.path}",
        "o": f"addr={mount.server},{'ro' if mount.read_only else 'rw'}",
    }
    return _local(name, options, labels)


def _local(name: str, options: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, object]:
    return {"Name": name, "Driver": "local", "DriverOpts": dict(options), "Labels": dict(labels)}


def can_overlay(folder: str) -> bool:
    """Whether a mount's options can name the folder."""
    return not any(letter in folder for letter in ",:\\")


def is_root(user: str) -> bool:
    """Whether an image's user may change any file it is given."""
    return user.partition(":")[0] in ("", "0", "root")
