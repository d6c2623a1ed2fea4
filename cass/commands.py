"""Commands: the one table of all that can be typed or pressed; help, completion and key bindings are made from it.

Only what works stands here. A row says what a person reads; the module that obeys it looks it up by `name` or `does`.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple


class Runs(StrEnum):
    """Who carries a command out."""

    COMPOSER = "composer"
    AT_ONCE = "worker at once"
    IN_LINE = "worker in line"
    """In its turn among the waiting messages."""
    NO_WORKER = "no worker"
    """The command itself, from the files; a worker need not run."""


class Command(NamedTuple):
    name: str
    help: str
    """One line; begins with a verb, has no full stop."""
    runs: Runs
    arguments: str = ""
    """As help shows them: CAPITALS stand for a value, [] for what may be left out."""
    aliases: tuple[str, ...] = ()

    @property
    def usage(self) -> str:
        return f"{self.name} {self.arguments}".rstrip()


SLASH = (
    Command("/help", "show keys and commands", Runs.COMPOSER, aliases=("/?",)),
    Command("/new", "start a new chat in this directory", Runs.COMPOSER),
    Command("/clear", "forget the conversation so far; the file keeps it", Runs.IN_LINE),
    Command("/compact", "replace the conversation by a summary of it", Runs.IN_LINE, "[FOCUS]"),
    Command("/queue", "pick what waits and take it back", Runs.COMPOSER),
    Command("/resume", "pick a chat of this directory, or go to one", Runs.COMPOSER, "[CHAT]"),
    Command("/agents", "pick an agent of this chat and look at what it does", Runs.COMPOSER),
    Command("/branch", "go on from an earlier point, in a new chat", Runs.COMPOSER),
    Command("/restore", "take files back to an earlier point of this chat", Runs.COMPOSER),
    Command("/model", "pick a model, or use one from now on", Runs.IN_LINE, "[[PROVIDER] MODEL]"),
    Command("/effort", "set how much the model reasons", Runs.IN_LINE, "LEVEL"),
    Command("/mode", "show the access mode, or change it", Runs.AT_ONCE, "[MODE]"),
    Command("/status", "say what the worker does and what waits", Runs.COMPOSER),
    Command("/tokens", "show the usage of the last turn", Runs.COMPOSER),
    Command("/stats", "show what this chat has used and cost", Runs.COMPOSER),
    Command("/mcp", "show the MCP servers, how they are, and their tools", Runs.COMPOSER),
    Command("/login", "set a provider up and go on with it", Runs.COMPOSER, "[PROVIDER]"),
    Command("/logout", "forget the key of a provider", Runs.COMPOSER, "PROVIDER"),
    Command("/save", "say where the chat is; it is always saved", Runs.COMPOSER),
    Command("/export", "write the chat as Markdown, HTML or JSON", Runs.COMPOSER, "[FILE]"),
    Command("/copy", "copy the last answer to the clipboard", Runs.COMPOSER),
    Command("/exit", "leave; the worker finishes its turn", Runs.COMPOSER, aliases=("/quit",)),
)

SUBCOMMANDS = (
    Command("ls", "list chats, the last used first", Runs.NO_WORKER, aliases=("--list-chats", "--sessions")),
    Command("status", "show what each chat does, and what waits for you", Runs.NO_WORKER, "[CHAT]"),
    Command("batch", "run many prompts from a file, each in a chat of its own", Runs.NO_WORKER, "TASKS.jsonl"),
    Command("branch", "go on from an earlier point, in a new chat", Runs.NO_WORKER, "CHAT [POINT]"),
    Command("prune", "remove what nobody needs any more, after saying what", Runs.NO_WORKER),
    Command("wait", "wait until a chat has no more to do", Runs.NO_WORKER, "CHAT"),
    Command("grep", "find what was said in any chat", Runs.NO_WORKER, "PATTERN"),
    Command("approve", "allow what a chat asks", Runs.AT_ONCE, "CHAT [REQUEST]"),
    Command("deny", "refuse what a chat asks", Runs.AT_ONCE, "CHAT [REQUEST]"),
    Command("cancel", "interrupt the running turn", Runs.AT_ONCE, "CHAT"),
    Command("stop", "end the worker of a chat", Runs.AT_ONCE, "CHAT"),
    Command("stats", "show what chats have used and cost", Runs.NO_WORKER, "[CHAT]"),
    Command("check", "look whether everything is there and right", Runs.NO_WORKER),
    Command("trust", "look at what this project would configure, and trust it", Runs.NO_WORKER, "[DIR]"),
    Command("acp", "serve an editor that speaks the Agent Client Protocol", Runs.NO_WORKER),
    Command("mcp", "list, add, remove and test MCP servers", Runs.NO_WORKER, "add|list|remove|test"),
    Command("setup", "choose provider and model, try them, and write them down", Runs.NO_WORKER),
    Command("local", "chat with a model from a file, through a server of its own", Runs.NO_WORKER, "MODEL.gguf"),
    Command("login", "keep the key of a provider, once it works", Runs.NO_WORKER, "PROVIDER"),
    Command("logout", "forget the key of a provider", Runs.NO_WORKER, "PROVIDER"),
    Command("export", "write a chat as Markdown, HTML or JSON", Runs.NO_WORKER, "CHAT"),
    Command("completion", "print the completion script of a shell", Runs.NO_WORKER, "SHELL"),
    Command("paths", "print where the files of a chat are", Runs.NO_WORKER, "[CHAT]"),
)


class At(StrEnum):
    """What the keyboard is at."""

    DRAFT = "draft"
    QUESTION = "question"
    """An approval, from a quiet keyboard; every other key still goes to the draft."""
    PICKER = "picker"
    """A list to choose from; what is typed filters it."""
    TRANSCRIPT = "transcript"
    """The scrolling page."""


class Key(NamedTuple):
    name: str
    """As a person reads it on the keyboard."""
    does: str
    """The method of whoever has the keyboard: `Keyboard`, `Picker` or `Page` of the composer."""
    help: str
    presses: tuple[tuple[str, ...], ...]
    """Each way to press it, in prompt_toolkit's names."""
    short: str = ""
    """Its word in the help line below the input; "" keeps it out."""
    at: At = At.DRAFT


KEYS = (
    Key("Enter", "enter", "send; while a turn runs, queue", (("enter",),)),
    Key("Shift-Tab", "next_mode", "next access mode, while idle", (("s-tab",),), "mode"),
    Key("Ctrl-J", "newline", "start a new line", (("c-j",),), "newline"),
    Key("Alt-Enter", "newline", "start a new line", (("escape", "enter"), ("escape", "c-j"))),
    Key("Ctrl-S", "steer", "send at once: the running turn takes it up next", (("c-s",),)),
    Key("Ctrl-O", "tool_output", "show tool output in full, or short", (("c-o",),), "tool output"),
    Key("Ctrl-T", "reasoning", "show or hide the model's reasoning", (("c-t",),)),
    Key("Alt-T", "next_effort", "next reasoning effort: low, medium, high, off", (("escape", "t"),)),
    Key("Esc", "escape", "take waiting messages back and interrupt the turn", (("escape",),)),
    Key("Esc Esc", "go_back", "while idle: go on from an earlier point, as /branch", ()),
    Key("Ctrl-C", "clear_or_leave", "interrupt; while idle clear, and again to leave", (("c-c",),), "clear/exit"),
    Key("Ctrl-D", "leave_if_empty", "leave, on an empty line", (("c-d",),)),
    Key("Ctrl-R", "search", "search the history", (("c-r",),)),
    Key("Up", "up", "on an empty line: the waiting message, or the last", (("up",),)),
    Key("Tab", "complete", "complete a /command or an @path", (("tab",),)),
    Key("Ctrl-G", "edit", "write the message in $VISUAL or $EDITOR", (("c-g",),)),
    Key("Ctrl-V", "paste_image", "attach the image on the clipboard", (("c-v",),)),
    Key("Ctrl-Z", "suspend", "suspend; fg comes back", (("c-z",),)),
    Key("PageUp", "page_up", "read back in the transcript", (("pageup",),)),
    Key("PageDown", "page_down", "read on in the transcript", (("pagedown",),)),
    Key("y", "approve", "allow it once; or give the rule that is shown", (("y",),), at=At.QUESTION),
    Key("n", "deny", "deny it, with a reason or none", (("n",),), at=At.QUESTION),
    Key("a", "always", "show the rule that would always allow it", (("a",),), at=At.QUESTION),
    Key("PageUp", "question_up", "read back in what is asked, where it is long", (("pageup",),), at=At.QUESTION),
    Key("PageDown", "question_down", "read on in what is asked", (("pagedown",),), at=At.QUESTION),
    Key("Up", "up", "the choice above", (("up",), ("c-p",)), at=At.PICKER),
    Key("Down", "down", "the choice below", (("down",), ("c-n",)), at=At.PICKER),
    Key("PageUp", "page_up", "a screen of choices up", (("pageup",),), at=At.PICKER),
    Key("PageDown", "page_down", "a screen of choices down", (("pagedown",),), at=At.PICKER),
    Key("Enter", "take", "take it", (("enter",),), at=At.PICKER),
    Key("Backspace", "rub_out", "filter by less", (("c-h",),), at=At.PICKER),
    Key("Ctrl-U", "clear", "filter by nothing", (("c-u",),), at=At.PICKER),
    Key("Esc", "leave", "take none", (("escape",), ("c-c",), ("c-d",)), at=At.PICKER),
    Key("PageUp", "page_up", "a screen up", (("pageup",), ("b",)), at=At.TRANSCRIPT),
    Key("PageDown", "page_down", "a screen down", (("pagedown",), (" ",)), at=At.TRANSCRIPT),
    Key("Up", "up", "a line up", (("up",), ("k",)), at=At.TRANSCRIPT),
    Key("Down", "down", "a line down", (("down",), ("j",)), at=At.TRANSCRIPT),
    Key("Home", "top_of_all", "to the beginning", (("home",), ("g",)), at=At.TRANSCRIPT),
    Key(
        "Ctrl-O", "tool_output", "the last turn again, its tool output in full or short", (("c-o",),), at=At.TRANSCRIPT
    ),
    Key("Ctrl-T", "reasoning", "the last turn again, with reasoning or without", (("c-t",),), at=At.TRANSCRIPT),
    Key("q, Esc, End", "leave", "back to the draft", (("q",), ("escape",), ("end",), ("c-c",)), at=At.TRANSCRIPT),
)

PREFIXES = (
    ("!COMMAND", "run a command in this terminal and send its output"),
    ("!!COMMAND", "run a command in this terminal only"),
    ("@PATH", "name a file; Tab completes; an image is sent along"),
)

HELP_LINE = tuple(f"{key.name} {key.short}" for key in KEYS if key.short)
"""What stands below the input, joined by ``·``, as long as there is room."""


def is_command(text: str) -> bool:
    """Whether a composer takes `text` for a command: one line, its first word a slash and letters. A path is text."""
    word = text.split(maxsplit=1)[0] if text.startswith("/") else ""
    return "\n" not in text.strip() and (word == "/?" or word[1:].isalpha())


def find(word: str) -> Command | None:
    """The slash command called `word`, by name or alias."""
    return next((command for command in SLASH if word == command.name or word in command.aliases), None)


def begun(word: str, own: Iterable[Command] = ()) -> list[Command]:
    """Slash commands that `word` is the beginning of, those of the person's `own` too."""
    offered = [*SLASH, *own]
    return [command for command in offered if any(name.startswith(word) for name in (command.name, *command.aliases))]


def completed(line: str, own: Iterable[Command] = ()) -> str:
    """`line` with its command's whole name, where it is the beginning of one and of no other."""
    word, _, argument = line.strip().partition(" ")
    own = list(own)
    if find(word) or any(word == command.name for command in own) or len(found := begun(word, own)) != 1:
        return line
    return f"{found[0].name} {argument}".rstrip()


def keys_at(at: At) -> list[Key]:
    """The keys of one place."""
    return [key for key in KEYS if key.at is at]


def help_rows() -> Iterator[tuple[str, str]]:
    """Keys, prefixes and slash commands as two columns; ("", "") between groups."""
    yield from ((key.name, key.help) for key in keys_at(At.DRAFT))
    yield "", ""
    yield from ((key.name, key.help) for key in keys_at(At.QUESTION))
    yield "", ""
    yield from PREFIXES
    yield "", ""
    yield from ((command.usage, command.help) for command in SLASH)
