"""Runtimes: images' names to virtual environments, built once, kept, and removed when the disk is needed."""
