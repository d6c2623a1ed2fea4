"""The command line: one click command for each program. It gathers options and makes one call.

Modules are imported where they are needed: a program pays only for itself.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cass import __version__, commands
from cass.errors import CassError, UsageError
from cass.home import Files, Home

READ_STDIN = "-"
LIST = "\0list"
"""What a bare ``--resume`` means."""


class _Reporting:
    """Prints an error that the person can act on as one message, and ends with its status."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)  # type: ignore[misc]
        except CassError as e:
            _complain(ctx, "; ".join([str(e), *getattr(e, "__notes__", [])]))
            ctx.exit(e.status)
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


class _Program(_Reporting, click.Command):
    pass


class _Programs(_Reporting, click.Group):
    pass


def _complain(ctx: click.Context, text: str) -> None:
    click.echo(f"{ctx.find_root().info_name}: {text}", err=True)


def _find(chat: str) -> Files:
    from cass import chat as chats

    return chats.find(Home.find(), chat)


_PATH = click.Path(path_type=Path)
_RUN_OPTIONS: list[Callable[[Any], Any]] = [
    click.option("-P", "--provider", metavar="ID", help="Provider to ask, such as openai or ollama."),
    click.option("-m", "--model", metavar="MODEL", help="Model to ask."),
    click.option("--base-url", metavar="URL", help="Any OpenAI-compatible endpoint."),
    click.option("--api-key-env", metavar="NAME", help="Variable that holds the API key."),
    click.option("--readonly", "mode", flag_value="read-only", help="Only look: ls, read, grep in the workspace."),
    click.option("--workspace-edit", "mode", flag_value="workspace-edit", help="Change files; ask before commands."),
    click.option("--full-access", "mode", flag_value="full-access", help="Every tool, everywhere, unasked."),
    click.option("--yolo", "mode", flag_value="full-access", help="The same."),
    click.option("--effort", metavar="LEVEL", help="How much the model reasons."),
    click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Output limit of one answer."),
    click.option("--max-turns", type=click.IntRange(1), metavar="N", help="Stop a turn after N requests."),
    click.option("--max-tool-output", type=click.IntRange(100), metavar="N", help="Characters of a tool result sent."),
    click.option("--config", type=_PATH, metavar="FILE", help="Use FILE in place of config.json."),
    click.option("--cwd", type=_PATH, metavar="DIR", help="The workspace; default: this directory."),
]
_OF_OPTIONS = (
    "provider model base_url api_key_env mode effort max_tokens max_turns max_tool_output config layout"
).split()


def _run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_RUN_OPTIONS):
        command = option(command)
    return command


def _options(given: dict[str, Any]) -> Any:
    from cass.config import Options

    return Options(**{name: given.get(name) for name in _OF_OPTIONS})


def _flags(given: dict[str, Any]) -> list[str]:
    """The same options, for a worker."""
    flags = []
    for name in (*_OF_OPTIONS, "cwd"):
        if (value := given.get(name)) is not None and name not in ("mode", "layout"):
            flags += [f"--{name.replace('_', '-')}", str(value)]
    if mode := given.get("mode"):
        flags.append({"read-only": "--readonly"}.get(mode, f"--{mode}"))
    return flags


# ---- cass -----------------------------------------------------------------------------------------------------------


def _optional(name: str, bare: str, metavar: str, help: str, *more: str) -> Callable[[Any], Any]:
    return click.option(*more, name, is_flag=False, flag_value=bare, metavar=metavar, help=help)


@click.group(
    cls=_Programs,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="A CHAT is any unique part of an id, or '.': $CASS_CHAT, else the latest chat of this directory.",
)
@_optional("resume", LIST, "[CHAT]", "Go on with a chat; alone: list those of this directory.", "--resume")
@_optional("prompt", READ_STDIN, "[TEXT]", "One turn, the answer on standard output.", "-p", "--print")
@click.option("--ask", is_flag=True, help="With -p: wait for approvals, from another terminal, instead of denying.")
@click.option("--layout", type=click.Choice(["inline", "panes"]), help="One terminal, or two tmux panes.")
@click.option("--print-system-prompt", is_flag=True, help="Print the system prompt and end.")
@click.option("--list-chats", "--sessions", "list_chats", is_flag=True, help="The same as: cass ls")
@_run_options
@click.version_option(__version__, prog_name="cass", message="%(prog)s %(version)s")
@click.pass_context
def cass(ctx: click.Context, /, **given: Any) -> None:
    """Chat with a coding agent in this directory."""
    if ctx.invoked_subcommand is not None:
        return
    if given["list_chats"] or given["resume"] == LIST:
        _print_chats(given["cwd"] or Path.cwd(), everything=False, as_json=False)
    elif given["print_system_prompt"]:
        _print_system_prompt(given)
    elif given["prompt"] is not None:
        ctx.exit(_one_turn(given))
    else:
        ctx.exit(_interactive(given))


def _print_system_prompt(given: dict[str, Any]) -> None:
    from cass import config, opening, prompt

    found = config.instructions(Home.find(), opening.workspace(str(given["cwd"] or ".")))
    click.echo(prompt.system(found.global_text, found.text))


def _one_turn(given: dict[str, Any]) -> int:
    from cass import chat, config, opening, presence, send

    text = send.text_from(given["prompt"])
    if not text.strip():
        raise UsageError("the prompt is empty")
    home, options = Home.find(), _options(given)
    settings = None
    if given["resume"] is None:
        settings = config.load(home, options, os.environ)
        config.require_key(settings)
        files = opening.new(home, given["cwd"] or Path.cwd(), settings, options)
        _say(*settings.notices)
    else:
        files = chat.find(home, given["resume"])
        _say(*(notice.text for notice in chat.damage(chat.read(files))))
        if presence.is_running(files):
            sent = send.send(files, text, ask=given["ask"], wait=True, program="cass -p")
            return _finish(files, sent.end, sent.answer)
    from cass import worker

    return _finish(
        files, *worker.once(files, options, settings, text, cwd=given["cwd"], ask=given["ask"])
    )


def _finish(files: Files, end: Any, answer: str) -> int:
    """Print the answer alone on standard output, how it ended on standard error; return the exit status."""
    from cass import status

    if answer and end.outcome != "cancelled":
        click.echo(answer)
    if end.error or end.outcome != "done":
        _say(f"{end.outcome}: {end.error or 'the turn was cancelled'}", f"chat: {files.chat_id}")
    return status.EXITS[end.outcome]


def _say(*lines: str) -> None:
    from cass.blocks import safe

    for line in lines:
        click.echo(safe(line), err=True)


def _interactive(given: dict[str, Any]) -> int:
    from cass import launch

    return launch.run(
        Home.find(), _options(given), _compose, resume=given["resume"], cwd=given["cwd"], worker_flags=_flags(given)
    )


def _compose(*given: Any, **more: Any) -> int:
    from cass import compose  # heavy: only the child of the launcher pays for it

    return compose.run(*given, **more)


# ---- subcommands of cass --------------------------------------------------------------------------------------------


def _subcommand(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    text = next(command.help for command in commands.SUBCOMMANDS if command.name == name)
    return cass.command(name, cls=_Program, help=f"{text[0].upper()}{text[1:]}.")


_CHAT = click.argument("chat", metavar="CHAT")
_JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")


@_subcommand("ls")
@click.option("--all", "everything", is_flag=True, help="Those of every directory.")
@_JSON
def _ls(everything: bool, as_json: bool) -> None:
    _print_chats(Path.cwd(), everything=everything, as_json=as_json)


def _print_chats(cwd: Path, *, everything: bool, as_json: bool) -> None:
    from cass import chat, listing

    found = chat.summaries(Home.find(), None if everything else cwd)
    if as_json:
        click.echo(listing.as_json(found))
    elif found:
        click.echo(listing.table(found, Home.find(), cwd_shown=everything))
    elif not everything and (others := len(chat.ids(Home.find()))):
        click.echo(f"no chats in {cwd}; {others} elsewhere: cass ls --all", err=True)
    else:
        click.echo("no chats yet; start one with: cass", err=True)


@_subcommand("status")
@click.argument("chat", metavar="[CHAT]", required=False)
@_JSON
def _status(chat: str | None, as_json: bool) -> None:
    from cass import listing

    click.echo(listing.statuses([_find(chat)] if chat else listing.every(Home.find()), as_json=as_json, named=bool(chat)))


@_subcommand("wait")
@_CHAT
@click.option("--timeout", type=click.FloatRange(0), metavar="SECONDS", help="Give up, with status 124.")
@click.pass_context
def _wait(ctx: click.Context, chat: str, timeout: float | None) -> None:
    from cass import status

    end = status.settle(_find(chat), timeout)
    if end is not None and end.error:
        _say(f"{end.outcome}: {end.error}")
    ctx.exit(status.EXITS[end.outcome] if end is not None else 0)


@_subcommand("cancel")
@_CHAT
def _cancel(chat: str) -> None:
    from cass import send

    send.command(_find(chat), {"type": "cancel"})


@_subcommand("stop")
@_CHAT
@click.option("--timeout", type=click.FloatRange(0), default=10, metavar="SECONDS", help="How long to wait for it.")
def _stop(chat: str, timeout: float) -> None:
    from cass import send

    send.stop(_find(chat), timeout)


@_subcommand("approve")
@_CHAT
@click.argument("request", metavar="[REQUEST]", required=False)
@click.option("--always", is_flag=True, help="Give the rule it names, for the life of the worker.")
def _approve(chat: str, request: str | None, always: bool) -> None:
    from cass import verdict

    verdict.give(_find(chat), request, approve=True, always=always)


@_subcommand("deny")
@_CHAT
@click.argument("request", metavar="[REQUEST]", required=False)
@click.option("--reason", help="What the model is told.")
def _deny(chat: str, request: str | None, reason: str | None) -> None:
    from cass import verdict

    verdict.give(_find(chat), request, approve=False, reason=reason)


@_subcommand("paths")
@click.argument("chat", metavar="[CHAT]", required=False)
def _paths(chat: str | None) -> None:
    home = Home.find()
    places = {"home": home.root, "config": home.config, "conversations": home.conversations}
    if chat:
        files = _find(chat)
        names = ("chat", "run", "bell", "inbox", "socket", "live", "lock", "log")
        places = {name: getattr(files, name) for name in names}
    for name, path in places.items():
        click.echo(f"{name:14} {path}")


# ---- the other programs ---------------------------------------------------------------------------------------------


@click.command(cls=_Program)
@_CHAT
@_run_options
@click.option("--idle", type=click.FloatRange(0), default=60, metavar="SECONDS", help="End when unneeded for so long.")
@click.option("--detach", is_flag=True, help="Leave this terminal.")
@click.option("--ready-fd", type=int, hidden=True)
def cass_agent(chat: str, idle: float, detach: bool, ready_fd: int | None, **given: Any) -> None:
    """Be the worker of a chat: the only writer of its file."""
    if detach:
        _detach()
    files = _find(chat)
    from cass import worker

    worker.run(files, _options(given), cwd=given["cwd"], idle_s=idle, ready_fd=ready_fd)


def _detach() -> None:
    """Go on as a process of its own, in a session without a terminal; the one that was started ends."""
    if os.fork():
        os._exit(0)
    os.setsid()


@click.command(cls=_Program)
@_CHAT
@click.argument("text", metavar="[TEXT|-]", required=False)
@click.option("--wait", is_flag=True, help="Wait for the turn that answers it and print the answer.")
@click.option("--timeout", "timeout_s", type=click.FloatRange(0), metavar="SECONDS", help="With --wait: then end with 124.")
@click.option("--no-start", "start", is_flag=True, flag_value=False, default=True, help="Do not start a worker.")
@click.option("--ask", is_flag=True, help="Approvals are waited for, instead of denied.")
@click.option("--steer", is_flag=True, help="Heard by the running turn before it goes on.")
@click.option("--id", metavar="ID", help="Id of the message; default: a new one.")
@click.pass_context
def cass_send(ctx: click.Context, /, chat: str, text: str | None, **given: Any) -> None:
    """Put one message into a chat and print its id, or the answer."""
    from cass import send

    if given["timeout_s"] is not None and not given["wait"]:
        raise UsageError("--timeout goes with --wait")
    files = _find(chat)
    found = send.send(files, send.text_from(text), **given)
    if found.end is None:
        click.echo(found.id)
    else:
        ctx.exit(_finish(files, found.end, found.answer))


@click.command(cls=_Program)
@_CHAT
@click.option("--frames", is_flag=True, help="For a composer: JSON frames on standard output.")
@click.option("-f/-F", "--follow/--no-follow", default=None, help="Go on as the chat does; default: on a terminal.")
@click.option("-n", "last", type=click.IntRange(0), metavar="N", help="Begin with the last N messages.")
@click.option("--full", is_flag=True, help="Results and arguments in full.")
@click.option("--reasoning", is_flag=True, help="Show the model's reasoning.")
@click.option("--plain", is_flag=True, help="Text without colours.")
@click.option("--json", is_flag=True, help="The records as they are.")
@click.option("--live", is_flag=True, help="With --json: what is only true for now, too.")
@click.option("--width", type=click.IntRange(10), metavar="COLUMNS", help="Lay out for so many columns.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto")
@click.pass_context
def cass_view(ctx: click.Context, /, chat: str, **given: Any) -> None:
    """Show a chat, and what it does while it does it."""
    from cass import view

    ctx.exit(view.run(_find(chat), view.Options(**given)))


@click.command(cls=_Program)
@_CHAT
@_run_options
@click.pass_context
def cass_compose(ctx: click.Context, /, chat: str, **given: Any) -> None:
    """Write into a chat: keys, draft, history, approvals. What the chat says is shown elsewhere."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("a composer needs a terminal; from a script use: cass-send CHAT TEXT")
    ctx.exit(_compose(_find(chat), worker_flags=_flags(given)))


cassady = cass

PROGRAMS: dict[str, click.Command] = {
    "cass": cass,
    "cassady": cassady,
    "cass-agent": cass_agent,
    "cass-view": cass_view,
    "cass-compose": cass_compose,
    "cass-send": cass_send,
}
"""Each executable and its command."""


def main() -> None:
    """``python -m cass.cli PROGRAM ARGUMENTS``"""
    program = sys.argv[1]
    PROGRAMS[program].main(sys.argv[2:], prog_name=program)


if __name__ == "__main__":
    main()
