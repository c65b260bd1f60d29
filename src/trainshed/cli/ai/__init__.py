"""`trainshed ai custom-jobs …`, `hp-tuning-jobs …`, `persistent-resources …`: gcloud's grammar, renamed.

So a printed command just works. The commands here take what the real gcloud takes and print what it prints;
and a few forms that documents show and the real one refuses. The same is reached as `trainshed beta ai` and
`trainshed alpha ai`.
"""

import importlib

import click

from trainshed.cli.ai.grammar import Grammar
from trainshed.cli.ai.verbs import Verbs
from trainshed.cli.main import DIALECTS

VERBS = {
    "create": "Create a job from --worker-pool-spec or --config.",
    "list": "List jobs.",
    "describe": "Print a job.",
    "cancel": "Cancel a job.",
    "stream-logs": "Print what a job's replicas write, until the job ends.",
}
custom_jobs = Verbs("custom-jobs", __name__, VERBS, "Custom jobs, as gcloud ai custom-jobs words them.")
TUNING_VERBS = {
    "create": "Create a tuning job from --config.",
    "list": "List tuning jobs.",
    "describe": "Print a tuning job, with its trials.",
    "cancel": "Cancel a tuning job.",
    "stream-logs": "Print what the trials of a tuning job write, until it ends.",
}
tuning_jobs = Verbs(
    "hp-tuning-jobs",
    f"{__name__}.tuning",
    TUNING_VERBS,
    "Hyperparameter tuning jobs, as gcloud ai hp-tuning-jobs words them.",
)
RESOURCE_VERBS = {
    "create": "Reserve machines for the jobs that name them.",
    "list": "List persistent resources.",
    "describe": "Print a persistent resource.",
    "delete": "Delete a persistent resource that has no jobs.",
}
resources = Verbs(
    "persistent-resources",
    f"{__name__}.resources",
    RESOURCE_VERBS,
    "Persistent resources, as gcloud ai persistent-resources words them.",
)
command = Grammar(
    "ai",
    short_help="Speak gcloud's grammar: ai custom-jobs, hp-tuning-jobs, persistent-resources.",
    help="""Speak gcloud's grammar: ai custom-jobs, hp-tuning-jobs, persistent-resources.

    Jobs have create, list, describe, cancel and stream-logs.

    Flags, output and exit codes are gcloud's. `trainshed beta ai` and `trainshed alpha ai` are the same.

    \b
    Example:
      trainshed ai custom-jobs create --region=us-central1 --display-name=digits \\
        --worker-pool-spec=machine-type=n1-standard-4,container-image-uri=trainshed/python:3 \\
        --command=python,-c --args="print('hello')"
    """,
)
command.add_command(custom_jobs)
command.add_command(tuning_jobs)
command.add_command(resources)


def track(name: str) -> click.Command:
    """One of gcloud's release tracks: a word in front of the same commands."""
    result = Grammar(name, help=f"The same as without {name}, for commands that say it.")
    result.add_command(command)
    result.add_command(importlib.import_module(DIALECTS["ai-platform"]).command)
    return result
