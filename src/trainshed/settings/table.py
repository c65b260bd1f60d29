"""The server's settings, in one table: for `trainshed up`, and for `python -m trainshed.server`.

Each row of `Settings` is a setting: its name, default, reader and help. From it come the flag, the variable,
the key in the settings file and the help of `trainshed up`. A flag wins over a variable, that over the file,
and that over the default. This only reads: it makes no folder, opens no port, and imports nothing heavy,
because every start pays for it.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from trainshed.settings import values
from trainshed.settings.row import Setting, setting, shown
from trainshed.settings.values import FITS, SUBNETS, SettingsError, is_loopback, parse_size

__all__ = ["SETTINGS", "Setting", "Settings", "SettingsError", "is_loopback", "parse_size"]

DEFAULT_HOME = "~/.trainshed"
RESTORING = ".restoring"  # in a home: what a restore has not put in place yet
S3_BUCKETS = ("training", "datasets")  # as guides to training from S3 call them
GIB = 1 << 30
DATABASE_VARIABLE = "TRAINSHED_DATABASE"  # not a flag between processes: everyone can read a process's flags
DEFAULT = "default"  # where a value comes from that nobody set


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    host: str = setting("127.0.0.1", str, "ADDRESS", "Where to listen.")
    port: int = setting(8080, values.port, "PORT", "The port; 0 takes a free one.")
    home: Path = setting(
        Path(DEFAULT_HOME), values.place, "DIR", "Where everything is kept.", told=DEFAULT_HOME
    )
    config: Path | None = setting(
        None,
        values.place,
        "FILE",
        "Settings, in TOML.",
        told="trainshed.toml in the home, where there is one",
    )
    auth: bool = setting(
        True, values.switch, "", "Ask for the token. Without it, only on a loopback address."
    )
    database: str | None = setting(
        None,
        str,
        "URL",
        "A PostgreSQL database. Its variable keeps a password out of sight.",
        told="SQLite in the home",
    )
    fit: str = setting(
        "shrink",
        values.fit,
        "|".join(FITS),
        "A job larger than the machine gets all there is (shrink) or waits (strict).",
    )
    cpus: float | None = setting(None, values.cpus, "N", "How many CPUs jobs may use.", told="all")
    memory: int | None = setting(
        None, parse_size, "SIZE", "How much memory jobs may use, such as 8GiB.", told="all"
    )
    processes_per_replica: int | None = setting(
        None,
        values.processes,
        "N",
        "Processes and threads a replica may have; 0: no limit.",
        told="4096, more with many CPUs",
    )
    run_as: str = setting(
        "",
        values.run_as,
        "USER|FIRST-LAST",
        "Whom processes of jobs run as: a user, or a user of its own for each job.",
        told="the server's own user",
    )
    log_quota: int = setting(GIB, parse_size, "SIZE", "How much a job may log.", told="1GiB")
    allowed_hosts: tuple[str, ...] = setting(
        (), str, "NAME", "Another host name to answer to.", flag="--allowed-host", many=True
    )
    trusted_proxies: tuple[str, ...] = setting(
        (),
        values.network,
        "ADDRESS",
        "A proxy, or a network of them, whose X-Forwarded-For says where calls come from.",
        flag="--trusted-proxy",
        many=True,
    )
    tls: bool = setting(
        False, values.switch, "", "Speak TLS, with a certificate of the home's own authority or these files."
    )
    tls_cert: Path | None = setting(
        None, values.place, "FILE", "The certificate and its chain (PEM); read again when it is renewed."
    )
    tls_key: Path | None = setting(
        None, values.place, "FILE", "The key of that certificate (PEM, without a passphrase)."
    )
    inward_hosts: tuple[str, ...] = setting(
        (),
        values.host,
        "HOST[:PORT]",
        "A host of the private network that requirements may name.",
        flag="--inward-host",
        many=True,
    )
    shares: Path | None = setting(
        None, values.place, "FILE", "How the machines are divided among projects, in TOML."
    )
    runtimes: Path | None = setting(None, values.place, "FILE", "Further runtimes, in TOML.")
    prices: Path | None = setting(
        None,
        values.place,
        "FILE",
        "Prices of CPUs, memory and GPUs, and budgets, in TOML; read again when it changes.",
    )
    default_output: str = setting(
        "", values.output, "gs://BUCKET/PATH", "Below it go the results of jobs that do not say where."
    )
    keep_free: int | None = setting(
        None,
        parse_size,
        "SIZE",
        "Unused runtimes and images go when the disk has less.",
        told="10GiB, or a tenth of the disk",
    )
    wheels: Path | None = setting(
        None, values.folder, "DIR", "A folder of packages for pip, beside the index."
    )
    offline: bool = setting(
        False, values.switch, "", "Let pip ask no index: what is not in --wheels is not there."
    )
    warm: tuple[str, ...] = setting(
        (),
        values.warm,
        "NAME",
        "Keep a runtime's imports done: its programs start at once. Also PYTHON=MODULE,...",
        many=True,
    )
    buckets: Path | None = setting(
        None, values.place, "FILE", "Buckets kept elsewhere (S3, Google's, Azure's), in TOML."
    )
    s3: bool = setting(
        False, values.switch, "", "Run an S3 store beside the server: SeaweedFS, with its data in the home."
    )
    s3_buckets: tuple[str, ...] = setting(
        S3_BUCKETS,
        values.bucket,
        "NAME",
        "A bucket of that store, made if need be.",
        flag="--s3-bucket",
        many=True,
    )
    registry_auth: Path | None = setting(
        None,
        values.place,
        "FILE",
        "Credentials for registries, as docker login writes them; asked before the engines' own.",
    )
    engine: str = setting("auto", values.engine, "SOCKET", "Docker's or Podman's; none: no containers.")
    kubernetes: bool = setting(
        False, values.switch, "", "Run container images as pods of a Kubernetes cluster."
    )
    here: str = setting(
        "needed",
        values.here,
        "USE",
        "Beside a cluster this machine runs what only it can (needed), images too (first, last), or none.",
    )
    kubeconfig: Path | None = setting(
        None,
        values.place,
        "FILE",
        "The cluster's address and credentials.",
        told="$KUBECONFIG, the pod's own or ~/.kube/config",
    )
    context: str = setting("", str, "NAME", "A context of the kubeconfig.", told="its current one")
    namespace: str = setting("", values.namespace, "NAME", "Where its pods are made.", told="the context's")
    pod_template: Path | None = setting(
        None,
        values.place,
        "FILE",
        "What pods of jobs have besides: a YAML file with metadata and spec, such as tolerations.",
    )
    kueue_queue: str = setting(
        "", values.queue, "NAME", "The LocalQueue of Kueue that jobs wait in which name none by a label."
    )
    give_up: tuple[str, ...] = setting(
        (),
        values.give_up,
        "REASON=TIME",
        "Fail a job whose replicas do not start for so long, such as UNSCHEDULABLE=2h.",
        told="10m, 1h or 1d",
        many=True,
    )
    image_retention: timedelta | None = setting(
        None,
        values.days,
        "DAYS",
        "Pulled images go that were not used for so long, such as 30d.",
        told="when the disk runs low",
    )
    subnets: str = setting(
        SUBNETS, values.subnets, "CIDR", "Addresses for the networks of jobs in containers."
    )

    smtp: str = setting(
        "", values.smtp, "smtp[s]://[USER@]HOST[:PORT]", "The mail server by which notices go out."
    )
    smtp_from: str = setting(
        "", values.mail_address, "ADDRESS", "The address that mails of notices come from."
    )
    smtp_password_file: Path | None = setting(
        None, values.place, "FILE", "The password of the user of --smtp, alone in a file."
    )
    public_url: str = setting(
        "",
        values.web_address,
        "URL",
        "The server's address as people reach it, for links in notices and for sign-ins.",
        told="where it listens",
    )

    oidc_issuer: str = setting(
        "", values.issuer, "URL", "The OpenID Connect provider by which people sign in."
    )
    oidc_client_id: str = setting("", str, "ID", "What the provider calls this server.")
    oidc_client_secret_file: Path | None = setting(
        None, values.place, "FILE", "The secret that the provider gave this server, alone in a file."
    )
    oidc_title: str = setting(
        "", values.title, "NAME", "What people call the provider.", told="its host's name"
    )
    oidc_scopes: tuple[str, ...] = setting(
        ("email", "profile"),
        values.word,
        "NAME",
        "What the provider is asked for beside openid.",
        flag="--oidc-scope",
        many=True,
    )
    oidc_name_claim: str = setting("email", values.word, "CLAIM", "Which of its claims names the account.")
    oidc_groups_claim: str = setting(
        "", values.word, "CLAIM", "Which of its claims says in which groups of this server somebody is."
    )
    oidc_new_accounts: bool = setting(
        False,
        values.switch,
        "",
        "Whom the provider knows gets an account, without roles, at the first sign-in.",
    )
    login_lifetime: timedelta = setting(
        timedelta(days=30),
        values.days,
        "DAYS",
        "How long a token counts that `login` gets by the browser.",
        told="30d",
    )

    @classmethod
    def from_args(cls, args: Iterable[str], environ: Mapping[str, str] | None = None) -> "Settings":
        """Reads `--flag value` and `--flag=value`; raises SettingsError with a sentence for people."""
        return resolve(args, environ)[0]

    def to_args(self) -> list[str]:
        """The flags that give this value back, the database excepted: that goes by DATABASE_VARIABLE."""
        args: list[str] = []
        for row in SETTINGS.values():
            value = getattr(self, row.name)
            if row.name == "database" or value is None or value == "":
                continue
            if row.is_switch:
                args.append(row.flag if value else row.negative)
            else:
                args += [
                    word for item in (value if row.many else (value,)) for word in (row.flag, shown(item))
                ]
        return args


def _row(name: str, default: object, metadata: Mapping[str, Any]) -> Setting:
    own: dict[str, Any] = {"flag": f"--{name.replace('_', '-')}", **metadata}
    return Setting(name=name, default=default, **own)


SETTINGS: Mapping[str, Setting] = {
    row.name: _row(row.name, row.default, row.metadata) for row in fields(Settings)
}
_FLAGS = {row.flag: row for row in SETTINGS.values()}
_NEGATIVES = {row.negative: row for row in SETTINGS.values() if row.is_switch}
_LEFT_EMPTY = (
    values.place,
    values.folder,
    values.engine,
    values.namespace,
    values.queue,
    values.run_as,
    values.smtp,
    values.mail_address,
    values.web_address,
    values.issuer,
    values.title,
    values.word,
    str,
)  # whose empty text says nothing
SettingTexts = dict[str, tuple[list[str], str]]  # a setting's name to its texts and where they were given


def resolve(
    args: Iterable[str], environ: Mapping[str, str] | None = None
) -> tuple[Settings, Mapping[str, str]]:
    """The settings, and where each comes from: its flag, its variable, FILE:LINE, or DEFAULT."""
    texts = _from_variables(os.environ if environ is None else environ) | _from_flags(args)
    texts = _from_file(texts) | texts
    given = {name: _value(SETTINGS[name], *source) for name, source in texts.items()}
    given.setdefault("home", values.place(DEFAULT_HOME))
    if "s3_buckets" in given:
        given.setdefault("s3", True)
    if pair := [name for name in ("tls_cert", "tls_key") if name in given]:
        given.setdefault("tls", True)
        if len(pair) == 1:
            missing = "--tls-key" if pair == ["tls_cert"] else "--tls-cert"
            raise SettingsError(
                f"{texts[pair[0]][1]}: {given[pair[0]]} is one file of a pair: give {missing} too"
            )
    settings = Settings(**given)
    if not settings.auth and not is_loopback(settings.host):
        raise SettingsError(
            f"--no-auth lets anyone in, so it needs a loopback address, and {settings.host} is none: "
            "leave out --no-auth, or use --host 127.0.0.1"
        )
    if settings.smtp and not settings.smtp_from:
        raise SettingsError("--smtp needs --smtp-from ADDRESS: mails come from somebody")
    if bool(settings.oidc_issuer) != bool(settings.oidc_client_id):
        missing = "--oidc-client-id ID" if settings.oidc_issuer else "--oidc-issuer URL"
        raise SettingsError(f"{missing} is missing: people sign in with both or without any provider")
    return settings, {name: texts[name][1] if name in texts else DEFAULT for name in SETTINGS}


def _value(row: Setting, texts: list[str], where: str) -> Any:
    prefix = where if where in (row.flag, row.negative, row.variable) else f"{where}: {row.name}"
    try:
        read = [row.read(text) for text in texts]
    except SettingsError as error:
        raise SettingsError(f"{prefix}: {error}") from error
    return tuple(dict.fromkeys(read)) if row.many else read[-1]


def _from_flags(args: Iterable[str]) -> SettingTexts:
    result: SettingTexts = {}
    queue = list(args)
    while queue:
        flag, equals, text = queue.pop(0).partition("=")
        row = _FLAGS.get(flag) or _NEGATIVES.get(flag)
        if row is None:
            raise SettingsError(f"{flag} is not a setting; there are {', '.join((*_FLAGS, *_NEGATIVES))}")
        if row.is_switch:
            if equals:
                raise SettingsError(f"{flag} takes no value; say {row.flag} or {row.negative}")
            text = str(flag == row.flag)
        elif not equals:
            if not queue:
                raise SettingsError(f"{flag} needs a value")
            text = queue.pop(0)
        if text or row.read not in _LEFT_EMPTY:
            before = result[row.name][0] if row.many and row.name in result else []
            result[row.name] = [*before, text], flag
    return result


def _from_variables(environ: Mapping[str, str]) -> SettingTexts:
    """Lists are separated by spaces."""
    there = ((row, environ.get(row.variable, "")) for row in SETTINGS.values())
    return {
        row.name: (text.split() if row.many else [text], row.variable) for row, text in there if text.strip()
    }


def _from_file(given: SettingTexts) -> SettingTexts:
    """What the settings file says: the one that is named, or the one in the home, where there is one."""
    home = values.place(given["home"][0][-1] if "home" in given else DEFAULT_HOME)
    named = "config" in given
    file = values.place(given["config"][0][-1]) if named else home / "trainshed.toml"
    if not named and not file.is_file():
        return {}
    from trainshed.settings.file import read_file

    rows = read_file(file, {row.name: row.many for row in SETTINGS.values()})
    for name in ("config",) if named else ("config", "home"):
        if name in rows:
            raise SettingsError(f"{rows[name][1]}: {name} cannot be set here; give {SETTINGS[name].flag}")
    for name, (texts, where) in rows.items():
        if SETTINGS[name].read in (values.place, values.folder):  # as seen from the file
            rows[name] = [str(file.parent / Path(text).expanduser()) for text in texts], where
    return {"config": ([str(file)], str(file)), **rows}
