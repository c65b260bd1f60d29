"""`trainshed ai-platform jobs …`: the older command line for training, as gcloud ai-platform words it.

With the name swapped, printed commands run: `--package-path` becomes a package in a bucket, the job's id is
the person's own. The same is reached as `trainshed beta ai-platform` and `trainshed alpha ai-platform`.
"""

from trainshed.cli.ai.grammar import Grammar
from trainshed.cli.ai.verbs import Verbs

VERBS = {
    "submit": "Submit a job: submit training JOB.",
    "list": "List jobs.",
    "describe": "Print a job.",
    "cancel": "Cancel a job.",
    "update": "Change a job's labels.",
    "stream-logs": "Print what a job's replicas write, until the job ends.",
}
jobs = Verbs("jobs", __name__, VERBS, "Training jobs, as gcloud ai-platform jobs words them.")
local = Verbs(
    "local",
    __name__,
    {"train": "Run a training module here, as a job would."},
    "Run training here: local train.",
)
command = Grammar(
    "ai-platform",
    short_help="The older grammar: ai-platform jobs submit training, list, describe, cancel, update.",
    help="""The older grammar: ai-platform jobs submit training, list, describe, cancel, update.

    Flags, output and exit codes are gcloud's. `trainshed beta ai-platform` is the same.

    \b
    Example:
      trainshed ai-platform jobs submit training digits_1 --region us-central1 \\
        --scale-tier BASIC --runtime-version 2.11 --python-version 3.7 \\
        --package-path trainer --module-name trainer.task \\
        --staging-bucket gs://staging --job-dir gs://models/digits_1 \\
        -- --epochs 10
    """,
)
command.add_command(jobs)
command.add_command(local)
