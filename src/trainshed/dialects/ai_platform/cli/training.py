"""`trainshed ai-platform jobs submit training`: code on this machine becomes a package, and a job.

Uploads come first, then the one question that makes the job: what fails before it leaves no job behind, and
what the server refuses leaves no package behind.
"""

import os
from contextlib import closing
from typing import Any

import click

from trainshed.cli.ai.flags import encrypted, formatted, spoken, switch
from trainshed.client import Client, ClientError, Json
from trainshed.dialects.ai_platform.cli.behind import Handing, handed
from trainshed.dialects.ai_platform.cli.roles import roles
from trainshed.dialects.ai_platform.client import TrainingJobsClient

FOLLOW = """Your job is still active. You may view the status of your job with the command

  $ {path} describe {job}

or continue streaming the logs with the command

  $ {path} stream-logs {job}"""
SHOWN = ("jobId", "state", "startTime", "endTime")
EXAMPLE = "trainingInput:\n  scaleTier: CUSTOM\n  masterType: n1-standard-8"
DETACHED = 130


@click.command("training", cls=Handing, short_help="Submit a training job.")
@click.argument("job", metavar="JOB")
@click.option("--package-path", metavar="FOLDER", help="A package here, to be built and uploaded.")
@click.option("--packages", metavar="FILE,...", multiple=True, help="Built packages, here or in buckets.")
@click.option("--module-name", metavar="MODULE", help="The module that is run, such as trainer.task.")
@click.option("--staging-bucket", metavar="gs://BUCKET", help="Where packages go. [default: below --job-dir]")
@click.option("--job-dir", metavar="gs://BUCKET/PATH", help="For results; the program gets it as --job-dir.")
@click.option("--config", metavar="FILE", help="A YAML file with trainingInput; flags win. - reads stdin.")
@click.option(
    "--scale-tier",
    metavar="TIER",
    help="basic, basic-gpu, basic-tpu, standard-1, premium-1, or custom with the machines named below.",
)
@click.option("--runtime-version", metavar="VERSION", help="The environment, by AI Platform's numbers.")
@click.option("--python-version", metavar="VERSION", help="Its Python.")
@roles
@click.option("--tpu-tf-version", metavar="VERSION", help="TensorFlow's on TPU workers.")
@click.option(
    "--use-chief-in-tf-config",
    metavar="BOOL",
    is_flag=False,
    flag_value="true",
    type=bool,
    help="Whether TF_CONFIG says chief instead of master.",
)
@click.option("--labels", metavar="KEY=VALUE,...", multiple=True, help="Labels.")
@click.option("--service-account", metavar="EMAIL", help="Who the job runs as.")
@click.option("--network", metavar="NETWORK", help="The network the job is peered with.")
@switch("enable-web-access", "Offer a shell in running replicas.")
@encrypted
@click.option("--stream-logs", is_flag=True, help="Print its lines to its end; exit 1 unless it succeeded.")
@click.option("--async", "detach", is_flag=True, help="Return at once, as is done anyway.")
@formatted
@spoken
def command(client: Client, job: str, form: str | None, stream_logs: bool, detach: bool, **given: Any) -> int:
    """Submit a training job.

    \b
    Example:
      trainshed ai-platform jobs submit training digits_1 --region us-central1 \\
        --package-path trainer --module-name trainer.task --runtime-version 2.11 \\
        --staging-bucket gs://staging --stream-logs -- --epochs 10
    """
    from trainshed.cli.ai.output import Output

    if stream_logs and detach:
        raise click.UsageError("argument --async: At most one of --async | --stream-logs can be specified.")
    output = Output.parse(form or "yaml")
    made = _submitted(client, job, given)
    job = str(made.get("jobId", job))
    click.echo(f"Job [{job}] submitted successfully.", err=True)
    code = 0
    if stream_logs:
        code = _streamed(client, made)
        made = TrainingJobsClient(client).get(job)
    else:
        click.echo(_follow(job), err=True)
    output.show(made if form else {name: made[name] for name in SHOWN if name in made})
    return code or int(stream_logs and made.get("state") != "SUCCEEDED")


def _submitted(client: Client, job: str, given: Json) -> Json:
    from trainshed.cli.ai.config import content, placed
    from trainshed.cli.ai.given import Key
    from trainshed.cli.ai.listing import words
    from trainshed.cli.job_file import JobFile, load
    from trainshed.dialects.ai_platform.cli import roles as flags
    from trainshed.dialects.ai_platform.cli import staging
    from trainshed.dialects.ai_platform.cli.training_job_words import TrainingJobWords

    kms = Key.taken(given)
    config, path, bucket = (given.pop(name) for name in ("config", "package_path", "staging_bucket"))
    packages = [word for text in given.pop("packages") for word in words(text, "--packages")]
    roles = flags.fields(given)
    own = {name: value for name, value in given.items() if name in TrainingJobWords.__dataclass_fields__}
    placed_by_flag = click.get_current_context().params.get("region")  # it may be a placeholder: ours then
    job_words = TrainingJobWords(
        job=job,
        region=client.location if placed_by_flag else None,
        args=handed(),
        kms_key=kms.name(client.project, client.location),
        roles=roles,
        **own,
    )
    job_words.check()
    file = JobFile(*load(*content(config), EXAMPLE), bare=False) if config else None
    region = os.environ.get("CLOUDSDK_COMPUTE_REGION") or client.location
    to = staging.place(bucket, job_words.job_dir, job)
    job_words.body(file, [*packages, *filter(None, [path])], region)  # report errors before the upload
    jobs = TrainingJobsClient(client)
    with closing(client.storage()) as storage, staging.taken_back(storage, jobs.packages) as fresh:
        body = job_words.body(file, staging.staged(packages, path, to, storage, fresh), region)
        with placed(file):
            return jobs.create(body)


def _streamed(client: Client, made: Json) -> int:
    """Prints to the job's end. Ctrl-C and a server that went away leave the job alone, and are told."""
    from trainshed.cli.ai.records import print_row
    from trainshed.dialects.ai_platform.cli.stream_logs import rows

    job = str(made["jobId"])
    try:
        for row in rows(client, made):
            print_row(row, beside=True)
    except KeyboardInterrupt:
        click.echo(f"Received keyboard interrupt.\n\n{_follow(job)}", err=True)
        return DETACHED
    except ClientError as error:
        click.echo(f"Polling logs failed:\n{error}\n\n{_follow(job)}", err=True)
    return 0


def _follow(job: str) -> str:
    path = click.get_current_context().command_path.removesuffix(" submit training")
    return FOLLOW.format(path=path, job=job)
