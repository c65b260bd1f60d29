"""`trainshed kube`: what an administrator of a cluster does about jobs there, without a server."""

import os
import sys

import click

from trainshed.cli.options import as_json


@click.group("kube", short_help="See to what jobs left in a Kubernetes cluster, without a server.")
def command() -> None:
    """See to what jobs left in a Kubernetes cluster, without a server.

    \b
    Example:
      trainshed kube release --context lab
    """


@command.command("release")
@click.option("--kubeconfig", metavar="FILE", default="", help="[default: $KUBECONFIG or ~/.kube/config]")
@click.option("--context", metavar="NAME", default="", help="A context of the kubeconfig. [default: its own]")
@click.option("--namespace", metavar="NAME", default="", help="Only there. [default: everywhere]")
@click.option(
    "--delete", is_flag=True, help="Delete all pods, services, secrets and config maps of jobs too."
)
@as_json
def release(kubeconfig: str, context: str, namespace: str, delete: bool, as_json: bool) -> None:
    """Free the pods that a server keeps until their end is stored.

    Use it where a server is gone for good: without it, neither those pods nor their namespace can be deleted.
    Do not use it while a server runs jobs there: it may then not learn how they ended.

    \b
    Example:
      trainshed kube release --delete --namespace ml
    """
    # -P: a file named like a module in the current folder must not become part of it.
    program = [sys.executable, "-P", "-m", "trainshed.backends.cluster.release"]
    program += [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
    program += [f"--context={context}"] if context else []
    program += [f"--namespace={namespace}"] if namespace else []
    program += ["--delete"] * delete + ["--json"] * as_json
    sys.stdout.flush()
    os.execv(sys.executable, program)
