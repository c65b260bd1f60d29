"""`trainshed ai-platform local train`: a module run here with the TF_CONFIG a job would have; no server.

As with gcloud the exit code is the program's own.
"""

import shutil
import sys

import click

from trainshed.dialects.ai_platform.cli.behind import Handing, handed

COUNT = 2  # of each role, where none is said
PORT = 27182


@click.command("train", cls=Handing, short_help="Run a training module here, as a job would.")
@click.option("--module-name", metavar="MODULE", required=True, help="The module, such as trainer.task.")
@click.option("--package-path", metavar="FOLDER", help="Its package. [default: the module's, in this folder]")
@click.option("--job-dir", metavar="PLACE", help="For results; the program gets it as --job-dir.")
@click.option("--distributed", is_flag=True, help="Start a chief, workers and parameter servers.")
@click.option("--worker-count", type=click.IntRange(0), metavar="N", help=f"Workers. [default: {COUNT}]")
@click.option(
    "--parameter-server-count",
    type=click.IntRange(0),
    metavar="N",
    help=f"Parameter servers. [default: {COUNT}]",
)
@click.option("--evaluator-count", type=click.IntRange(0), metavar="N", help="Evaluators. [default: 0]")
@click.option(
    "--start-port", type=click.IntRange(1, 65000), default=PORT, metavar="PORT", help="The first one's port."
)
def command(
    module_name: str,
    package_path: str | None,
    job_dir: str | None,
    distributed: bool,
    start_port: int,
    **counts: int | None,
) -> int:
    """Run a training module here, as a job would.

    \b
    Example:
      trainshed ai-platform local train --module-name trainer.task --package-path trainer -- --epochs 1
    """
    from trainshed.dialects.ai_platform.cli import processes
    from trainshed.dialects.ai_platform.cli.sdist import package_at

    top = module_name.partition(".")[0]
    folder = package_at(package_path or top).parent
    args = [*(handed() or []), *(("--job-dir", job_dir) if job_dir else ())]
    if not distributed:
        if any(count is not None for count in counts.values()):
            click.echo("note: without --distributed there is one process only.", err=True)
        parts = processes.single(module_name, args)
    else:
        wanted = {"ps": "parameter_server", "worker": "worker", "evaluator": "evaluator"}
        given = {role: counts[f"{flag}_count"] for role, flag in wanted.items()}
        usual = {"ps": COUNT, "worker": COUNT, "evaluator": 0}
        numbers = {role: usual[role] if count is None else count for role, count in given.items()}
        parts = processes.cluster_of(module_name, args, numbers, start_port)
    python = shutil.which("python") or shutil.which("python3") or sys.executable
    return processes.run(parts, [python, "-m", module_name, *args], folder)
