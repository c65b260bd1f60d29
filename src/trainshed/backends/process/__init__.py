"""The process backend: replicas are plain processes of this machine, held by keepers that outlive the server.

It may assume Linux and Python and nothing else; what is better with a C compiler, cgroups or pidfds works
without them. It never passes a replica's output through the server.
"""

from trainshed.backends.process.backend import ProcessBackend

__all__ = ["ProcessBackend"]
