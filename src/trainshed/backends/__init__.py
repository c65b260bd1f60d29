"""Where replicas run. One folder per backend; each keeps the promises of core/ports.py and knows no other.

What they share is of the machine they all run on (machine/), or above them (fleet.py).
"""
