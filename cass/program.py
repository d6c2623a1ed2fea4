"""A program: a click command that says what went wrong in one message, and the options that a run of cass takes."""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

import click

from cass import __version__
from cass.errors import CassError, UsageError
from cass.flags import NAMES

if TYPE_CHECKING:
    from pathlib import Path

    from cass.config import Options
    from cass.home import Files


class _Reporting:
    """Prints an error that the person can act on as one message, and ends with its status."""

    def __init__(self, *given: Any, context_settings: "dict[str, Any] | None" = None, **more: Any) -> None:
        settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100, **(context_settings or {})}
        super().__init__(*given, context_settings=settings, **more)  # type: ignore[call-arg]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)  # type: ignore[misc]
        except CassError as e:
            _complain(ctx, "; ".join([str(e), *getattr(e, "__notes__", [])]))
            ctx.exit(e.status)
        except click.Abort:  # at a question of click's
            err("")
            ctx.exit(130)
        except KeyboardInterrupt:
            ctx.exit(130)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python complains once more when it flushes
            ctx.exit(141)
        except OSError as e:
            if e.filename is None:
                raise
            _complain(ctx, f"{e.filename}: {e.strerror}")
            ctx.exit(1)


class Program(_Reporting, click.Command):
    """One of our commands."""


class Programs(_Reporting, click.Group):
    """One with subcommands."""


def _complain(ctx: click.Context, text: str) -> None:
    err(f"{ctx.find_root().info_name}: {text}")


# ---- output ---------------------------------------------------------------------------------------------------------


def out(text: str) -> None:
    """Print what was asked for, and a newline, on standard output."""
    _print(text, sys.stdout)


def err(*lines: str) -> None:
    """Print all else on standard error."""
    for line in lines:
        _print(line, sys.stderr)


def _print(text: str, stream: "TextIO | None") -> None:
    """On a terminal nothing in `text` is obeyed; a pipe or a file gets it as it is, in UTF-8."""
    from cass.visible import safe

    if stream is not None and stream.isatty():
        click.echo(safe(text), stream)
    else:
        # A file's name may be no UTF-8: what is none stands in the text as half characters, and comes out as it was.
        click.echo(text.encode("utf-8", "surrogateescape"), stream)


# ---- arguments and options ------------------------------------------------------------------------------------------

CHAT = click.argument("chat", metavar="CHAT")
VERSION = click.version_option(__version__, message="%(prog)s %(version)s")


def find(chat: str) -> "Files":
    """The chat that a person means. Raises NoChat, UsageError."""
    from cass import catalogue
    from cass.home import Home

    return catalogue.find(Home.find(), chat, here() if chat == "." else None)


def here() -> "Path":
    """This directory. Raises UsageError where it was removed."""
    from pathlib import Path

    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError("this directory was removed; go to another one, or name it with --cwd") from None


def as_path(ctx: click.Context, option: click.Parameter, value: str | None) -> "Path | None":
    """The value of an option as a path; what click has for this loads more than most programs need."""
    from pathlib import Path

    return None if value is None else Path(value)


def _as_directory(ctx: click.Context, option: click.Parameter, value: str | None) -> "Path | None":
    path = as_path(ctx, option, value)
    if path is not None and not path.expanduser().is_dir():
        raise click.BadParameter(f"{value!r} is no directory.", ctx, option)
    return path


def _as_tools(ctx: click.Context, option: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """Names between commas. One that is surely wrong makes no chat; the person's own tools only a worker knows."""
    if value is None:
        return None
    from cass import tools
    from cass.home import Home

    names = tuple(filter(None, map(str.strip, value.split(","))))
    try:
        if not (Home.find().root / "tools").is_dir():
            tools.check(names, tools.NAMES)
    except UsageError as e:
        raise click.UsageError(str(e), ctx) from e
    return names


_OPTIONS: list[Callable[[Any], Any]] = [
    click.option("-P", "--provider", metavar="ID", help="Provider to ask, such as openai or ollama."),
    click.option("-m", "--model", metavar="MODEL", help="Model to ask."),
    click.option("--base-url", metavar="URL", help="Any OpenAI-compatible endpoint."),
    click.option("--api-key-env", metavar="NAME", help="Variable that holds the API key."),
    click.option("--readonly", "mode", flag_value="read-only", help="Only look: ls, read, grep in the workspace."),
    click.option("--workspace-edit", "mode", flag_value="workspace-edit", help="Change files; ask before commands."),
    click.option("--full-access", "mode", flag_value="full-access", help="Every tool, everywhere, unasked."),
    click.option("--yolo", "mode", flag_value="full-access", help="The same."),
    click.option("--sandbox/--no-sandbox", default=None, help="Hold commands in; default: in workspace-edit mode."),
    click.option("--net/--no-net", default=None, help="Give commands in the sandbox the network."),
    click.option("--effort", metavar="LEVEL", help="How much the model reasons."),
    click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Output limit of one answer."),
    click.option("--max-turns", type=click.IntRange(1), metavar="N", help="Stop a turn after N requests."),
    click.option(
        "--max-cost", type=click.FloatRange(0, min_open=True), metavar="USD", help="Stop once it has cost that."
    ),
    click.option("--max-tool-output", type=click.IntRange(100), metavar="N", help="Characters of a tool result sent."),
    click.option(
        "--tools", callback=_as_tools, metavar="NAMES", help="Offer only these tools, such as read,grep; '' for none."
    ),
    click.option("--config", callback=as_path, metavar="FILE", help="Use FILE in place of config.json."),
    click.option("--cwd", callback=_as_directory, metavar="DIR", help="The workspace; default: this directory."),
]


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of everything that talks to a model."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def options(given: dict[str, Any]) -> "Options":
    """What was given of them."""
    from cass.config import Options

    return Options(**{name: given.get(name) for name in NAMES})
