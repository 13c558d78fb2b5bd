"""Options that every training script has."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from sparsedepth.fitted import shipped_path


def training_parser(description: str | None) -> ArgumentParser:
    """Return a parser with the options ``--output`` and ``--quick``."""
    parser = ArgumentParser(description=description)
    parser.add_argument("--output", type=Path, help="file to write; the shipped one by default")
    parser.add_argument("--quick", action="store_true", help="use a few small maps, to test the script in seconds")
    return parser


def parse(parser: ArgumentParser, name: str) -> Namespace:
    """Parse the command line; the default output is the shipped file of that name, which no quick run may replace."""
    given = parser.parse_args()
    if given.quick and given.output is None:
        parser.error("a quick run fits too few maps to be shipped; name another file with --output")
    given.output = given.output or shipped_path(name)
    return given
