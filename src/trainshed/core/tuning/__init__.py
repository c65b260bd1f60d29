"""Studies and their trials: search spaces, measurements, stopping rules, and what a study tells."""
