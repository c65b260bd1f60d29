"""The command line: one file per command, and beside them what several commands share.

It speaks only HTTP, through `trainshed.client`. Modules import late, because a person waits for every start.
"""
