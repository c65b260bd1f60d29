"""The queue: which jobs start on which nodes, in what order, and who gives way. Shares divide the nodes."""
