"""The server: what an editor asks over standard input, answered on standard output, where nothing else ever stands.

Source: https://agentclientprotocol.com/protocol/overview
"""

import asyncio
import binascii
import contextlib
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import acp
from acp import RequestError
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResourceContentBlock,
    SessionCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionMode,
    SessionModeState,
    SetSessionModeResponse,
    TextContentBlock,
    TextResourceContents,
)

from cass import __version__, attachments, catalogue, chat, config, heir, opening, presence
from cass.access import Mode
from cass.acp.lines import LONGEST, Lines
from cass.acp.room import Room
from cass.config import Options
from cass.errors import CassError, UsageError
from cass.home import Files, Home
from cass.values import Attachment
from cass.visible import safe_line

MODES = {
    Mode.READ_ONLY: ("Read-only", "Look only: ls, read, grep in the workspace"),
    Mode.WORKSPACE_EDIT: ("Workspace edit", "Change files of the workspace; ask before every command"),
    Mode.FULL_ACCESS: ("Full access", "Every tool, everywhere, unasked"),
}
FAILED = -32603
"""JSON-RPC's internal error: the one kind whose words editors show."""


def run(home: Home, options: Options, flags: Sequence[str]) -> None:
    """Serve until standard input ends. `flags` say for a worker what `options` say, but for the mode.

    Raises UsageError where standard input or output can be no editor's: a file, or ``/dev/null``.
    """
    for name, fd in (("input", 0), ("output", 1)):
        kind = os.fstat(fd).st_mode
        if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or os.isatty(fd)):
            raise UsageError(f"cass acp is started by an editor, over pipes, and standard {name} is none")
    asyncio.run(_run(Server(home, options, flags)))


async def _run(server: "Server") -> None:
    try:
        # It has the methods that it speaks of, not all there are.
        await acp.run_agent(cast(Any, server), Lines(*await acp.stdio_streams(limit=LONGEST)))
    finally:
        server.close()


@contextlib.contextmanager
def _spoken() -> Iterator[None]:
    """What a person can act on is told in its own words."""
    try:
        yield
    except CassError as e:
        raise RequestError(FAILED, "\n".join([str(e), *getattr(e, "__notes__", ())])) from e


class Server:
    """The methods that the protocol names, of the rooms that one editor is in."""

    def __init__(self, home: Home, options: Options, flags: Sequence[str]) -> None:
        self._home, self._options, self._flags = home, options, flags
        self._rooms: dict[str, Room] = {}
        self._client: Client

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    def close(self) -> None:
        for room in self._rooms.values():
            room.close()

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION) or acp.PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(embedded_context=True, image=True),
                session_capabilities=SessionCapabilities(list=SessionListCapabilities()),
            ),
            agent_info=Implementation(name="cassady", title="Cassady", version=__version__),
            auth_methods=[],
        )

    # ---- chats

    async def new_session(self, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any) -> NewSessionResponse:
        self._leave_out(mcp_servers)
        with _spoken():
            settings = config.load(self._home, self._options, os.environ)
            config.require_key(settings)
            files = opening.new(self._home, Path(cwd), settings, self._options)
            room = self._enter(files, opening.workspace(cwd), settings.mode, ())
        return NewSessionResponse(session_id=files.chat_id, modes=_modes(room.mode))

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> LoadSessionResponse:
        self._leave_out(mcp_servers)
        with _spoken():
            files = heir.of(catalogue.find(self._home, session_id), lambda _: None)
            if files.chat_id != session_id:
                raise UsageError(f"{session_id} is part of {files.chat_id}, or was written by Cassady 0.4; load that")
            found = chat.read(files)
            meta, root = chat.meta(found), opening.workspace(cwd)
            moves = meta is None or meta.cwd != str(root)
            if moves:
                opening.check_cwd(files, root)
            running = presence.holder(files).get("mode") if presence.is_running(files) else None
            mode = Mode(running) if running else opening.settings_of(found, self._home, self._options).mode
            room = self._enter(files, root, mode, ("--cwd", str(root)) if moves else ())
            await room.replay()
        return LoadSessionResponse(modes=_modes(room.mode))

    def _enter(self, files: Files, root: Path, mode: Mode, flags: Sequence[str]) -> Room:
        if files.chat_id in self._rooms:
            self._rooms.pop(files.chat_id).close()
        self._rooms[files.chat_id] = room = Room(files, root, mode, (*self._flags, *flags), self._client)
        return room

    def _leave_out(self, mcp_servers: Sequence[Any] | None) -> None:
        for server in mcp_servers or ():
            print(
                f"cass acp: MCP server {safe_line(server.name)}: left out; cass has its own: cass mcp", file=sys.stderr
            )

    async def list_sessions(self, cwd: str | None = None, **_: Any) -> ListSessionsResponse:
        found = catalogue.summaries(self._home, Path(cwd) if cwd else None)
        sessions = [
            SessionInfo(session_id=one.chat_id, cwd=one.cwd, title=one.title or None, updated_at=one.changed_at)
            for one in found
        ]
        return ListSessionsResponse(sessions=sessions)

    # ---- turns

    async def prompt(self, prompt: Sequence[Any], session_id: str, **_: Any) -> PromptResponse:
        with _spoken():
            room, images = self._room(session_id), self._images(prompt)
            text = "\n\n".join(images[n][0] if n in images else _text(block) for n, block in enumerate(prompt))
            attached = attachments.together([image for _, image in images.values()])
            reason, error = await room.prompt(text, attached)
        if error:
            raise RequestError(FAILED, error)
        return PromptResponse(stop_reason=cast(Any, reason))

    def _images(self, prompt: Sequence[Any]) -> dict[int, tuple[str, Attachment]]:
        """The images of a prompt by their places, each with the word that stands there. Raises UsageError."""
        found = {}
        for place, block in enumerate(prompt):
            if isinstance(block, ImageContentBlock):
                kept = attachments.keep(self._home, _decoded(block.data), "the image")
                found[place] = (attachments.word(kept), kept)
        return found

    async def cancel(self, session_id: str, **_: Any) -> None:
        self._room(session_id).cancel()

    async def set_session_mode(self, mode_id: str, session_id: str, **_: Any) -> SetSessionModeResponse:
        if mode_id not in tuple(Mode):
            raise RequestError.invalid_params({"modeId": f"one of {', '.join(Mode)}, not {mode_id!r}"})
        with _spoken():
            self._room(session_id).set_mode(Mode(mode_id))
        return SetSessionModeResponse()

    def _room(self, session_id: str) -> Room:
        if session_id not in self._rooms:
            raise RequestError.invalid_params({"sessionId": f"{session_id} was neither made nor loaded here"})
        return self._rooms[session_id]


def _modes(mode: Mode) -> SessionModeState:
    modes = [SessionMode(id=id, name=name, description=text) for id, (name, text) in MODES.items()]
    return SessionModeState(current_mode_id=mode, available_modes=modes)


def _text(block: object) -> str:
    """A part of a prompt as the model reads it."""
    match block:
        case TextContentBlock():
            return str(block.text)
        case ResourceContentBlock():
            return f"@{_place(block.uri)}"
        case EmbeddedResourceContentBlock(resource=TextResourceContents() as resource):
            return f"{_place(resource.uri)}:\n{resource.text}"
    return "[something that is no text was left out]"


def _decoded(data: str) -> bytes:
    try:
        return binascii.a2b_base64(data)
    except ValueError:
        raise UsageError("the image is no base64") from None


def _place(uri: str) -> str:
    """The path that a URI names; others as they are."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    return unquote(parts.path) if parts.scheme == "file" else uri
