"""Why a job is in its state, what would start it now, and when it may start."""
