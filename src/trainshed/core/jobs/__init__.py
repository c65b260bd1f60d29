"""Jobs and their replicas: what was asked for, what happens now, and how it ends."""
