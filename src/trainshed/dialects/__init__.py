"""Older and foreign grammars for jobs. Each has its parsing, use cases, HTTP and command line in one folder.

`assembly/` adds their methods to the table and their readers to the store. The menu of the command line names
their commands. Nothing below imports a dialect, and no dialect imports another.
"""
