"""The worktree: a checkout of its own for a chat, beside the repository, so that several can work on it at once.

    ../REPOSITORY-worktrees/NAME    on the branch cass/NAME

It is git's, from `git worktree add` on, and cass never removes it: `git worktree remove` does, unless work is in it.
"""

import os
import subprocess
import time
from pathlib import Path

from cass.errors import CassError, UsageError
from cass.pattern import pattern

BRANCH = "cass/"
"""What the names of their branches begin with."""
_NAME = pattern(r"(?!.*(?:\.\.|\.lock$))[A-Za-z0-9][A-Za-z0-9._-]{0,63}(?<!\.)")


def new_name() -> str:
    """A name of its own, of the form of a chat's id."""
    return time.strftime("%Y-%m-%d-%H%M%S-") + os.urandom(2).hex()


def make(cwd: Path, name: str) -> Path:
    """The directory of the worktree `name` that `cwd` is of its repository; made where it is not there yet.

    The branch begins at the commit that is checked out in `cwd`. Raises UsageError outside of a repository, CassError
    in git's own words where git refuses.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name for a worktree: letters, digits, '.', '_' and '-', 64 at most")
    top = _git(cwd, "rev-parse", "--show-toplevel", hint=f"{cwd} is in no git repository, which a worktree needs")
    place = _place(cwd, name)
    if str(place) not in _listed(cwd):
        is_branch = _run(cwd, "show-ref", "--verify", "--quiet", f"refs/heads/{BRANCH}{name}").returncode == 0
        what = [str(place), BRANCH + name] if is_branch else ["-b", BRANCH + name, str(place), "HEAD"]
        _git(cwd, "worktree", "add", *what)
    below = place / os.path.relpath(cwd.resolve(), Path(top).resolve())
    return below if below.is_dir() else place


def _place(cwd: Path, name: str) -> Path:
    """Where a worktree goes: beside the repository's own directory, also when it is asked for in another worktree."""
    main = Path(_listed(cwd)[0])
    return main.parent.resolve() / f"{main.name}-worktrees" / name


def _listed(cwd: Path) -> list[str]:
    """The repository's worktrees, its own directory first."""
    lines = _git(cwd, "worktree", "list", "--porcelain").split("\n")
    return [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")]


def _git(cwd: Path, *arguments: str, hint: str = "") -> str:
    done = _run(cwd, *arguments)
    if done.returncode:
        words = os.fsdecode(done.stderr).strip()
        raise UsageError(hint) if hint else CassError(f"git {' '.join(arguments[:2])}: {words}")
    return os.fsdecode(done.stdout).rstrip("\n")


def _run(cwd: Path, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    # In a git hook these say which repository is meant, whatever directory a command runs in.
    environ = {name: value for name, value in os.environ.items() if name not in ("GIT_DIR", "GIT_WORK_TREE")}
    environ.pop("GIT_INDEX_FILE", None)
    try:
        return subprocess.run(["git", "-C", str(cwd), *arguments], capture_output=True, env=environ, check=False)
    except FileNotFoundError:
        raise CassError("git is not installed, which a worktree needs") from None
