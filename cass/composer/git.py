"""The git branch of a directory, from `.git/HEAD` alone: no git is run, and a directory without one has none."""

import os

SHA_SHOWN = 7
FOLDERS_UP = 64
"""A path is not deeper; a bound all the same, because this is asked while the screen is drawn."""


def branch(cwd: str) -> str:
    """Its name; the beginning of the commit where none is checked out; "" outside of a repository.

    `.git` is a file in worktrees and submodules: https://git-scm.com/docs/gitrepository-layout
    """
    folder = cwd
    for _ in range(FOLDERS_UP):
        if head := _head(os.path.join(folder, ".git")):
            reference = head.removeprefix("ref: ")
            return reference.removeprefix("refs/heads/") if reference != head else head[:SHA_SHOWN]
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    return ""


def _head(git: str) -> str:
    return _line(os.path.join(git, "HEAD")) or _line(os.path.join(_linked(git), "HEAD"))


def _linked(git: str) -> str:
    """Where a `.git` that is a file points to."""
    target = _line(git).removeprefix("gitdir: ")
    return os.path.join(os.path.dirname(git), target) if target else git


def _line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline(4096).strip()
    except OSError:
        return ""
