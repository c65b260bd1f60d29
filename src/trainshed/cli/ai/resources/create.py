"""`trainshed ai persistent-resources create`: reserves machines for the jobs that name them."""

from collections.abc import Sequence

import click

from trainshed.cli.ai.flags import formatted, spoken
from trainshed.cli.ai.grammar import Misspelt
from trainshed.client import Client, Json

FLAG = "--resource-pool-spec"
KEYS = (
    *("machine-type", "replica-count", "min-replica-count", "max-replica-count"),
    *("accelerator-type", "accelerator-count", "disk-type", "disk-size"),
)


@click.command("create", short_help="Reserve machines for the jobs that name them.")
@click.option("--persistent-resource-id", "id", metavar="ID", required=True, help="By which jobs name it.")
@click.option(
    FLAG,
    "pool_specs",
    metavar="KEY=VALUE,...",
    multiple=True,
    required=True,
    help="Machines: machine-type, replica-count or min-replica-count and max-replica-count, "
    "accelerator-type, accelerator-count, disk-type, disk-size. Repeatable.",
)
@click.option("--display-name", metavar="NAME", help="A name for people.")
@click.option("--labels", metavar="KEY=VALUE,...", multiple=True, help="Labels.")
@click.option("--network", metavar="NETWORK", help="The network its jobs are peered with.")
@formatted
@spoken
def command(
    client: Client,
    id: str,
    pool_specs: Sequence[str],
    display_name: str | None,
    labels: Sequence[str],
    network: str | None,
    form: str | None,
) -> None:
    """Reserve machines for the jobs that name them.

    \b
    Example:
      trainshed ai persistent-resources create --persistent-resource-id=team --region=us-central1 \\
        --resource-pool-spec=machine-type=n1-standard-8,replica-count=2
    """
    from trainshed.cli.ai.listing import pairs
    from trainshed.cli.ai.output import Output

    output = Output.parse(form or "none")
    body: Json = {"resourcePools": [_pool(pairs(text, FLAG)) for text in pool_specs]}
    named = {key: value for text in labels for key, value in pairs(text, "--labels").items()}
    given = {"displayName": display_name, "labels": named, "network": network}
    operation = client.resources().create(id, body | {key: value for key, value in given.items() if value})
    path = click.get_current_context().command_path.rpartition(" ")[0]
    click.echo(f"Using endpoint [{client.url}/]", err=True)
    click.echo(
        f"Operation to create PersistentResource [{operation['name']}] is submitted successfully.\n\n"
        f"You may view the status of your PersistentResource create operation with the command\n\n"
        f"  $ {path} describe {id}",
        err=True,
    )
    output.show(operation)


def _pool(keys: dict[str, str]) -> Json:
    if odd := [key for key in keys if key not in KEYS]:
        raise Misspelt(FLAG, f"valid keys are [{', '.join(sorted(KEYS))}]; received: {odd[0]}")
    if not keys.get("machine-type"):
        raise Misspelt(FLAG, "Key [machine-type] required in dict arg but not provided")
    machine: Json = {"machineType": keys["machine-type"]}
    if kind := keys.get("accelerator-type"):
        count = keys.get("accelerator-count", "1")
        machine |= {"acceleratorType": kind.upper().replace("-", "_"), "acceleratorCount": count}
    pool: Json = {"machineSpec": machine}
    if "replica-count" in keys or "min-replica-count" not in keys:
        pool["replicaCount"] = keys.get("replica-count", "1")
    scaling = {"minReplicaCount": "min-replica-count", "maxReplicaCount": "max-replica-count"}
    disk = {"bootDiskType": "disk-type", "bootDiskSizeGb": "disk-size"}
    for name, fields in (("autoscalingSpec", scaling), ("diskSpec", disk)):
        if part := {field: keys[key] for field, key in fields.items() if key in keys}:
            pool[name] = part
    return pool
