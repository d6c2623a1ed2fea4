"""The command line: one click command for each program. It gathers options and makes one call.

Modules are imported where they are needed: a program pays only for itself.
"""

import gc
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

gc.disable()  # until `_settle`: what a start imports is no garbage, and to look for some takes a tenth of its time

import click  # noqa: E402

from cass.errors import UsageError  # noqa: E402
from cass.flags import flags  # noqa: E402
from cass.program import (  # noqa: E402
    CHAT,
    VERSION,
    Program,
    Programs,
    as_path,
    err,
    find,
    here,
    options,
    out,
    run_options,
)

if TYPE_CHECKING:
    from pathlib import Path

    from cass.exchange import Answer
    from cass.home import Files, Home
    from cass.records import TurnEnd
    from cass.report import Report
    from cass.schema import Schema

READ_STDIN = "-"
LIST = "\0list"
"""What a bare ``--resume`` means."""
NEW = "\0new"
"""What a bare ``--worktree`` means."""
PROMPT = "\0prompt"
"""What a text behind other options is, where ``-p`` stands before them."""


_ELSEWHERE = {
    "help": "--help",
    "version": "--version",
    "resume": "--resume",
    "continue": "--continue",
    "run": "-p",
    "exec": "-p",
    **dict.fromkeys(("list", "sessions", "history", "chats"), "ls"),
    **dict.fromkeys(("doctor", "config"), "check"),
    **dict.fromkeys(("init", "configure", "auth"), "setup"),
    "logs": "paths",
    "serve": "acp",
}
"""What other programs call it."""


class _Cass(Programs):
    """`cass`; its subcommands are loaded when one is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from cass import subcommands

        return list(subcommands.SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from cass import subcommands

        return subcommands.SUBCOMMANDS.get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and ctx.params["prompt"] == READ_STDIN:
            ctx.params["prompt"] = args[0]
            self._take(ctx, args[1:])
            return PROMPT, click.Command(PROMPT), []
        if self.get_command(ctx, args[0]) is None:
            raise UsageError(f"no command {args[0]!r}{self._meant(ctx, args[0])}; to ask it: cass -p TEXT")
        return super().resolve_command(ctx, args)

    def _meant(self, ctx: click.Context, word: str) -> str:
        """What somebody may have meant who gives `word` as a command."""
        from difflib import get_close_matches

        names = self.list_commands(ctx)
        near = [_ELSEWHERE[word]] if word in _ELSEWHERE else get_close_matches(word, names, 1)
        return f"; did you mean cass {near[0]}" if near else "; cass --help lists them"

    def _take(self, ctx: click.Context, args: list[str]) -> None:
        """Take the options that stand behind a prompt. Raises UsageError for anything else there."""
        later = self.make_context(ctx.info_name, list(args))
        if later.args or getattr(later, "_protected_args", []):  # click 9 keeps all in `args`
            raise UsageError("more than one prompt: quote it as one argument")
        given = click.core.ParameterSource.COMMANDLINE
        ctx.params |= {name: v for name, v in later.params.items() if later.get_parameter_source(name) is given}


def _optional(name: str, bare: str, metavar: str, help: str, *more: str) -> Callable[[Any], Any]:
    return click.option(*more, name, is_flag=False, flag_value=bare, metavar=metavar, help=help)


@click.group(
    cls=_Cass,
    invoke_without_command=True,
    epilog="A CHAT is any unique part of an id, or '.': $CASS_CHAT, else the latest chat of this directory.",
)
@_optional("resume", LIST, "[CHAT]", "Go on with a chat; alone: list those of this directory.", "-r", "--resume")
@click.option("-c", "--continue", "latest", is_flag=True, help="The same as: --resume .")
@_optional("prompt", READ_STDIN, "[TEXT]", "One turn, the answer on standard output.", "-p", "--print")
@click.option("--ask", is_flag=True, help="With -p: wait for approvals, from another terminal, instead of denying.")
@click.option(
    "--output-format",
    "form",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    help="With -p: the answer, one JSON object, or all records as they come and then that.",
)
@click.option("-o", "--output", callback=as_path, metavar="FILE", help="With -p: the answer into FILE.")
@click.option("--schema", callback=as_path, metavar="FILE", help="With -p: an answer that fits this JSON Schema.")
@click.option("-a", "--attach", multiple=True, metavar="FILE", help="With -p: an image; again for more.")
@click.option("--layout", type=click.Choice(["inline", "panes"]), help="One terminal, or two tmux panes.")
@click.option("--print-system-prompt", is_flag=True, help="Print the system prompt and end.")
@_optional("worktree", NEW, "[NAME]", "Work in a git worktree of its own, beside the repository.", "--worktree")
@click.option("--list-chats", "--sessions", "list_chats", is_flag=True, help="The same as: cass ls")
@run_options
@VERSION
@click.pass_context
def cass(ctx: click.Context, /, **given: Any) -> None:
    """Chat with a coding agent in this directory."""
    ctx.obj = PROGRAMS
    if ctx.invoked_subcommand not in (None, PROMPT):
        return
    if given.pop("latest"):
        given["resume"] = given["resume"] or "."
    if given["attach"] and given["prompt"] is None:
        raise UsageError("--attach goes with -p; in a chat name the image in the message: @picture.png")
    if given["worktree"] is not None:
        given["cwd"] = _worktree(given)
    is_bare = given["resume"] == LIST
    if is_bare and not given["list_chats"] and sys.stdin.isatty() and sys.stdout.isatty():
        ctx.exit(_resume(given))
    elif given["list_chats"] or is_bare:
        from cass import subcommands

        subcommands.print_chats(given["cwd"] or here())
    elif given["print_system_prompt"]:
        _print_system_prompt(given)
    elif given["prompt"] is not None:
        ctx.exit(_one_turn(given))
    else:
        ctx.exit(_interactive(given))


def _home() -> "Home":
    from cass.home import Home

    return Home.find()


def _settle() -> None:
    """Everything is loaded and stays: from here on garbage is collected, of what is made from here on."""
    gc.freeze()
    gc.enable()


def _worktree(given: dict[str, Any]) -> "Path":
    """The workspace of a chat in a worktree, which is said."""
    from cass import worktree

    if given["resume"] is not None:
        raise UsageError("--worktree is for a new chat; one that is resumed stays where it is")
    name = worktree.new_name() if given["worktree"] == NEW else given["worktree"]
    place = worktree.make(given["cwd"] or here(), name)
    err(f"worktree: {place}, on the branch {worktree.BRANCH}{name}")
    return place


def _print_system_prompt(given: dict[str, Any]) -> None:
    from cass import config, opening, prompt

    found = config.instructions(_home(), opening.workspace(str(given["cwd"] or ".")))
    err(*found.notices)
    out(prompt.system(found.global_text, found.text))


def _one_turn(given: dict[str, Any]) -> int:
    from cass import oneshot, send
    from cass.report import Report

    text = send.text_from(given["prompt"])
    if not text.strip():
        raise UsageError("the prompt is empty")
    schema = _schema(given["schema"]) if given["schema"] else None
    report = Report(given["form"], given["output"])
    how = (given["cwd"], given["ask"], given["attach"], _once, _exchange)
    return oneshot.run(oneshot.Shot(_home(), options(given), report, *how), text, given["resume"], schema)


def _schema(path: "Path") -> "Schema":
    try:
        from cass.schema import Schema
    except ModuleNotFoundError:
        from cass import extras

        raise UsageError(f"--schema needs a package: {extras.adding('schema')}") from None
    return Schema(path)


def _once(*given: Any, **how: Any) -> "tuple[TurnEnd, str]":
    from cass import worker  # heavy: a chat that has one spares it

    _settle()
    return worker.once(*given, **how)


def _exchange(files: "Files", text: str, report: "Report", **how: Any) -> "Answer":
    from cass import exchange

    _settle()
    return exchange.say(files, text, tell=report.record, with_live=True, **how)


def _interactive(given: dict[str, Any]) -> int:
    from cass import launch

    _settle()
    return launch.run(
        _home(), options(given), _compose, resume=given["resume"], cwd=given["cwd"], worker_flags=flags(given)
    )


def _resume(given: dict[str, Any]) -> int:
    """Have a chat of this directory picked; where there is none, say so."""
    from cass import launch, subcommands

    _settle()
    cwd = given["cwd"] or here()
    flags_given = flags({**given, "cwd": None})
    status = launch.resume(_home(), options(given), _pick, cwd=cwd, worker_flags=flags_given)
    if status is None:
        subcommands.print_chats(cwd)
    return status or 0


def _pick(*given: Any) -> int | None:
    from cass.composer import picker  # heavy, as the composer is

    return picker.run(*given)


def _compose(*given: Any, **more: Any) -> int:
    from cass.composer import compose  # heavy: only the child of the launcher pays for it

    _settle()
    return compose.run(*given, **more)


# ---- the other programs ---------------------------------------------------------------------------------------------


@click.command(cls=Program)
@VERSION
@CHAT
@run_options
@click.option("--idle", type=click.FloatRange(0), default=60, metavar="SECONDS", help="End when unneeded for so long.")
@click.option("--detach", is_flag=True, help="Leave this terminal.")
@click.option("--ready-fd", type=int, hidden=True)
def cass_agent(chat: str, idle: float, detach: bool, ready_fd: int | None, **given: Any) -> None:
    """Be the worker of a chat: the only writer of its file."""
    if detach:
        _detach()
    files = find(chat)
    from cass import worker

    _settle()
    worker.run(files, options(given), cwd=given["cwd"], idle_s=idle, ready_fd=ready_fd)


def _detach() -> None:
    """Go on as a process of its own, in a session without a terminal; the one that was started ends."""
    if os.fork():
        os._exit(0)
    os.setsid()


@click.command(cls=Program)
@VERSION
@CHAT
@click.argument("text", metavar="[TEXT|-]", required=False)
@click.option("--wait", is_flag=True, help="Wait for the turn that answers it and print the answer.")
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(0), metavar="SECONDS", help="With --wait: then end with 124."
)
@click.option("--no-start", "start", is_flag=True, flag_value=False, default=True, help="Do not start a worker.")
@click.option("--ask", is_flag=True, help="Approvals are waited for, instead of denied.")
@click.option("--steer", is_flag=True, help="Heard by the running turn before it goes on.")
@click.option("-a", "--attach", multiple=True, metavar="FILE", help="An image that goes with it; again for more.")
@click.option("--id", metavar="ID", help="Id of the message; default: a new one.")
@click.option(
    "--json", "as_json", is_flag=True, help="The id, or the answer and how the turn ended, as one JSON object."
)
@click.pass_context
def cass_send(ctx: click.Context, /, chat: str, text: str | None, **given: Any) -> None:
    """Put one message into a chat and print its id, or the answer."""
    from cass import elder, jsonl, send

    wait, timeout_s, as_json = given.pop("wait"), given.pop("timeout_s"), given.pop("as_json")
    if timeout_s is not None and not wait:
        raise UsageError("--timeout goes with --wait")
    files, message = find(chat), send.text_from(text)
    if elder.wrote(files.chat):
        from cass import heir

        files = heir.of(files, err)
    if attach := given.pop("attach"):
        from cass import attachments

        given["attached"] = attachments.every(files.home, attach)
    if wait:
        from cass.report import Report

        report = Report("json" if as_json else "text")
        ctx.exit(report.finish(files, _exchange(files, message, report, timeout_s=timeout_s, **given)))
    id = given["id"]
    if id is not None:
        from cass import exchange

        id = id if exchange.repeated(files, message, id) is not None else None
    id = id or send.send(files, message, **given)
    out(jsonl.dump({"chat_id": files.chat_id, "id": id}).decode() if as_json else id)


@click.command(cls=Program)
@VERSION
@CHAT
@click.option("--frames", is_flag=True, help="For a composer: JSON frames on standard output.")
@click.option("-f/-F", "--follow/--no-follow", default=None, help="Go on as the chat does; default: on a terminal.")
@click.option("-n", "last", type=click.IntRange(0), metavar="N", help="Begin with the last N messages.")
@click.option("--since", metavar="TIME", help="Begin there: 10m, 2h, 14:30, 2026-06-20.")
@click.option("--full", is_flag=True, help="Results and arguments in full.")
@click.option("--reasoning/--no-reasoning", default=None, help="Show the model's reasoning, or one line about it.")
@click.option("--plain", is_flag=True, help="Text without colours.")
@click.option("--json", is_flag=True, help="The records as they are.")
@click.option("--live", is_flag=True, help="With --json: what is only true for now, too.")
@click.option("--width", type=click.IntRange(10), metavar="COLUMNS", help="Lay out for so many columns.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto")
@click.option("--notify", type=click.Choice(["off", "bell", "all"]), help="When you look elsewhere; default: bell.")
@click.option("--no-hint", "hint", is_flag=True, flag_value=False, default=True, hidden=True)
@click.option("--after", hidden=True, metavar="AT", help="With --frames: go on below that place.")
@click.pass_context
def cass_view(ctx: click.Context, /, chat: str, **given: Any) -> None:
    """Show a chat, and what it does while it does it."""
    from cass.viewer import view

    _settle()
    ctx.exit(view.run(find(chat), view.Options(**given)))


@click.command(cls=Program)
@VERSION
@CHAT
@run_options
@click.pass_context
def cass_compose(ctx: click.Context, /, chat: str, **given: Any) -> None:
    """Write into a chat: keys, draft, history, approvals. What the chat says is shown elsewhere."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("a composer needs a terminal; from a script use: cass-send CHAT TEXT")
    ctx.exit(_compose(find(chat), worker_flags=flags(given)))


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


def main(program: str) -> None:
    """Be one of the programs, with the arguments of this process; what ``bin/`` calls."""
    PROGRAMS[program].main(sys.argv[1:], prog_name=program)


if __name__ == "__main__":  # python -m cass.cli PROGRAM ARGUMENTS
    main(sys.argv.pop(1))
