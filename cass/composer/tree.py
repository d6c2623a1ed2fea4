"""The tree below a directory, as ignore files leave it; ``python -m cass.composer.tree TOP`` prints it."""

import os
import sys

from cass.walk import Walk

MOST = 200_000
"""Of more paths nobody finds one by typing its beginning."""


def paths(top: str) -> list[str]:
    """Directories, with a slash at their end, and files, relative to `top`. Raises OSError where it cannot be read."""
    found: list[str] = []
    for _, folder, names in Walk(os.path.realpath(top)):
        if folder:
            found.append(folder)
        found += [folder + name for name in names]
        if len(found) > MOST:
            break
    return found


if __name__ == "__main__":
    sys.stdout.buffer.write(b"".join(os.fsencode(path) + b"\0" for path in paths(sys.argv[1])))
