"""The background loops: the work queue, the loop over jobs, the scheduler and the periodic chores."""
