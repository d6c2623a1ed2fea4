"""The person's own tools: executables in ``~/.cass/tools`` that say with ``--schema`` what they are.

    {"name": "ticket", "description": "Read a ticket.", "does": "reads",
     "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}}

A call starts the executable in the workspace, with the arguments as JSON on its standard input; what it writes is the
result, and an exit status other than 0 a failed one. It is held in the sandbox wherever shell is.
"""

import contextlib
import os
import select
import shlex
import signal
import subprocess
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cass import jsonl
from cass.access import Effect
from cass.errors import ToolError, UsageError
from cass.tools.host import HostTool, as_tool, resolved
from cass.tools.paths import Place
from cass.tools.shell import execute
from cass.tools.tool import Arguments, Outcome, Tool

SCHEMA_S = 5.0
"""For all of them together to say what they are."""
SCHEMA_BYTES = 65_536
LIMIT_S = 120.0
LONGEST_S = 600.0
GIVEN = 30_000
"""Characters of the arguments, which are a part of the command that is started: Linux takes 128 KiB."""
DESCRIPTION = 4_000
"""Characters: more is no description, and would be sent with every request."""
_KEYS = frozenset({"name", "description", "parameters", "does", "paths", "timeout_s"})


def find(
    directory: Path, environ: Mapping[str, str], patience_s: float = SCHEMA_S
) -> tuple[list[tuple[Effect, Tool]], list[str]]:
    """The tools in `directory`, by the names of their files, and what is wrong with those that cannot be used."""
    deadline = time.monotonic() + patience_s
    begun = [(path, _begin(path, environ)) for path in _executables(directory)]
    found: list[tuple[Effect, Tool]] = []
    wrong: list[str] = []
    for path, process in begun:
        try:
            found.append(_made(path, _answer(process, deadline)))
        except (UsageError, ToolError) as e:
            wrong.append(f"{path}: {e}; it is not used")
    return found, wrong


def _executables(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        if path.is_file() and os.access(path, os.X_OK) and not path.name.startswith("."):
            yield path


def _begin(path: Path, environ: Mapping[str, str]) -> "subprocess.Popen[bytes] | OSError":
    try:
        return subprocess.Popen(
            [path, "--schema"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=path.parent,
            env=dict(environ),
            start_new_session=True,
        )
    except OSError as e:
        return e


def _answer(process: "subprocess.Popen[bytes] | OSError", deadline: float) -> bytes:
    """What it says, all of it. Raises ToolError; it has ended in any case."""
    if isinstance(process, OSError):
        raise ToolError(f"it does not start: {process.strerror}")
    assert process.stdout is not None
    said = b""
    try:
        while True:
            left = max(deadline - time.monotonic(), 0)
            if not select.select([process.stdout], [], [], left)[0]:
                raise ToolError("--schema: no answer in time")
            piece = os.read(process.stdout.fileno(), SCHEMA_BYTES)
            said += piece
            if not piece:
                return said
            if len(said) > SCHEMA_BYTES:
                raise ToolError(f"--schema: more than {SCHEMA_BYTES:,} bytes")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()


def _made(path: Path, said: bytes) -> tuple[Effect, Tool]:
    """Raises ToolError, UsageError."""
    try:
        spec = jsonl.load(said)
    except ValueError:
        spec = None
    if not isinstance(spec, dict):
        raise ToolError("--schema: expected a JSON object")
    if unknown := [str(key) for key in spec if key not in _KEYS]:
        raise ToolError(f"--schema: takes {', '.join(sorted(_KEYS))}; not {unknown[0]!r}")
    text, parameters, paths = (spec.get(key) for key in ("description", "parameters", "paths"))
    limit = spec.get("timeout_s", LIMIT_S)
    if not isinstance(text, str) or not text.strip() or len(text) > DESCRIPTION:
        raise ToolError(f'--schema: "description": expected a text of at most {DESCRIPTION:,} characters')
    if not isinstance(parameters, dict):
        raise ToolError('--schema: "parameters": expected a JSON schema')
    if paths is not None and not (isinstance(paths, list) and all(isinstance(name, str) for name in paths)):
        raise ToolError('--schema: "paths": expected names of parameters')
    if type(limit) not in (int, float) or not 0 < limit <= LONGEST_S:
        raise ToolError(f'--schema: "timeout_s": expected seconds, {LONGEST_S:g} at most')
    host = HostTool(
        name=str(spec.get("name", "")),
        description=text.strip(),
        parameters=parameters,
        run=_never,
        effect=str(spec.get("does", "")),
        paths=tuple(paths or ()),
    )
    made = as_tool(host)._replace(run=partial(_run, path, host, float(limit)), is_program=True)
    return Effect(host.effect), made


async def _never(_: dict[str, Any]) -> str:
    raise AssertionError("it is a program")


async def _run(
    path: Path, host: HostTool, limit_s: float, arguments: Arguments, place: Place
) -> AsyncGenerator[str | Outcome, None]:
    given = jsonl.dump(resolved(host, arguments, place)).decode()
    if len(given) > GIVEN:
        raise ToolError(f"{host.name}: the arguments are too long: {len(given):,} characters of {GIVEN:,}")
    place = replace(place, shown=(os.path.realpath(path.parent),))
    # No line of JSON is the word that ends it.
    async with aclosing(execute(f"exec {shlex.quote(str(path))} <<'END'\n{given}\nEND\n", place, limit_s)) as pieces:
        async for piece in pieces:
            yield piece
