"""What jobs bring or name to run in: code folders, packages, images and runtimes."""
