"""Itself: the command line by which one program of cass starts another, with the same Python and the same code."""

import sys


def argv(program: str, *arguments: str) -> list[str]:
    """`program` is one of those in `cli.PROGRAMS`."""
    return [sys.executable, "-I", "-m", "cass.cli", program, *arguments]
