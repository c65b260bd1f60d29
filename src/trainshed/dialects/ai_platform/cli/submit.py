"""`trainshed ai-platform jobs submit`: there is training, and nothing else to submit."""

from trainshed.cli.ai.verbs import Verbs

VERBS = {"training": "Submit a training job."}
command = Verbs("submit", "trainshed.dialects.ai_platform.cli", VERBS, "Submit a job: submit training JOB.")
