"""The container backend: any image, on Docker or Podman."""
