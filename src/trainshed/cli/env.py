"""`trainshed env`: the variables that make the real gcloud, the SDK and scripts talk to our server.

It makes a configuration folder for gcloud under the home, so that the person's own stays as it is.
"""

import json
import os
import shlex
import shutil
from pathlib import Path

import click

from trainshed.cli.failure import CommandFailed
from trainshed.cli.options import as_json, failed
from trainshed.client import ApiError, Client, ClientError, Target, discover

# Each names a file of root certificates to some client, which then trusts no others.
ROOTS = (
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "HTTPLIB2_CA_CERTS",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
)
SERVICES = (
    *("AIPLATFORM", "ML", "LOGGING", "STORAGE", "COMPUTE"),
    *("CLOUDQUOTAS", "CLOUDRESOURCEMANAGER", "ARTIFACTREGISTRY"),
)


@click.command("env", short_help="Print the variables that point gcloud and scripts at the server.")
@click.option(
    "--shell", type=click.Choice(["sh", "fish"]), default="sh", show_default=True, help="The dialect."
)
@click.option(
    "--home", metavar="DIR", help="Of the server that keeps everything there, whatever is set here."
)
@click.option("--url", metavar="URL", help="The server's address. [default: the one running here]")
@click.option("--project", metavar="NAME", help="The project. [default: TRAINSHED_PROJECT or gcloud's]")
@click.option(
    "--location",
    "--region",
    "location",
    metavar="NAME",
    help="The location. [default: TRAINSHED_LOCATION or gcloud's]",
)
@as_json
def command(
    *,
    shell: str,
    as_json: bool,
    home: str | None,
    url: str | None,
    project: str | None,
    location: str | None,
) -> None:
    """Print the variables that point gcloud and scripts at the server.

    Where no server answers nothing is printed, and the exit code is 1.

    \b
    Example:
      eval "$(trainshed env)"
      gcloud ai custom-jobs list
    """
    target: Target | None = None
    try:
        folder = Path(home).expanduser().absolute() if home else None
        target = discover(home=folder, url=url, project=project, location=location)
        _check(target)
        environment = variables(target)
    except ClientError as error:
        raise failed(error, target) from error
    except OSError as error:
        raise CommandFailed(f"cannot write under {target and target.home}: {error.strerror}") from error
    if as_json:
        click.echo(json.dumps(environment, indent=2))
        return
    lines = [line(shell, name, value) for name, value in environment.items()]
    if os.environ.get("TRAINSHED_TOKEN") and target.token_from != "TRAINSHED_TOKEN":  # it would win
        lines.append("set -e TRAINSHED_TOKEN;" if shell == "fish" else "unset TRAINSHED_TOKEN")
    if os.environ.get("TRAINSHED_CA") and not target.ca:
        lines.append("set -e TRAINSHED_CA;" if shell == "fish" else "unset TRAINSHED_CA")
    click.echo("\n".join(lines))


def _check(target: Target) -> None:
    """Raises ClientError where no server answers, or it refuses the token."""
    try:
        with Client.of(target, pauses=()) as client:
            next(client.jobs(limit=1), None)
    except ApiError as error:
        if error.code == 401:
            raise


def variables(target: Target) -> dict[str, str]:
    config = target.home.absolute() / "gcloud"
    config.mkdir(parents=True, exist_ok=True, mode=0o700)
    config.chmod(0o700)
    token_file = str(_token_file(target, config))
    return {
        "TRAINSHED_HOME": str(target.home.absolute()),
        "TRAINSHED_URL": target.url,
        "TRAINSHED_TOKEN_FILE": token_file,
        "GOOGLE_CLOUD_PROJECT": target.project,
        "GOOGLE_CLOUD_REGION": target.location,
        "CLOUDSDK_CONFIG": str(config),
        "CLOUDSDK_CORE_PROJECT": target.project,
        "CLOUDSDK_AI_REGION": target.location,
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
        "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": token_file,
        "STORAGE_EMULATOR_HOST": f"{target.url}/t/{target.token}" if target.token else target.url,
        **{f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{service}": f"{target.url}/" for service in SERVICES},
        **_trust(target.ca, config),
        **_gsutil(config),
        **_s3(target.home),
    }


def _trust(ca: str, config: Path) -> dict[str, str]:
    """What makes clients trust a server with an authority of its own, beside all that they trust already."""
    if not ca:
        return {}
    from trainshed.certificates.roots import bundle, certificates_in, machine_roots

    roots = config / "roots.pem"
    others = {name: value for name, value in os.environ.items() if value != str(roots)}
    draft = roots.with_suffix(".new")
    draft.write_text(bundle((*machine_roots(others), *certificates_in(Path(ca).read_text()))))
    draft.replace(roots)
    return {"TRAINSHED_CA": str(Path(ca).absolute()), **dict.fromkeys(ROOTS, str(roots))}


def _gsutil(config: Path) -> dict[str, str]:
    """gsutil asks its servers by https only: it is told to have gcloud do the work, or to say it has none."""
    boto = config / "boto"
    boto.write_text(
        "[GSUtil]\nuse_gcloud_storage = True\nhidden_shim_mode = no_fallback\n"
        "software_update_check_period = 0\n"
    )
    result = {
        "BOTO_CONFIG": str(boto),
        "CLOUDSDK_CORE_PASS_CREDENTIALS_TO_GSUTIL": "1",
        "CLOUDSDK_CORE_ACCOUNT": "trainshed",  # else gsutil has gcloud send no token
    }
    root = Path(os.path.realpath(shutil.which("gcloud") or "gcloud")).parents[1]
    return result | ({"CLOUDSDK_ROOT_DIR": str(root)} if (root / "bin" / "gcloud").is_file() else {})


def _s3(home: Path) -> dict[str, str]:
    """What boto3 and the aws command need for the store of `trainshed up --s3`, where one runs."""
    try:
        content = json.loads((home / "s3" / "env.json").read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return {str(name): str(value) for name, value in content.items()}


def _token_file(target: Target, config: Path) -> Path:
    """The file the token was read from; else one that holds it (or, for --no-auth, any text)."""
    named = Path(target.token_from).absolute()
    if target.token and named.is_file():
        return named
    made = config / "access-token"
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(target.token or "none")
    return made


def line(shell: str, name: str, value: str) -> str:
    if shell == "fish":
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"set -gx {name} '{escaped}';"
    return f"export {name}={shlex.quote(value)}"
