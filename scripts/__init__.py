"""What people and the Makefile run; a package so that tests can import the parts of `scripts/cluster`."""
