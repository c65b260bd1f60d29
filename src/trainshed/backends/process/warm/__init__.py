"""Warm starts: an idle interpreter with its heavy imports done (a kiln), from which replicas are forked.

    fitness.py   may this order be started warm? pure
    pool.py    starts kilns, keeps them alive, hands orders to them: the server's side
    interpreter.py      the idle interpreter itself, in the runtime's own Python
    program.py   what a forked kiln does to become the program, likewise

The last two run outside the server, in Pythons it does not choose: they use the standard library alone.
"""
