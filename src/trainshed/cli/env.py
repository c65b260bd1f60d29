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
from trainshed.cli.options import as_json, targeted
from trainshed.client import Client, ClientError, Target

SERVICES = ("AIPLATFORM", "ML", "LOGGING", "STORAGE", "COMPUTE", "CLOUDRESOURCEMANAGER", "ARTIFACTREGISTRY")


@click.command("env", short_help="Print the variables that point gcloud and scripts at the server.")
@click.option(
    "--shell", type=click.Choice(["sh", "fish"]), default="sh", show_default=True, help="The dialect."
)
@as_json
@targeted
def command(target: Target, shell: str, as_json: bool) -> None:
    """Print the variables that point gcloud and scripts at the server.

    \b
    Example:
      eval "$(trainshed env)"
      gcloud ai custom-jobs list
    """
    try:
        found = variables(target)
    except OSError as error:
        raise CommandFailed(f"cannot write under {target.home}: {error.strerror}") from error
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        click.echo("\n".join(line(shell, name, value) for name, value in found.items()))
    try:
        with Client.of(target, pauses=()) as client:
            client.health()
    except ClientError as error:
        click.echo(f"note: {error}; start a server with: trainshed up", err=True)


def variables(target: Target) -> dict[str, str]:
    config = target.home.absolute() / "gcloud"
    config.mkdir(parents=True, exist_ok=True, mode=0o700)
    config.chmod(0o700)
    token_file = str(_token_file(target, config))
    return {
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
        **_gsutil(config),
        **_s3(target.home),
    }


def _gsutil(config: Path) -> dict[str, str]:
    """gsutil asks its servers by https only: it is told to have gcloud do the work, or to say it has none."""
    boto = config / "boto"
    boto.write_text(
        "[GSUtil]\nuse_gcloud_storage = True\nhidden_shim_mode = no_fallback\n"
        "software_update_check_period = 0\n"
    )
    found = {
        "BOTO_CONFIG": str(boto),
        "CLOUDSDK_CORE_PASS_CREDENTIALS_TO_GSUTIL": "1",
        "CLOUDSDK_CORE_ACCOUNT": "trainshed",  # else gsutil has gcloud send no token
    }
    root = Path(os.path.realpath(shutil.which("gcloud") or "gcloud")).parents[1]
    return found | ({"CLOUDSDK_ROOT_DIR": str(root)} if (root / "bin" / "gcloud").is_file() else {})


def _s3(home: Path) -> dict[str, str]:
    """What boto3 and the aws command need for the store of `trainshed up --s3`, where one runs."""
    try:
        found = json.loads((home / "s3" / "env.json").read_text())
    except (OSError, ValueError):
        return {}
    return {str(name): str(value) for name, value in found.items()}


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
