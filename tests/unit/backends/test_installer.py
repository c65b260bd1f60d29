"""Derived images: when two are the same, and the container in which one is made."""

from dataclasses import replace

from trainshed.backends.container.render_installer import InstallerFiles, body, changes, title
from trainshed.backends.machine.additions import digest_of
from trainshed.backends.machine.installer import groups
from trainshed.core.supplies.image import ImageConfig
from trainshed.core.supplies.package import Package
from trainshed.core.supplies.runtime import RuntimeNeed

IMAGE = ImageConfig(id="sha256:1", entrypoint=("serve",), command=("now",), user="65534", workdir="/srv")
FILES = InstallerFiles(
    init="/b/init", installer="/s/fit.py", plan="/d/plan", record="/d/record", log="/d/log", tmp="/d/tmp"
)
ONE = Package(uri="gs://b/one-1.tar.gz", sha256="1" * 64, size=3)
TWO = Package(uri="gs://b/two-1.tar.gz", sha256="2" * 64, size=3)


def mount(source: str, target: str, *, read_only: bool = True) -> dict[str, object]:
    return {"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only}


def test_an_installation_is_rendered_whole_and_nothing_of_its_plan_is_in_it():
    shown = [("/p/one.whl", "/.trainshed/lent/packages/0/one.whl")]
    assert body(IMAGE, FILES, shown, labels={"trainshed.home": "h"}, memory=1 << 30) == {
        "Image": "sha256:1",
        "Entrypoint": ["/.trainshed/init"],
        "Cmd": ["python3", "/.trainshed/fit.py"],
        "User": "0",
        "WorkingDir": "/",
        "Labels": {"trainshed.home": "h"},
        "Tty": False,
        "OpenStdin": False,
        "HostConfig": {
            "Mounts": [
                mount("/b/init", "/.trainshed/init"),
                mount("/d/record", "/.trainshed/record", read_only=False),
                mount("/d/log", "/.trainshed/out", read_only=False),
                mount("/d/log", "/.trainshed/err", read_only=False),
                mount("/s/fit.py", "/.trainshed/fit.py"),
                mount("/d/plan", "/.trainshed/plan.json"),
                mount("/d/tmp", "/.trainshed/tmp", read_only=False),
                mount(*shown[0]),
            ],
            "PidsLimit": 4096,
            "Memory": 1 << 30,
            "MemorySwap": 1 << 30,
            "CapDrop": ["AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP"],
            "SecurityOpt": ["no-new-privileges"],
            "Privileged": False,
            "AutoRemove": False,
            "RestartPolicy": {"Name": "no"},
            "LogConfig": {"Type": "none", "Config": {}},
        },
    }


def test_an_index_on_this_machines_loopback_is_reached_through_a_loopback_port():
    made = body(IMAGE, replace(FILES, loopback="/h/hatch"), (), ports=(3141,), labels={})
    assert made["Entrypoint"] == ["/.trainshed/init", "--hatch", "3141"]
    assert mount("/h/hatch", "/.trainshed/hatch") in made["HostConfig"]["Mounts"]  # type: ignore[index]


def test_what_comes_out_is_run_as_what_it_was_made_of():
    assert changes(IMAGE, "d1") == (
        'ENTRYPOINT ["serve"]',
        'CMD ["now"]',
        "USER 65534",
        "WORKDIR /srv",
        "LABEL trainshed.derived=d1",
        "LABEL trainshed.base=sha256:1",
    )
    assert "USER 0" in changes(ImageConfig(id="x"), "d") and "WORKDIR /" in changes(ImageConfig(id="x"), "d")


def test_the_same_on_the_same_image_is_the_same_image():
    made = digest_of("sha256:1", (ONE, TWO), ("b", "a  # why"))
    assert made == digest_of("sha256:1", (ONE, TWO), ("a", "b"))
    assert made == digest_of("sha256:1", (replace(ONE, uri="gs://other/one-1.tar.gz"), TWO), ("a", "b"))
    others = {
        digest_of("sha256:2", (ONE, TWO), ("a", "b")),
        digest_of("sha256:1", (TWO, ONE), ("a", "b")),
        digest_of("sha256:1", (ONE,), ("a", "b")),
        digest_of("sha256:1", (ONE, TWO), ("a",)),
    }
    assert len(others | {made}) == 5


def test_what_is_made_is_said_in_words():
    need = RuntimeNeed("python:3", ("a", "b"), ("gs://b/one.tar.gz",))
    assert title(need) == "image python:3 with 1 package and 2 requirements on top"
    assert title(RuntimeNeed("python:3", ("a",))) == "image python:3 with 1 requirement on top"


def test_packages_are_installed_in_order_those_together_that_are_built_alike():
    plan = [{"path": "/a.whl", "isolated": False}, {"path": "/b.tar.gz", "isolated": False}]
    plan += [{"path": "/c.zip", "isolated": True}, {"path": "/d.whl", "isolated": False}]
    assert groups(plan, is_old=False) == [
        (False, ["/a.whl", "/b.tar.gz"]),
        (True, ["/c.zip"]),
        (False, ["/d.whl"]),
    ]
    assert groups(plan, is_old=True) == [
        (False, ["/a.whl"]),
        (True, ["/b.tar.gz", "/c.zip"]),
        (False, ["/d.whl"]),
    ]
