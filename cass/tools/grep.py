"""The tool grep: `cass.search` as a process, so that cancelling the call ends the search at once."""

import codecs
import fnmatch
import glob
import json
import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from cass.access import Action
from cass.errors import ToolError
from cass.tools.arguments import Given
from cass.tools.child import Child
from cass.tools.hidden import is_below
from cass.tools.paths import Place, failure, named, reach
from cass.tools.tool import Arguments, Outcome, Tool

MATCHES = 100
"""Where `max_matches` does not say."""
MATCHES_LIMIT = 1_000
CONTEXT_LIMIT = 20
SHOWS = ("lines", "files", "counts")
TIME_LIMIT_S = 60
"""A regular expression can be lost in one line for years."""

BAD_QUERY = 2
"""Exit status of `cass.search`."""

# Without `site` and with nothing but the directory of this package, the child starts in about 10 ms.
_START = "import sys; sys.path.insert(0, sys.argv[1]); from cass.search import main; main()"
_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def action(arguments: Arguments, place: Place) -> Action:
    return Action("grep", tuple(reach(path, place) for path in _parse(arguments)["paths"]))


def _parse(arguments: Arguments) -> dict[str, Any]:
    """What `cass.search` is asked, with the paths as given."""
    known = ("query", "paths", "include", "exclude", "regex", "case_sensitive", "context_lines", "max_matches", "show")
    given = Given("grep", {("paths" if name == "path" else name): value for name, value in arguments.items()}, known)
    query = given.text("query")
    if not query:
        raise given.error('"query" is empty')
    paths = given.items("paths", "a list of paths") if "paths" in given else ["."]
    return {
        "query": query,
        "paths": [given.checked_path(path, "paths") for path in paths],
        "regex": given.boolean("regex"),
        "case_sensitive": given.boolean("case_sensitive"),
        "context": given.integer("context_lines", 0, 0, CONTEXT_LIMIT),
        "include": _globs(given, "include"),
        "exclude": _globs(given, "exclude"),
        "show": given.choice("show", SHOWS),
        "most": given.integer("max_matches", MATCHES, 1, MATCHES_LIMIT),
    }


def _globs(given: Given, name: str) -> str:
    """What is given as one or several globs, one a line; commas may stand between them, but not within braces."""
    globs = given.items(name, "a glob, or a list of globs") if name in given else []
    texts = [glob for item in globs for glob in _parts(given.checked_path(item, name))]
    if odd := next((glob for glob in texts if "\n" in glob or "{" in glob), None):
        raise given.error(f'"{name}": {odd[:60]!r} is no glob of an ignore file; give several globs as a list')
    return "\n".join(texts)


def _parts(globs: str) -> list[str]:
    """``*.py,*.pyi`` and ``*.{py,pyi}`` as two globs."""
    if found := re.fullmatch(r"([^{}]*)\{([^{}]*)\}([^{}]*)", globs):
        return [f"{found[1]}{middle}{found[3]}" for middle in found[2].split(",")]
    return [glob.strip().removeprefix("./") for glob in globs.split(",") if glob.strip()]


async def run(arguments: Arguments, place: Place) -> AsyncGenerator[str | Outcome, None]:
    asked = _parse(arguments)
    paths = [reach(path, place).path for path in asked["paths"]]
    missing = [path for path in paths if not os.path.lexists(path)]
    errors = [str(failure("search", path, place, FileNotFoundError(2, ""))) for path in missing]
    if len(missing) == len(paths):
        raise ToolError("\n".join(errors))
    asked["paths"] = [(path, named(path, place)) for path in paths if path not in missing]
    asked["closed"] = place.homes
    asked["root"] = str(place.root).rstrip("/")
    # One that was decided about by its name is searched.
    kept = [top for top in place.kept() if not any(is_below(path, top) for path in paths)]
    asked["denied"] = _denied((*place.denied, *(glob.escape(top) + end for top in kept for end in ("", "/*"))))
    parts = [error + "\n" for error in errors]
    try:
        async with aclosing(_output(asked, place)) as pieces:
            async for piece in pieces:
                parts.append(piece)
                yield piece
    except _Failed as e:
        what = "bad query" if e.status == BAD_QUERY else f"failed with exit status {e.status}"
        raise ToolError(f"grep: {what}: {''.join(parts).strip()[-500:]}") from e
    yield Outcome("".join(parts).rstrip("\n"))


def _denied(patterns: tuple[str, ...]) -> str:
    """`patterns` as one regular expression, which each matches as it stands too; empty if there are none."""
    return "|".join(f"{fnmatch.translate(pattern)}|{re.escape(pattern)}\\Z" for pattern in patterns)


async def _output(asked: dict[str, Any], place: Place) -> AsyncGenerator[str, None]:
    """Yield what the search writes. Raises ToolError."""
    command = (sys.executable, "-I", "-S", "-X", "utf8", "-W", "ignore", "-c", _START, _PACKAGES, json.dumps(asked))
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    child = await Child.start(command, place)
    try:
        async with aclosing(child.output(TIME_LIMIT_S)) as pieces:
            async for piece in pieces:
                yield decoder.decode(piece)
    finally:
        await child.close()
    if child.timed_out:
        yield f"[stopped after {TIME_LIMIT_S} s: narrow the query or the paths]"
    elif child.status:
        raise _Failed(child.status)


class _Failed(Exception):
    """The search ended with `status`; what it wrote says why."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


TOOL = Tool(
    "grep",
    "Search files and directories (default .) line by line for a literal, or a Python regex. Skips what git ignores.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "paths": {"type": "array", "items": {"type": "string"}},
            "include": {"type": "string", "description": "glob: *.py, src/**"},
            "exclude": {"type": "string"},
            "show": {"enum": list(SHOWS)},
            "regex": {"type": "boolean"},
            "case_sensitive": {"type": "boolean"},
            "context_lines": {"type": "integer"},
            "max_matches": {"type": "integer", "description": "default 100"},
        },
        "required": ["query"],
    },
    action,
    run,
)
