"""What suggests the points of trials."""
