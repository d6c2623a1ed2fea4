"""Cassady: a terminal coding agent made of small programs around one append-only chat file."""

__version__ = "0.1.0"
