"""Buckets that other machines keep: S3, Google's and Azure's, through obstore, behind the same port.

Imported only where one is configured. What such a store cannot keep of the promises is declared
(`Abilities`).
obstore is called from threads and never awaited: its awaitables hold Python objects in threads of their own,
which now and then ends the process with SIGABRT when it exits.
"""
