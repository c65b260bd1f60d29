"""What people may do: the use cases, free of HTTP words and of any adapter's name."""
