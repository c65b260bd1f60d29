"""Warm starts: replicas are forked from an idle interpreter that has done its heavy imports.

    fitness.py      may this start request be served by a fork? pure
    pool.py         starts warm interpreters, restarts them, hands start requests to them: the server's side
    process.py      the process of one warm interpreter, as the server sees it
    interpreter.py  the warm interpreter itself, run by the runtime's own Python
    program.py      turns a fork of it into the program, likewise

The last two run outside the server, in Pythons it does not choose: they use the standard library alone.
"""
