"""Backups of a home: a program of its own, which `trainshed backup` and `trainshed restore` become.

It works on the files of a home, beside a server that runs or without one. Like the assembly it names the
adapters whose files it copies: the jobs' database and the buckets. It never changes what it copies.

A backup is a plain tar file, or a folder, with `home/` (the files of the home) and `manifest.jsonl`.
"""
