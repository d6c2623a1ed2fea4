"""The subcommands of `cass`: for chats as a whole, from any shell."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cass import catalogue, commands, listing
from cass.errors import ConfigError, UsageError
from cass.flags import flags
from cass.home import Files, Home
from cass.program import CHAT, Program, Programs, as_path, err, find, here, options, out, run_options

if TYPE_CHECKING:
    from cass.dialogue import Dialogue
    from cass.fleet import Runner
    from cass.standing import Standing

SUBCOMMANDS: dict[str, click.Command] = {}
"""By name; their help stands in the table of `commands`."""


def _subcommand(name: str, **more: Any) -> Callable[[Callable[..., None]], click.Command]:
    text = next(command.help for command in commands.SUBCOMMANDS if command.name == name)

    def add(function: Callable[..., None]) -> click.Command:
        SUBCOMMANDS[name] = click.command(name, cls=Program, help=f"{text[0].upper()}{text[1:]}.", **more)(function)
        return SUBCOMMANDS[name]

    return add


_JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")


@_subcommand("ls")
@click.argument("chat", metavar="[CHAT]", required=False)
@click.option("--all", "everything", is_flag=True, help="Those of every directory.")
@click.option("--tree", "as_tree", is_flag=True, help="Agents and branches below the chat they came from; or CHAT's.")
@_JSON
def _ls(chat: str | None, everything: bool, as_tree: bool, as_json: bool) -> None:
    if chat is None:
        print_chats(here(), everything=everything, as_json=as_json, as_tree=as_tree)
    elif not as_tree:
        raise UsageError("a CHAT goes with --tree: what came from it")
    else:
        found = catalogue.summaries(Home.find(), agents=True)
        _print_rows(listing.below(listing.tree(found), find(chat).chat_id), {}, as_json=as_json)


def print_chats(cwd: Path, *, everything: bool = False, as_json: bool = False, as_tree: bool = False) -> None:
    found = catalogue.summaries(Home.find(), None if everything else cwd, agents=True)
    rows = listing.tree(found) if as_tree else [(0, s) for s in found] if as_json else listing.persons(found)
    if rows or as_json:
        counts = {} if as_tree else listing.agents(found)
        _print_rows(rows, counts, as_json=as_json, cwd_shown=everything)
    elif not everything and (others := len(catalogue.summaries(Home.find()))):
        err(f"no chats in {cwd}; {others} elsewhere: cass ls --all")
    else:
        err("no chats yet; start one with: cass")


def _print_rows(rows: list[listing.Row], counts: dict[str, int], *, as_json: bool, cwd_shown: bool = False) -> None:
    if as_json:
        out(listing.as_json([summary for _, summary in rows]))
    else:
        out(listing.table(Home.find(), rows, _look, counts, cwd_shown=cwd_shown))


@_subcommand("status")
@click.argument("chat", metavar="[CHAT]", required=False)
@_JSON
@click.option("--tmux", "for_tmux", is_flag=True, help="Short, for #(cass status --tmux) in tmux's status line.")
def _status(chat: str | None, as_json: bool, for_tmux: bool) -> None:
    found = [find(chat)] if chat else listing.every(Home.find())
    if for_tmux:
        out(listing.tmux(found, _look))
        return
    out(listing.statuses(found, _look, as_json=as_json, named=bool(chat)))


def _look(files: Files) -> "Standing":
    from cass import standing  # only where a worker runs

    return standing.look(files)


@_subcommand("branch")
@CHAT
@click.argument("point", metavar="[POINT]", required=False)
@click.option("--list", "lists", is_flag=True, help="List the points: the numbers that stand for POINT.")
@click.option("--restore", "restores", is_flag=True, help="Files that write and edit changed go back as well.")
@click.option("--files-only", is_flag=True, help="Restore the files and make no chat.")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@click.option("--dry-run", "only_plans", is_flag=True, help="With --restore: say what would be done.")
@_JSON
def _branch(chat: str, point: str | None, lists: bool, files_only: bool, **given: bool) -> None:
    from cass import branching

    if lists:
        branching.show(find(chat), as_json=given["as_json"])
        return
    given["restores"] |= files_only
    branching.go(find(chat), point, branching.Wanted(branches=not files_only, **given))


@_subcommand("batch")
@click.argument("tasks", metavar="TASKS.jsonl")
@click.option("-j", "--jobs", type=click.IntRange(1), default=4, metavar="N", help="So many at a time. [4]")
@click.option("-o", "--output", callback=as_path, metavar="FILE", help="The results go there.")
@click.option("--again", is_flag=True, help="Run what failed once more, in a new chat.")
@click.option("--dask", "address", metavar="ADDRESS", help="On the workers of that dask scheduler, not here.")
@run_options
@click.pass_context
def _batch(ctx: click.Context, /, tasks: str, output: Path | None, again: bool, **given: Any) -> None:
    from cass import fleet

    runner = _runner(given.pop("jobs"), given.pop("address"))
    options = {name: value for name, value in given.items() if value is not None and name != "cwd"}
    cwd = Path(given["cwd"] or ".").absolute()
    wanted = fleet.Wanted(tasks, output, again)
    ctx.exit(fleet.run(Home.find(), wanted, cwd, options, runner, _gauge()))


def _runner(jobs: int, address: str | None) -> "Runner":
    """What carries the tasks out."""
    from cass import fleet

    if address is None:
        return fleet.local(Home.find(), jobs)
    try:
        from cass import scheduler
    except ModuleNotFoundError:
        from cass import extras

        raise UsageError(f"--dask needs a package: {extras.adding('dask')}") from None
    return scheduler.runner(Home.find(), address)


def _gauge() -> Any:
    """What shows on a terminal how far a batch is."""
    if not sys.stderr.isatty():
        return None
    from cass import gauge  # it draws with rich, which is heavy

    return gauge.gauge


@_subcommand("prune")
@click.option("--older-than", default="30d", metavar="TIME", help="What counts as old: 12h, 30d, 2026-06-20. [30d]")
@click.option("--chats", is_flag=True, help="Remove old chats too.")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@click.option("--dry-run", "only_says", is_flag=True, help="Say what would be removed.")
def _prune(older_than: str, **given: bool) -> None:
    from datetime import datetime

    from cass import prune
    from cass.viewer.since import since as moment

    prune.prune(Home.find(), moment(older_than, datetime.now()), **given)


@_subcommand("wait")
@CHAT
@click.option("--timeout", type=click.FloatRange(0), metavar="SECONDS", help="Give up, with status 124.")
@click.option(
    "--until",
    type=click.Choice(["idle", "approval", "message"]),
    help="approval: it asks something; message: it has answered; each ends with 1 where the chat is done without.",
)
@click.pass_context
def _wait(ctx: click.Context, chat: str, timeout: float | None, until: str | None) -> None:
    from cass import outlook, waiting

    word, end = waiting.first_of(find(chat), {until or "idle"}, timeout)
    if until not in (None, "idle"):
        if word != until:
            err(f"the chat has nothing more to do, and no {until} came")
        ctx.exit(0 if word == until else 1)
    if end is not None and end.error:
        err(f"{end.outcome}: {end.error}")
    ctx.exit(outlook.EXITS[end.outcome] if end is not None else 0)


@_subcommand("grep")
@click.argument("pattern", metavar="PATTERN")
@click.option("-E", "--regex", is_flag=True, help="PATTERN is a regular expression, as Python has them.")
@click.option("-s", "--case-sensitive", is_flag=True, help="Capitals count.")
@click.option("-l", "--list", "lists", is_flag=True, help="Only the ids of the chats, each once.")
@click.option("--here", "only_here", is_flag=True, help="Only chats of this directory.")
@_JSON
@click.pass_context
def _grep(ctx: click.Context, /, pattern: str, only_here: bool, lists: bool, as_json: bool, **how: bool) -> None:
    from cass import jsonl, passages

    wanted = passages.Wanted(pattern, is_regex=how["regex"], case_sensitive=how["case_sensitive"])
    chats = catalogue.summaries(Home.find(), here() if only_here else None, agents=True)
    count, last = 0, ""
    for found in passages.search(Home.find(), chats, wanted):
        count += 1
        if as_json:
            out(jsonl.dump(found._asdict()).decode())
        elif not lists:
            out(passages.line(found, listing.columns()))
        elif found.chat_id != last:
            out(found.chat_id)
        last = found.chat_id
    ctx.exit(0 if count else 1)


@_subcommand("cancel")
@CHAT
def _cancel(chat: str) -> None:
    from cass import send

    send.command(find(chat), {"type": "cancel"})


@_subcommand("stop")
@CHAT
@click.option("--timeout", type=click.FloatRange(0), default=10, metavar="SECONDS", help="How long to wait for it.")
def _stop(chat: str, timeout: float) -> None:
    from cass import send

    send.stop(find(chat), timeout)


@_subcommand("approve")
@CHAT
@click.argument("request", metavar="[REQUEST]", required=False)
@click.option("--always", is_flag=True, help="Give the rule it names, for the life of the worker.")
def _approve(chat: str, request: str | None, always: bool) -> None:
    from cass import verdict

    verdict.give(find(chat), request, approve=True, always=always)


@_subcommand("deny")
@CHAT
@click.argument("request", metavar="[REQUEST]", required=False)
@click.option("--reason", help="What the model is told.")
def _deny(chat: str, request: str | None, reason: str | None) -> None:
    from cass import verdict

    verdict.give(find(chat), request, approve=False, reason=reason)


@_subcommand("stats")
@click.argument("chat", metavar="[CHAT]", required=False)
@click.option("--by", type=click.Choice(["day", "model", "directory", "chat"]), help="That table alone, whole.")
@click.option("--since", metavar="TIME", help="Count from there: 10m, 2h, 7d, 14:30, 2026-06-20.")
@_JSON
@click.option("--width", type=click.IntRange(20), hidden=True, help="Lay out for so many columns.")
def _stats(chat: str | None, by: str | None, since: str | None, as_json: bool, width: int | None) -> None:
    from datetime import datetime

    from cass import stats
    from cass.viewer.since import since as moment

    begin = moment(since, datetime.now()) if since else ""
    home = Home.find()
    found = stats.gather(home, [find(chat)] if chat else stats.every(home), begin)
    out(
        found.as_json()
        if as_json
        else stats.chart(found, [by] if by else stats.GROUPS[:2] if chat else stats.GROUPS, width or listing.columns())
    )


@_subcommand("check")
@click.option("--online", is_flag=True, help="Ask the provider's server for its models, too.")
@click.option("--rules", "question", metavar="'TOOL: TEXT'", help="Explain what would be decided about that call here.")
@_JSON
@click.pass_context
def _check(ctx: click.Context, online: bool, question: str | None, as_json: bool) -> None:
    from cass import check

    if question is not None:
        check.explain(question, Home.find(), here(), as_json=as_json)
    else:
        ctx.exit(check.run(Home.find(), here(), online=online, as_json=as_json))


@_subcommand("trust")
@click.argument("directory", metavar="[DIR]", required=False)
@click.option("--list", "lists", is_flag=True, help="The directories that you trust.")
@click.option("--remove", is_flag=True, help="Trust it no longer.")
def _trust(directory: str | None, lists: bool, remove: bool) -> None:
    from cass import review

    root = Path(directory).expanduser().resolve() if directory else here()
    if lists:
        out(review.listed(Home.find()) or "no directory is trusted")
    elif remove:
        review.take(root, Home.find())
    else:
        review.give(root, Home.find())


@_subcommand("acp")
@run_options
def _acp(**given: Any) -> None:
    try:
        from cass.acp import server
    except ModuleNotFoundError as e:
        from cass import extras

        raise ConfigError(f"cass acp needs a package: {extras.adding('acp')}") from e
    if sys.stdin.isatty():
        err("cass acp waits for the JSON-RPC of an editor, which starts it itself; Ctrl-C ends it")
    server.run(Home.find(), options(given), flags(given | {"mode": None, "cwd": None}))


_MCP = Programs("mcp", help="List, add, remove and test MCP servers.")
SUBCOMMANDS["mcp"] = _MCP


@_MCP.command("add", cls=Program, context_settings={"allow_interspersed_args": False})
@click.option("--url", metavar="URL", help="Of a server that is reached over HTTP, in place of COMMAND.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="Sent with each request to URL.")
@click.option("--env", "environ", multiple=True, metavar="NAME=VALUE", help="A variable for COMMAND, such as K='${K}'.")
@click.option("--no-test", is_flag=True, help="Do not start it first.")
@click.argument("name", metavar="NAME")
@click.argument("command", metavar="[COMMAND]", nargs=-1, type=click.UNPROCESSED)
def _mcp_add(name: str, command: tuple[str, ...], no_test: bool, **given: Any) -> None:
    """Try a server, and write it down in ~/.cass/mcp.json. Options stand before NAME, arguments behind COMMAND."""
    from cass.mcp import manage

    out(manage.add(Home.find(), name, manage.entry(command, **given), tries=not no_test))


@_MCP.command("list", cls=Program)
@_JSON
@click.option("--chat", metavar="CHAT", hidden=True, help="How they are in the worker of that chat, too.")
def _mcp_list(as_json: bool, chat: str | None) -> None:
    """Show servers and their tools, as last listed."""
    from cass.mcp import manage

    if as_json:
        text, notices = manage.as_json(Home.find(), here())
        err(*notices)
        out(text)
    else:
        out(manage.shown(Home.find(), here(), find(chat) if chat else None))


@_MCP.command("remove", cls=Program)
@click.argument("name", metavar="NAME")
def _mcp_remove(name: str) -> None:
    """Take a server out of ~/.cass/mcp.json."""
    from cass.mcp import manage

    manage.remove(Home.find(), name)


@_MCP.command("test", cls=Program)
@click.argument("name", metavar="[NAME]", required=False)
def _mcp_test(name: str | None) -> None:
    """Start all servers, or one, and show their tools."""
    from cass.mcp import manage

    manage.test(Home.find(), here(), name, out)


@_subcommand("setup")
@click.option("-P", "--provider", metavar="ID", help="Such as openai or ollama; default: you are asked.")
@click.option("-m", "--model", metavar="MODEL", help="Model to ask; default: picked from what the server lists.")
@click.option("--base-url", metavar="URL", help="Address of another server.")
@click.option("--api-key-env", metavar="NAME", help="Variable that holds the API key.")
@click.option("--yes", is_flag=True, help="Write without asking.")
def _setup(yes: bool, **wanted: str | None) -> None:
    from cass import setup

    setup.setup(Home.find(), setup.Wanted(**wanted), os.environ, _person(), out, yes=yes)


@_subcommand("local", context_settings={"ignore_unknown_options": True})
@click.argument("file", metavar="MODEL.gguf", type=click.Path(exists=True, dir_okay=False, resolve_path=True))
@click.argument("options", metavar="[OPTIONS OF CASS]", nargs=-1, type=click.UNPROCESSED)
def _local(file: str, options: tuple[str, ...]) -> None:
    # Be ``cass`` anew: the launcher forks before anything is loaded.
    arguments = ["--provider", "local", "--model", file, *options]
    from cass import itself

    os.execv(sys.executable, itself.argv("cass", *arguments))


@_subcommand("login")
@click.argument("provider", metavar="PROVIDER")
@click.option("--api-key-env", metavar="NAME", help="Keep the name of the variable that holds it, not the key.")
@click.option("--file", "place", flag_value="file", help="Keep the key in providers.json, readable by you alone.")
@click.option("--keyring", "place", flag_value="keyring", help="Keep the key in the system's keyring.")
def _login(provider: str, api_key_env: str | None, place: str | None) -> None:
    from cass import setup

    setup.login(Home.find(), provider, os.environ, _person(), sys.stdin, out, api_key_env=api_key_env, place=place)


@_subcommand("logout")
@click.argument("provider", metavar="PROVIDER")
def _logout(provider: str) -> None:
    from cass import setup

    setup.logout(Home.find(), provider, os.environ, out)


def _person() -> "Dialogue | None":
    """Whoever can be asked."""
    from cass.dialogue import Dialogue

    return Dialogue() if sys.stdin.isatty() and sys.stderr.isatty() else None


@_subcommand("export")
@CHAT
@click.option("--format", "form", type=click.Choice(["md", "html", "json"]), help="Default: as FILE ends, else md.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write there.")
@click.option("--redact", is_flag=True, help="Hide what looks like a key, a token or a password.")
def _export(chat: str, form: str | None, output: Path | None, redact: bool) -> None:
    from cass import export

    text = export.render(find(chat), form or export.form_of(output), redact=redact, say=err)
    out(text) if output in (None, Path("-")) else export.save(text, output)


@_subcommand("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def _completion(ctx: click.Context, shell: str) -> None:
    from cass import completions, synopsis

    out(completions.SHELLS[shell](synopsis.programs(ctx.find_root().obj)).removesuffix("\n"))


@_subcommand("paths")
@click.argument("chat", metavar="[CHAT]", required=False)
def _paths(chat: str | None) -> None:
    home = Home.find()
    places = {"home": home.root, "config": home.config, "conversations": home.conversations}
    if chat:
        files = find(chat)
        names = ("chat", "run", "bell", "inbox", "socket", "live", "lock", "log")
        places = {name: getattr(files, name) for name in names}
    for name, path in places.items():
        out(f"{name:14} {path}")
