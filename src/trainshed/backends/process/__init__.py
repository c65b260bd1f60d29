"""The process backend: replicas are plain processes of this machine, under keepers that outlive the server.

It needs Linux and Python and nothing else. With a C compiler, cgroups or pidfds it does more, but it works
without them. It never passes a replica's output through the server.
"""

from trainshed.backends.process.backend import ProcessBackend

__all__ = ["ProcessBackend"]
