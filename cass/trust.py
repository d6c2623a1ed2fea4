"""Trust: which directories the person lets configure cass, and exactly which files of theirs.

``trust.json`` holds for each directory the hash of every file that the person has seen. A file that is new, or is no
longer what they saw, is not used until they look again; what is read is compared, so nothing changes in between.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from cass import jsonl
from cass.errors import CassError, ConfigError
from cass.home import Home, create_private

NAMES = (".cass", ".mcp.json", ".agents/skills")
"""What configures cass in a project: files, and directories with all below them."""
FILES = 500
BYTES = 4 << 20
"""Of all files together: more is no configuration, and is not trusted as a whole."""
_DEPTH = 8


class Standing(NamedTuple):
    """A directory with configuration in it, and what the person has said about that."""

    root: Path
    files: dict[str, str]
    """Path below `root` to SHA-256, of each file that is there now."""
    trusted: dict[str, str]
    """The same, as the person saw them; empty where they never did."""

    @property
    def news(self) -> list[str]:
        """The files that are new or changed since."""
        return [name for name, digest in self.files.items() if self.trusted.get(name) != digest]

    def remark(self) -> str | None:
        """What the person should know about it, in one line."""
        if not self.news:
            return None
        why = "changed since you trusted it" if self.trusted else "nobody trusted it"
        return f"{self.root}: {', '.join(self.news[:3])}{', …' if self.news[3:] else ''}: not used, {why}: cass trust"


def find(root: Path, home: Home) -> Path | None:
    """The directory that configures cass for the workspace `root`: it, or one above it in its git repository."""
    for directory in (root, *root.parents):
        if any(_is_there(directory / name, home) for name in NAMES):
            return directory
        if (directory / ".git").exists() or not _is_in_repository(root):
            return None
    return None


def _is_there(path: Path, home: Home) -> bool:
    persons = (home.root, Path("~/.agents/skills").expanduser())
    return os.path.lexists(path) and os.path.realpath(path) not in map(os.path.realpath, persons)


def _is_in_repository(root: Path) -> bool:
    return any((directory / ".git").exists() for directory in (root, *root.parents))


def standing(root: Path, home: Home) -> Standing:
    """How things stand with the configuration in the directory `root`. Raises ConfigError, CassError."""
    return Standing(root, _hashes(root), _load(home).get(str(root), {}))


def read(root: Path, name: str, home: Home) -> bytes | None:
    """The bytes of a file below `root`, if they are those that the person trusted; else None. Raises ConfigError."""
    trusted = _load(home).get(str(root), {}).get(name)
    if trusted is None:
        return None
    found = content(root / name)
    return found if found is not None and sha256(found).hexdigest() == trusted else None


def every(root: Path, home: Home) -> list[Path]:
    """All directories that configure cass for the workspace `root`, outermost first: it, and those above it in its
    git repository."""
    found: list[Path] = []
    directory = find(root, home)
    while directory is not None:
        found.insert(0, directory)
        is_top = (directory / ".git").exists() or directory == directory.parent or not _is_in_repository(directory)
        directory = None if is_top else find(directory.parent, home)
    return found


def names(root: Path, home: Home) -> list[str]:
    """The files below `root` that the person trusted, there or not. Raises ConfigError."""
    return sorted(_load(home).get(str(root), {}))


def sound(root: Path, home: Home, prefix: str) -> list[str]:
    """Those of `names` that begin so and are there as the person trusted them. Raises ConfigError."""
    trusted = _load(home).get(str(root), {})
    mine = [(name, content(root / name)) for name in sorted(trusted) if name.startswith(prefix)]
    return [name for name, held in mine if held is not None and sha256(held).hexdigest() == trusted[name]]


def give(seen: Standing, home: Home) -> None:
    """Trust exactly the files that were seen. Raises ConfigError."""
    _save(_load(home) | {str(seen.root): seen.files}, home)


def take(root: Path, home: Home) -> bool:
    """Trust `root` no longer; whether it was. Raises ConfigError."""
    known = _load(home)
    was = known.pop(str(root), None) is not None
    if was:
        _save(known, home)
    return was


def directories(home: Home) -> list[Path]:
    """Those that the person trusted. Raises ConfigError."""
    return sorted(Path(name) for name in _load(home))


# ---- files of a project ---------------------------------------------------------------------------------------------


def _hashes(root: Path) -> dict[str, str]:
    """Path below `root` to hash. Raises CassError where there is too much."""
    found: dict[str, str] = {}
    size = 0
    for path in _files(root):
        held = content(path)
        if held is None:
            continue
        size += len(held)
        if len(found) >= FILES or size > BYTES:
            raise CassError(f"{root}: more than {FILES} files or {BYTES >> 20} MiB of configuration; it is not used")
        found[str(path.relative_to(root))] = sha256(held).hexdigest()
    return found


def _files(root: Path) -> Iterator[Path]:
    for name in NAMES:
        path = root / name
        if path.is_symlink() or (path.parent != root and path.parent.is_symlink()):
            continue  # it may lead anywhere, and elsewhere tomorrow
        if path.is_dir():
            yield from _below(path, _DEPTH)
        else:
            yield path


def _below(directory: Path, depth: int) -> Iterator[Path]:
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False) and depth:
                yield from _below(Path(entry.path), depth - 1)
            elif entry.is_file(follow_symlinks=False):
                yield Path(entry.path)


def content(path: Path) -> bytes | None:
    """What a regular file holds, of a long one the beginning; None for anything else."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)  # a directory cannot even be made a file of Python
        return None
    with open(fd, "rb") as file:
        return file.read(BYTES + 1)


# ---- trust.json -----------------------------------------------------------------------------------------------------


def _load(home: Home) -> dict[str, dict[str, str]]:
    """Directory to its trusted files. Raises ConfigError."""
    try:
        value = jsonl.load(home.trust.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as e:
        raise ConfigError(f"{home.trust}: {getattr(e, 'strerror', None) or 'expected JSON'}") from None
    found = value.get("directories") if isinstance(value, dict) else None
    if not isinstance(found, dict) or not all(map(_is_table, found.values())):
        raise ConfigError(f'{home.trust}: expected {{"directories": {{PATH: {{FILE: SHA-256}}}}}}')
    return found


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _save(known: dict[str, dict[str, str]], home: Home) -> None:
    home.make()
    temporary = home.trust.with_name(f".trust-{os.getpid()}.tmp")
    with open(create_private(temporary, os.O_TRUNC), "wb") as file:
        file.write(jsonl.dump({"directories": known}) + b"\n")
    temporary.replace(home.trust)
