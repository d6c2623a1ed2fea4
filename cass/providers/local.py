"""Local: a model from a file, asked through llama.cpp's server, which runs as long as this provider does."""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

from cass import extras, gguf
from cass.config import Connection
from cass.context import Request
from cass.errors import ProviderError
from cass.known import LOCAL_CONTEXT
from cass.providers import openai_compatible
from cass.providers.http import Http
from cass.records import Assistant, Delta

_SERVER = Path(__file__).with_name("llama.py")
_READ_TIMEOUT_S = 600.0
_WORDS = 600
"""Characters of its last lines that are shown where it does not start."""


class Local:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._model = ""
        """The file that the server has."""
        self._process: subprocess.Popen[str] | None = None
        self._http: Http | None = None

    async def stream(self, request: Request, of: str) -> AsyncIterator[Delta | Assistant]:
        """Deltas as they come, then the message. Raises ProviderError."""
        is_there = self._process is not None and self._process.poll() is None
        if self._http is None or request.model != self._model or not is_there:
            await self.aclose()
            self._http = await self._start(request.model)
        async for record in self._http.stream(request, of):
            yield record

    async def aclose(self) -> None:
        if self._http is not None:
            await self._http.aclose()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.close()
            self._process.stdout.close()
        self._http = self._process = None

    async def _start(self, model: str) -> Http:
        """A connection to a server that has loaded `model`. Raises ProviderError."""
        if not Path(model).is_file():
            raise ProviderError(f"{model}: no such file; name a model's file: cass local MODEL.gguf")
        context = min(gguf.context(model) or LOCAL_CONTEXT, LOCAL_CONTEXT)
        with tempfile.TemporaryFile() as log:
            # -P: the workspace holds no modules of ours. Keys are nothing to a server on this machine.
            command = [sys.executable, "-P", str(_SERVER), model, str(context)]
            environ = {name: value for name, value in os.environ.items() if "KEY" not in name and "TOKEN" not in name}
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environ, text=True, cwd="/"
            )
            assert self._process.stdout is not None
            url = (await asyncio.to_thread(self._process.stdout.readline)).strip()
            if not url.startswith("http://"):
                raise ProviderError(_why(log))
        self._model = model
        connection = replace(
            self._connection, kind=openai_compatible.KIND, base_url=f"{url}/v1", read_timeout_s=_READ_TIMEOUT_S
        )
        return Http(connection, openai_compatible)


def _why(log: IO[bytes]) -> str:
    """Why the server did not start, from what it wrote."""
    log.seek(0)
    words = log.read().decode("utf-8", "replace").strip()
    if "No module named 'xllamacpp'" in words:
        return f"llama.cpp is not installed: {extras.adding('local')}"
    lines = [line for line in words.splitlines() if "error" in line.lower()] or words.splitlines()[-3:]
    with suppress(IndexError):
        lines = [lines[0], *lines[-2:]] if len(lines) > 3 else lines
    return f"llama.cpp's server did not start: {'; '.join(lines)[:_WORDS]}"
