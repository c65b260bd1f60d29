"""What `trainshed tune` and `trainshed study` are made of: specs, bodies, tables, pages.

The commands themselves are `cli/tune.py` and `cli/study.py`. Nothing here is imported by another command.
"""
