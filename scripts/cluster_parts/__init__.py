"""The parts of `scripts/cluster`, which starts a throw-away Kubernetes cluster on this machine for tests."""
