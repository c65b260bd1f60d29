"""The commands for Kubernetes' files: `trainshed apply`, `get`, and `delete -f` of such a file."""
