"""Kubernetes' files: a Pod or Job becomes a job, an ImageCache an image cache."""
