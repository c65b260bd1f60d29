from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainshed.settings.table import GIB, Settings, SettingsError, is_loopback, parse_size
from trainshed.settings.values import MailServer, mail_server


def test_with_nothing_said_the_server_is_for_this_machine_only() -> None:
    settings = Settings.from_args([], {})
    assert (settings.host, settings.port, settings.auth, settings.fit) == ("127.0.0.1", 8080, True, "shrink")
    assert settings.home == Path.home() / ".trainshed"
    assert (settings.database, settings.cpus, settings.memory, settings.log_quota) == (None, None, None, GIB)


def test_the_home_may_come_from_the_environment_and_a_flag_wins() -> None:
    assert Settings.from_args([], {"TRAINSHED_HOME": "/a"}).home == Path("/a")
    assert Settings.from_args(["--home", "/b"], {"TRAINSHED_HOME": "/a"}).home == Path("/b")


settings = st.builds(
    Settings,
    host=st.sampled_from(["127.0.0.1", "::1", "localhost"]),
    port=st.integers(0, 65535),
    home=st.sampled_from([Path("/srv/train shed"), Path("/x")]),
    auth=st.booleans(),
    fit=st.sampled_from(["shrink", "strict"]),
    cpus=st.none() | st.floats(0.1, 1000),
    memory=st.none() | st.integers(1, 1 << 45),
    log_quota=st.integers(1, 1 << 45),
    processes_per_replica=st.none() | st.just(0) | st.integers(16, 1 << 22),
    runtimes=st.none() | st.just(Path("/etc/run times.toml")),
    default_output=st.sampled_from(["", "gs://shelf", "s3://shelf/a b"]),
    keep_free=st.none() | st.integers(1, 1 << 45),
    buckets=st.none() | st.just(Path("/etc/buc kets.toml")),
    engine=st.sampled_from(["auto", "none", "/run/my engine.sock"]),
    subnets=st.sampled_from(["10.210.0.0/16", "192.168.0.0/18"]),
    image_retention=st.none() | st.integers(1, 40_000).map(lambda hours: timedelta(hours=hours)),
    allowed_hosts=st.lists(st.sampled_from(["a.example", "b.example"]), unique=True).map(tuple),
)


@given(settings)
def test_what_is_handed_to_the_server_comes_back_the_same(value: Settings) -> None:
    assert Settings.from_args(value.to_args(), {}) == value


def test_a_database_with_its_password_is_never_among_the_flags_of_the_process() -> None:
    value = Settings.from_args(["--database=postgresql://me:secret@db/x"], {})
    assert "secret" not in " ".join(value.to_args())
    assert Settings.from_args([], {"TRAINSHED_DATABASE": "postgresql://db/x"}).database == "postgresql://db/x"


def test_a_default_output_is_a_place_in_a_bucket() -> None:
    assert Settings.from_args(["--default-output", "gs://shelf/out/"], {}).default_output == "gs://shelf/out"
    for text in ("out", "/out", "gs://", "gs:///", "http://shelf/out", ""):
        with pytest.raises(SettingsError, match=r"--default-output: .* is no place in a bucket"):
            Settings.from_args(["--default-output", text], {})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "box.example"])
def test_without_a_token_only_a_loopback_address_is_served(host: str) -> None:
    with pytest.raises(SettingsError, match=host):
        Settings.from_args(["--no-auth", "--host", host], {})
    assert not is_loopback(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_addresses_may_go_without(host: str) -> None:
    assert not Settings.from_args(["--no-auth", "--host", host], {}).auth


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GiB", 8 << 30),
        ("8gib", 8 << 30),
        ("1.5G", 3 << 29),
        ("500MB", 500_000_000),
        ("7", 7),
        ("2 KiB", 2048),
    ],
)
def test_sizes_are_read_with_their_units(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "args",
    [
        ["--port", "65536"],
        ["--port", "x"],
        ["--port", "-1"],
        ["--port"],
        ["--fit", "squeeze"],
        ["--cpus", "0"],
        ["--cpus", "nan"],
        ["--memory", "8 apples"],
        ["--memory", "0"],
        ["--log-quota", "inf"],
        ["--processes-per-replica", "1"],
        ["--processes-per-replica", "-1"],
        ["--processes-per-replica", "many"],
        ["--s3-bucket", "No"],
        ["--s3-bucket", "a/b"],
        ["--engine", "podman"],
        ["--engine", "tcp://box:2375"],
        ["--subnets", "10.0.0.0/28"],
        ["--subnets", "8.8.0.0/16"],
        ["--subnets", "here"],
        ["--image-retention", "0d"],
        ["--image-retention", "soon"],
        ["--image-retention", "nan"],
    ],
)
def test_a_wrong_setting_is_named(args: list[str]) -> None:
    with pytest.raises(SettingsError, match=args[0]):
        Settings.from_args(args, {})


def test_a_store_of_its_own_has_the_buckets_of_the_guides_unless_others_are_named() -> None:
    assert not Settings.from_args([], {}).s3
    assert Settings.from_args(["--s3"], {}).s3_buckets == ("training", "datasets")
    named = Settings.from_args(["--s3-bucket", "s3://cats/", "--s3-bucket=dogs", "--s3-bucket=cats"], {})
    assert (named.s3, named.s3_buckets) == (True, ("cats", "dogs"))
    assert Settings.from_args(named.to_args(), {}) == named
    assert Settings.from_args([], {"TRAINSHED_BUCKETS": "/b.toml"}).buckets == Path("/b.toml")


def test_an_engine_is_named_by_its_socket_and_a_flag_wins_over_the_environment() -> None:
    assert Settings.from_args([], {}).engine == "auto"
    assert Settings.from_args([], {"TRAINSHED_ENGINE": "none"}).engine == "none"
    given = ["--engine", "unix:///run/podman/podman.sock"]
    assert Settings.from_args(given, {"TRAINSHED_ENGINE": "none"}).engine == "/run/podman/podman.sock"


def test_an_unknown_setting_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match=r"--prot is not a setting.*--port"):
        Settings.from_args(["--prot", "1"], {})


def test_what_is_kept_warm_is_a_runtime_or_an_interpreter_with_its_modules():
    given = ["--warm", "trainshed/pytorch", "--warm=/srv/venv/bin/python=torch,torch.distributed"]
    settings = Settings.from_args(given, {})
    assert settings.warm == ("trainshed/pytorch", "/srv/venv/bin/python=torch,torch.distributed")
    assert Settings.from_args(settings.to_args(), {}).warm == settings.warm


@pytest.mark.parametrize("name", ["", "venv/bin/python=torch", "/bin/python=", "/bin/python=a-b", "/p=os;x"])
def test_anything_else_is_not_kept_warm(name: str):
    with pytest.raises(SettingsError, match="--warm"):
        Settings.from_args([f"--warm={name}"], {})


def test_a_folder_of_wheels_is_named_by_flag_or_variable_and_must_be_there(tmp_path: Path) -> None:
    found = Settings.from_args(["--wheels", str(tmp_path), "--offline"], {})
    assert (found.wheels, found.offline) == (tmp_path, True)
    assert Settings.from_args(found.to_args(), {}) == found
    assert Settings.from_args([], {"TRAINSHED_WHEELS": str(tmp_path)}).wheels == tmp_path
    with pytest.raises(SettingsError, match="is no folder"):
        Settings.from_args(["--wheels", str(tmp_path / "none")], {})


def test_credentials_for_registries_are_named_by_flag_or_variable(tmp_path: Path) -> None:
    file = tmp_path / "auth.json"
    found = Settings.from_args(["--registry-auth", str(file)], {})
    assert found.registry_auth == file and Settings.from_args(found.to_args(), {}) == found
    assert Settings.from_args([], {"TRAINSHED_REGISTRY_AUTH": str(file)}).registry_auth == file
    assert Settings.from_args([], {}).registry_auth is None


def test_a_mail_server_is_an_address_without_a_password():
    assert mail_server("smtp://ada%40x@mail.example") == MailServer("mail.example", 587, False, "ada@x")
    assert mail_server("smtps://mail.example") == MailServer("mail.example", 465, True)
    assert mail_server("smtp://[::1]:25") == MailServer("::1", 25, False)


@pytest.mark.parametrize(
    "text", ["mail.example", "http://x", "smtp://", "smtp://x:y", "smtp://x/y", "smtp://[x"]
)
def test_what_is_no_mail_server_is_refused(text: str):
    with pytest.raises(SettingsError, match="smtp://USER@HOST"):
        mail_server(text)


def test_a_password_in_the_address_of_a_mail_server_is_refused_and_not_repeated():
    with pytest.raises(SettingsError, match="--smtp-password-file") as refusal:
        Settings.from_args(["--smtp", "smtp://ada:s3cret@mail.example", "--smtp-from", "a@b"], {})
    assert "s3cret" not in str(refusal.value)


def test_mails_come_from_somebody_and_links_lead_somewhere():
    with pytest.raises(SettingsError, match="--smtp-from"):
        Settings.from_args(["--smtp", "smtp://mail.example"], {})
    for wrong in ("ada", "a@b@c", "a b@c", "Ada <a@b>"):
        with pytest.raises(SettingsError, match="no mail address"):
            Settings.from_args(["--smtp-from", wrong], {})
    assert (
        Settings.from_args(["--public-url", "https://shed.example/x/"], {}).public_url
        == "https://shed.example/x"
    )
    for wrong in ("shed.example", "ftp://x", "https://x?y", "http://[x"):
        with pytest.raises(SettingsError, match="no address of a server"):
            Settings.from_args(["--public-url", wrong], {})
