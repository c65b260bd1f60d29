"""Suggests the points of trials: numeric code that knows nothing of jobs, HTTP or stores.

`process.py` is the adapter of `core.tuning.suggestion_port.Suggester`. It runs everything else here in a
process of its own. Only that process imports numpy and scipy.
"""
