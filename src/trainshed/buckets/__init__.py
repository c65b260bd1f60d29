"""Buckets on this machine's disk: bytes as files a person can find, everything else in one index.

Assumes a file system on which fsync and rename mean what they say, and one server per folder. Nothing of a
name that comes from outside ever reaches the disk unescaped.
"""
