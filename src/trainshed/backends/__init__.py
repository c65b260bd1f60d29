"""Where replicas run. One folder per backend; each keeps the promises of core/ports.py and knows no other."""
