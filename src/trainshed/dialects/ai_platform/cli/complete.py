"""What the shell offers behind `ai-platform jobs VERB` when Tab is pressed: jobs, by their jobIds."""

from typing import Any

import click

from trainshed.cli.complete import OFFERED, asked


def training_jobs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    from trainshed.dialects.ai_platform.client import TrainingJobsClient

    jobs = [
        (str(job.get("jobId", "")), str(job.get("state", "")))
        for job in asked(ctx, lambda client: TrainingJobsClient(client).all(OFFERED))
    ]
    return [CompletionItem(name, help=state) for name, state in jobs if name.startswith(incomplete)]
