"""What moves by itself: the work queue, the loop over jobs, the scheduler."""
