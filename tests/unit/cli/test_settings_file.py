"""The settings file: what it may say, what wins over it, and how each value's origin is told."""

import json
import os
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from trainshed.cli.main import run
from trainshed.settings.table import SETTINGS, Settings, SettingsError, resolve

FREE = ("oidc_client_id", "oidc_title")  # any text is right
EVERY = """
host = "127.0.0.2"
port = 9000
auth = false
database = "postgresql://me:secret@db/x"
fit = "strict"
cpus = 1.5
memory = "8GiB"
processes_per_replica = 500
run_as = "200000-200999"
log_quota = 1000
allowed_hosts = ["a.example", "b.example"]
trusted_proxies = ["10.0.0.7", "2001:db8::/32"]
tls = true
tls_cert = "/etc/tls/fullchain.pem"
tls_key = "/etc/tls/privkey.pem"
runtimes = "/etc/runtimes.toml"
shares = "/etc/shares.toml"
default_output = "gs://shelf/out"
keep-free = "1GiB"
wheels = "/usr"
offline = true
warm = ["trainshed/pytorch"]
buckets = "/etc/buckets.toml"
s3 = true
s3_buckets = "cats"
registry_auth = "/etc/auth.json"
engine = "none"
image_retention = 30
give_up = ["UNSCHEDULABLE=2h"]
here = "last"
subnets = "192.168.0.0/18"
inward_hosts = ["wheels.example"]
kubernetes = true
kubeconfig = "/etc/kubeconfig"
pod_template = "/etc/pods.yaml"
context = "lab"
namespace = "ml"
kueue_queue = "team-a"
prices = "/etc/prices.toml"
smtp = "smtp://ada@mail.example:2525"
smtp_from = "trainshed@example.com"
smtp_password_file = "/etc/smtp"
public_url = "https://trainshed.example"
oidc_issuer = "https://id.example.org/realms/team"
oidc_client_id = "trainshed"
oidc_client_secret_file = "/etc/oidc"
oidc_title = "Team House"
oidc_scopes = ["email", "groups"]
oidc_name_claim = "preferred_username"
oidc_groups_claim = "groups"
oidc_new_accounts = true
login_lifetime = 7
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trainshed.toml"


def read(file: Path, text: str, *args: str, **env: str) -> Settings:
    file.write_text(text)
    return Settings.from_args(["--home", str(file.parent), *args], env)


def test_every_setting_can_stand_in_the_file_of_the_home(file: Path) -> None:
    found = read(file, EVERY)
    assert (found.port, found.auth, found.cpus, found.memory, found.log_quota) == (
        9000,
        False,
        1.5,
        8 << 30,
        1000,
    )
    assert (found.allowed_hosts, found.s3_buckets) == (("a.example", "b.example"), ("cats",))
    assert (found.offline, found.image_retention) == (True, timedelta(days=30))
    changed = {name for name in SETTINGS if getattr(found, name) != SETTINGS[name].default}
    assert changed == set(SETTINGS)
    os.environ.pop("TRAINSHED_DATABASE", None)
    again = Settings.from_args(found.to_args(), {"TRAINSHED_DATABASE": found.database or ""})
    assert again == found


def test_a_flag_wins_over_a_variable_that_over_the_file_and_that_over_the_default(file: Path) -> None:
    text = 'port = 1\nengine = "none"\noffline = true\nwarm = ["a"]'
    assert read(file, "").port == 8080
    assert read(file, text).port == 1
    found = read(file, text, TRAINSHED_PORT="2", TRAINSHED_OFFLINE="no", TRAINSHED_WARM="b c")
    assert (found.port, found.offline, found.warm) == (2, False, ("b", "c"))
    flags = ("--port=3", "--offline", "--warm=d", "--engine=auto")
    found = read(file, text, *flags, TRAINSHED_PORT="2", TRAINSHED_OFFLINE="no", TRAINSHED_WARM="b")
    assert (found.port, found.offline, found.warm, found.engine) == (3, True, ("d",), "auto")
    assert Settings.from_args(found.to_args(), {"TRAINSHED_PORT": "2", "TRAINSHED_OFFLINE": "0"}) == found
    assert not read(file, text, "--no-offline").offline


def test_a_path_in_the_file_is_as_seen_from_there(file: Path) -> None:
    found = read(file, 'runtimes = "more/runtimes.toml"\nwheels = "."\nbuckets = "~/b.toml"')
    assert (found.runtimes, found.wheels) == (file.parent / "more" / "runtimes.toml", file.parent)
    assert found.buckets == Path.home() / "b.toml"


def test_another_file_can_be_named_and_may_say_where_the_home_is(file: Path, tmp_path: Path) -> None:
    file.write_text("port = 1")
    other = tmp_path / "other.toml"
    other.write_text(f'home = "{tmp_path}"\nport = 5')
    for args, env in ((["--config", str(other)], {}), ([], {"TRAINSHED_CONFIG": str(other)})):
        found = Settings.from_args(args, env)
        assert (found.home, found.port, found.config) == (tmp_path, 5, other)
        assert Settings.from_args(found.to_args(), {}) == found
    with pytest.raises(SettingsError, match=r"cannot read .*gone\.toml"):
        Settings.from_args(["--config", "gone.toml"], {})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("\nprot = 1", r"trainshed\.toml:2: 'prot' is not a setting; did you mean port\?"),
        ("zzz = 1", r"trainshed\.toml:1: 'zzz' is not a setting; there are host, port"),
        ("# x\nport = 70000", r"trainshed\.toml:2: port: '70000' is not a port"),
        ('port = "x"', r"trainshed\.toml:1: port: 'x' is not a port"),
        ("port = true", r"trainshed\.toml:1: port: 'true' is not a port"),
        ('offline = "maybe"', r"trainshed\.toml:1: offline: 'maybe' is neither true nor false"),
        ("port = [1]", r"trainshed\.toml:1: port has a list"),
        ("[port]\nx = 1", r"trainshed\.toml:1: \[port\] is a table"),
        ("\n[server]\nport = 1", r"trainshed\.toml:2: \[server\] is a table; settings stand at the top"),
        ("warm = [1]", r"trainshed\.toml:1: warm has the value 1"),
        ("port =", r"trainshed\.toml is not TOML: .*end of document"),
        ('home = "/x"', r"trainshed\.toml:1: home cannot be set here; give --home"),
        ('config = "/x"', r"trainshed\.toml:1: config cannot be set here"),
        ('auth = false\nhost = "0.0.0.0"', "needs a loopback address"),
        ('tls_cert = "/c"', r"trainshed\.toml:1: /c is one file of a pair: give --tls-key too"),
        ('oidc_issuer = "http://id.example.org"', r"trainshed\.toml:1: oidc_issuer: .* is no issuer"),
        ('oidc_issuer = "https://u:p@id.example.org"', "is no issuer of OpenID Connect"),
        ('oidc_issuer = "https://id.example.org"', "--oidc-client-id ID is missing"),
        ('oidc_client_id = "trainshed"', "--oidc-issuer URL is missing"),
        ('oidc_name_claim = "two words"', "is not one word"),
        ('tls_key = "/k"', r"trainshed\.toml:1: /k is one file of a pair: give --tls-cert too"),
    ],
)
def test_what_is_wrong_in_the_file_is_told_with_its_line_and_what_is_right(
    file: Path, text: str, sentence: str
) -> None:
    with pytest.raises(SettingsError, match=sentence):
        read(file, text)


@pytest.mark.parametrize(
    "name", sorted(set(SETTINGS) - {"home", "config", "host", "database", "allowed_hosts", "context", *FREE})
)
def test_a_wrong_variable_is_named(name: str) -> None:
    variable = SETTINGS[name].variable
    if SETTINGS[name].metavar == "FILE":
        other = {"tls_cert": "--tls-key=/g", "tls_key": "--tls-cert=/g"}.get(
            name, ""
        )  # the pair's other file
        assert resolve(filter(None, [other]), {variable: "/f"})[1][name] == variable
        return
    with pytest.raises(SettingsError, match=f"{variable}: "):
        resolve([], {variable: "=wrong="})


def test_each_value_is_printed_with_its_origin(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.startswith("TRAINSHED_")]:
        monkeypatch.delenv(name)
    file.write_text('\nmemory = "8GiB"\ndatabase = "postgresql://me:secret@db/x"')
    monkeypatch.setenv("TRAINSHED_CPUS", "2")
    started: list[list[str]] = []

    def become(_: str, args: list[str]) -> None:
        started.append(args)
        sys.exit(0)

    monkeypatch.setattr(os, "execv", become)
    args = ["up", "--home", str(file.parent), "--port", "0", "--print-settings"]
    assert run(args) == 0
    rows = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert rows["port"] == ["0", "--port"]
    assert rows["cpus"] == ["2.0", "TRAINSHED_CPUS"]
    assert rows["memory"] == [str(8 << 30), f"{file}:2"]
    assert rows["database"] == ["postgresql://me:***@db/x", f"{file}:3"]
    assert rows["keep_free"] == ["10GiB,", "or", "a", "tenth", "of", "the", "disk", "default"]
    assert run([*args, "--json"]) == 0
    told = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(told) == list(SETTINGS)
    assert told["fit"] == {"name": "fit", "value": "shrink", "from": "default"}
    assert not started
    with pytest.raises(SystemExit):
        run([word for word in args if word != "--print-settings"])
    assert started[0][:4] == [sys.executable, "-P", "-m", "trainshed.server"]
    assert "secret" not in " ".join(started[0])
    assert os.environ.pop("TRAINSHED_DATABASE") == "postgresql://me:secret@db/x"


def test_the_help_of_up_names_each_flag(capsys: pytest.CaptureFixture[str]) -> None:
    run(["up", "--help"])
    told = capsys.readouterr().out
    for row in SETTINGS.values():
        assert row.flag in told
