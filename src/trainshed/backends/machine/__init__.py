"""What all backends of this machine share: node, processes, folders of runs and views, known runs.

It knows no backend: how a run is started, kept and ended is each backend's own.
"""
