"""`python -m trainshed.cli` is `trainshed`."""

from trainshed.cli.main import main

main()
