"""The tool grep: `cass.search` as a process, so that cancelling the call ends the search at once."""

import asyncio
import codecs
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

from cass.access import Action
from cass.errors import ToolError
from cass.tools.arguments import Given
from cass.tools.paths import Place, failure, reach, shown
from cass.tools.tool import Arguments, Outcome, Tool

MATCHES = 100
"""Where `max_matches` does not say."""
MATCHES_LIMIT = 1_000
CONTEXT_LIMIT = 20
TIME_LIMIT_S = 60
"""A regular expression can be lost in one line for years."""

# Without `site` and with nothing but the directory of this package, the child starts in about 20 ms.
_START = "import sys; sys.path.insert(0, sys.argv[1]); from cass.search import main; main()"
_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def action(arguments: Arguments, place: Place) -> Action:
    return Action("grep", tuple(reach(path, place) for path in _parse(arguments)["paths"]))


def _parse(arguments: Arguments) -> dict[str, Any]:
    """What `cass.search` is asked, with the paths as given."""
    known = ("query", "paths", "regex", "case_sensitive", "context_lines", "max_matches")
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
        "most": given.integer("max_matches", MATCHES, 1, MATCHES_LIMIT),
    }


async def run(arguments: Arguments, place: Place) -> AsyncIterator[str | Outcome]:
    asked = _parse(arguments)
    paths = [reach(path, place).path for path in asked["paths"]]
    missing = [path for path in paths if not os.path.lexists(path)]
    errors = [str(failure("search", path, place, FileNotFoundError(2, ""))) for path in missing]
    if len(missing) == len(paths):
        raise ToolError("\n".join(errors))
    asked["paths"] = [(path, shown(path, place)) for path in paths if path not in missing]
    asked["closed"] = str(place.home)
    parts = [error + "\n" for error in errors]
    async for piece in _output(asked, place):
        parts.append(piece)
        yield piece
    yield Outcome("".join(parts).rstrip("\n"))


async def _output(asked: dict[str, Any], place: Place) -> AsyncIterator[str]:
    """Yield what the search writes. Raises ToolError; ends the process whenever it is left."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-S", "-X", "utf8", "-c", _START, _PACKAGES),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=place.environ,
        start_new_session=True,
    )
    assert child.stdin
    assert child.stdout
    assert child.stderr
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    try:
        child.stdin.write(json.dumps(asked).encode())
        child.stdin.close()
        async with asyncio.timeout(TIME_LIMIT_S):
            while piece := await child.stdout.read(65_536):
                yield decoder.decode(piece)
            problem = (await child.stderr.read()).decode("utf-8", "replace")
            status = await child.wait()
    except TimeoutError:
        yield f"[stopped after {TIME_LIMIT_S} s: narrow the query or the paths]"
        return
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
    if status == 2:
        raise ToolError(f"grep: bad query: {problem}")
    if status:
        raise ToolError(f"grep failed: {problem.strip()[-500:] or f'exit status {status}'}")


TOOL = Tool(
    "grep",
    "Search files and directories for a literal or Python regex.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "paths": {"type": "array", "items": {"type": "string"}},
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
