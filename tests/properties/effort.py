"""How hard the properties try. A failure prints the plan it found and a line that reproduces it."""

from hypothesis import HealthCheck, settings

PROPERTY = settings(
    max_examples=200,
    deadline=None,  # the machine is shared: time says nothing here
    print_blob=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
