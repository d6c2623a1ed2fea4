"""The person's own tools: executables in ``~/.cass/tools`` that say with ``--schema`` what they are.

    {"name": "ticket", "description": "Read a ticket.", "does": "reads",
     "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}}

A call starts the executable in the workspace, with the arguments as JSON on its standard input; what it writes is the
result, and an exit status other than 0 a failed one. It is held in the sandbox wherever shell is.
"""

import contextlib
import errno
import os
import select
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

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
END_S = 0.2
"""For one that has said it to end, so that its exit status is known."""
WORDS_BYTES = 300
"""Of what it writes to standard error, the end."""
LIMIT_S = 120.0
LONGEST_S = 600.0
GIVEN = 30_000
"""Characters of the arguments, which are a part of the command that is started: Linux takes 128 KiB."""
DESCRIPTION = 4_000
"""Characters: more is no description, and would be sent with every request."""
_START = {
    errno.EACCES: "it is not executable (chmod +x)",
    errno.ENOENT: "it does not start: the program that its first line names is not there",
    errno.ENOEXEC: "it does not start: a script begins with a line such as #!/bin/sh",
}
_KEYS = frozenset({"name", "description", "parameters", "does", "paths", "timeout_s"})


def find(
    directory: Path, environ: Mapping[str, str], taken: Iterable[str] = (), patience_s: float = SCHEMA_S
) -> tuple[list[tuple[Effect, Tool]], list[str]]:
    """The tools in `directory`, by the names of their files, and what is wrong with those that cannot be used.

    `taken`: names that are others'.
    """
    deadline = time.monotonic() + patience_s
    found: dict[str, tuple[Effect, Tool]] = {}
    wrong: list[str] = []
    try:
        programs = list(_programs(directory))
    except OSError as e:
        return [], [f"{directory}: {e.strerror}; no tool there is used"]
    with contextlib.ExitStack() as files:
        begun = [_begin(path, environ, files.enter_context(tempfile.TemporaryFile())) for path in programs]
        for one in begun:
            try:
                effect, tool = _made(one.path, _answer(one, deadline))
                if tool.name in found or tool.name in taken:
                    raise ToolError(f"there is a tool {tool.name} already")
                found[tool.name] = effect, tool
            except (UsageError, ToolError) as e:
                wrong.append(f"{one.path}: {e}; it is not used")
    return list(found.values()), wrong


def _programs(directory: Path) -> Iterator[Path]:
    """Executables, and scripts that somebody forgot to make some."""
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        if path.is_file() and not path.name.startswith(".") and (os.access(path, os.X_OK) or _is_script(path)):
            yield path


def _is_script(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return True  # one that cannot even be read is said to be none


class _Begun(NamedTuple):
    path: Path
    process: "subprocess.Popen[bytes] | OSError"
    errors: IO[bytes]
    """What it writes to standard error: a file, which is never full."""


class _Said(NamedTuple):
    text: bytes
    end: str
    """How it ended, where that was not well."""


def _begin(path: Path, environ: Mapping[str, str], errors: IO[bytes]) -> _Begun:
    try:
        process = subprocess.Popen(
            [path, "--schema"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=path.parent,
            env=dict(environ),
            start_new_session=True,
        )
    except OSError as e:
        return _Begun(path, e, errors)
    return _Begun(path, process, errors)


def _answer(begun: _Begun, deadline: float) -> _Said:
    """What it says, all of it. Raises ToolError; it has ended in any case."""
    process = begun.process
    if isinstance(process, OSError):
        raise ToolError(_START.get(process.errno or 0, f"it does not start: {process.strerror}"))
    assert process.stdout is not None
    said = b""
    with process.stdout:
        try:
            while piece := _piece(process.stdout, deadline):
                said += piece
                if len(said) > SCHEMA_BYTES:
                    raise ToolError(f"--schema: more than {SCHEMA_BYTES:,} bytes")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return _Said(said, _end(process.returncode, begun.errors))


def _end(status: int, errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(size - WORDS_BYTES, 0))
    words = " ".join(errors.read().decode("utf-8", "replace").split())
    return f"exit status {status}{f': {words}' if words else ''}" if status else ""


def _piece(stdout: IO[bytes], deadline: float) -> bytes:
    """Some bytes; none at the end. Raises ToolError."""
    if not select.select([stdout], [], [], max(deadline - time.monotonic(), 0))[0]:
        raise ToolError("--schema: no answer in time")
    return os.read(stdout.fileno(), SCHEMA_BYTES)


def _made(path: Path, said: _Said) -> tuple[Effect, Tool]:
    """Raises ToolError, UsageError."""
    try:
        spec = jsonl.load(said.text)
    except ValueError:
        spec = None
    if not isinstance(spec, dict):
        raise ToolError(f"--schema: expected a JSON object{f'; {said.end}' if said.end else ''}")
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
