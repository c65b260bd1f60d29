"""Keeps the folders of jobs on disk, by content: the promises of `core.supplies.code_port.CodeStore`.

blobs/ab/…      what files hold, each once, named by its hash; never changed once there
trees/ID        a folder: its manifest, whose hash is its name
unused/ID       since when no job has referred to that folder
new/            what is being written; nothing is lost with it
"""
