"""Reads the template of pods that the setting `pod_template` names. The assembly calls it at the start."""

from pathlib import Path

from trainshed.backends.cluster.pod_template import NOTHING_MORE, PodTemplate, TemplateFault, parse_template
from trainshed.settings.table import SettingsError

_EXAMPLE = """spec:
  tolerations:
  - {key: team, operator: Equal, value: training, effect: NoSchedule}
"""


def find_pod_template(path: Path | None) -> PodTemplate:
    """Raises SettingsError where the file cannot be used."""
    if path is None:
        return NOTHING_MORE
    from trainshed.yaml_document import YamlFault, read_document  # few servers need it

    try:
        fields, _ = read_document(str(path), path.read_bytes(), _EXAMPLE)
        return parse_template(fields)
    except OSError as error:
        raise SettingsError(f"--pod-template: cannot read {path}: {error.strerror}") from error
    except YamlFault as fault:
        lines = "\n".join((fault.message, *fault.details))
        raise SettingsError(f"--pod-template: {lines}") from fault
    except TemplateFault as fault:
        raise SettingsError(f"--pod-template: {path}: {fault}") from fault
