"""``python -m sparsedepth`` is the command line."""

from sparsedepth.cli import main

main()
