"""Opening a chat: which settings, workspace and system prompt it begins with, or goes on with.

Light: every program that makes or joins a chat uses it before anything heavy is imported.
"""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

from cass import chat, config, presence, project, prompt
from cass.access import Mode
from cass.config import Options, Settings
from cass.errors import CassError, ConfigError, UsageError
from cass.home import Files, Home
from cass.instructions import Instructions
from cass.jsonl import now
from cass.records import Meta, Record, User


def new(home: Home, cwd: Path, settings: Settings, options: Options, **meta: object) -> Files:
    """Make a chat in the workspace `cwd`; `meta` are further fields of its first record."""
    root = workspace(str(cwd))
    check_mode(settings.mode, root, home)
    instructions = settings.instructions or config.instructions(home, root)
    return chat.create(
        home,
        cwd=root,
        provider=settings.connection.provider,
        model=settings.model,
        system=prompt.system(instructions.global_text, instructions.text),
        agents_files=instructions.files or None,
        base_url=options.base_url,
        **meta,
    )


def settings_of(found: list[Record], home: Home, options: Options, environ: Mapping[str, str] = os.environ) -> Settings:
    """What a chat goes on with: flags and environment first, then its own model, then the configuration.

    A flag that names a model alone means another model of the chat's own provider.
    """
    meta = next((record for record in found if isinstance(record, Meta)), None)
    last = next((record for record in reversed(found) if isinstance(record, User)), None)
    said = (options.provider, options.base_url, environ.get("CASS_PROVIDER"), environ.get("CASS_MODEL"))
    if meta is None or any(said):
        return config.load(home, options, environ)
    provider = (last or meta).provider
    if provider == "demo" and meta.base_url is None:
        # The demo stands in where nothing is configured: a chat goes on with a real model as soon as there is one.
        return config.load(home, options, environ)
    own = options._replace(
        provider=None if meta.base_url else provider,
        model=options.model or (last or meta).model,
        base_url=meta.base_url,  # without a key: what a file says must not send one anywhere
    )
    try:
        return config.load(home, own, environ)
    except ConfigError:
        return config.load(home, options, environ)  # its provider is not configured any more


def of_project(settings: Settings, home: Home, root: Path) -> Settings:
    """`settings`, narrowed by the project of the workspace `root` as far as the person trusts it."""
    found = project.load(root, home)
    said = (*settings.notices, *(notice for notice in found.notices if notice not in settings.notices))
    return settings._replace(rules=found.narrowed(settings.rules), notices=said)


def workspace(cwd: str) -> Path:
    """The workspace, resolved. Raises CassError where it is no directory."""
    try:
        root = Path(cwd).expanduser().resolve(strict=True)
    except (OSError, ValueError):  # a NUL is a ValueError
        raise CassError(f"the workspace {cwd} is gone; name another one with --cwd") from None
    if not root.is_dir():
        raise UsageError(f"the workspace {cwd} is not a directory")
    return root


def check_cwd(files: Files, cwd: Path | None) -> None:
    """Raise UsageError where a running worker would have to move to `cwd`: it keeps the workspace it has."""
    if cwd is None or not presence.is_running(files):
        return
    meta = chat.meta(chat.read(files))
    if meta is not None and meta.cwd != str(workspace(str(cwd))):
        text = f"its worker runs in {meta.cwd}; for another workspace end it first: cass stop {files.chat_id}"
        raise UsageError(f"--cwd: {text}")


def check_mode(mode: Mode, root: Path, home: Home) -> None:
    """Raise UsageError where `root` is too much to give to workspace-edit, or cass's own to a mode that changes files.

    No tool may do anything there, and a sandboxed command, which writes to its workspace, could speak for the person.
    """
    kept = next((one for one in (home, Home.find({})) if root.is_relative_to(one.root.resolve())), None)
    if kept is not None and mode is not Mode.READ_ONLY:
        raise UsageError(f"{root} lies in {kept.root}, which is closed to tools: name another directory with --cwd")
    # Above the home directory all of it is in the workspace: programs, start files, other people's homes.
    if mode is Mode.WORKSPACE_EDIT and Path.home().resolve().is_relative_to(root):
        raise UsageError(f"{root} cannot be the workspace of {mode} mode: name a directory below it with --cwd")


def news(found: list[Record], now_there: Instructions) -> tuple[str, ...]:
    """What the person should know of the project's instructions: cut, left out, or not what the chat was told.

    A chat keeps the system prompt that it began with.
    """
    meta = chat.meta(found)
    told = {file["path"]: file["sha256"] for file in (meta.agents_files if meta else None) or ()}
    there = {file["path"]: file["sha256"] for file in now_there.files}
    words = {path: "changed" if path in told else "new" for path, hash in there.items() if told.get(path) != hash}
    words |= {path: "gone" for path in told if path not in there}
    since = ", ".join(f"{path} ({word})" for path, word in words.items())
    text = f"project instructions since this chat began: {since}; it keeps what it was told, a new chat takes them in"
    return (*now_there.notices, *([text] if since else []))


def move(found: list[Record], cwd: str, settings: Settings) -> Meta | None:
    """The record that gives a chat another workspace; None where it has this one already."""
    meta = chat.meta(found)
    if meta is None:
        raise CassError("the chat has no meta record")
    if meta.cwd == cwd:
        return None
    return dataclasses.replace(meta, cwd=cwd, created_at=now(), model=settings.model)
