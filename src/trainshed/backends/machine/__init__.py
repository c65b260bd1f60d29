"""What every backend of this machine stands on: its size, its processes and their numbers, the folders of
runs and of what they find there, what is remembered of a run. It knows no backend: how a run is begun, held
and ended is that backend's own.
"""
