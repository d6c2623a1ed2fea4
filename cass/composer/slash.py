"""The slash commands, as a composer obeys them. Each method is named as its row in `commands`."""

import base64
import os
import shutil
import subprocess
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol

from cass import catalogue, commands, listing, standing
from cass.access import Mode
from cass.amounts import columns, money
from cass.composer import agents, subcommand
from cass.composer.branching import Branching
from cass.composer.choice import Choice
from cass.composer.seat import Seat
from cass.composer.transcript import Transcript
from cass.errors import CassError, UsageError
from cass.visible import safe, safe_line


class Composing(Protocol):
    """What a command may use of the composer."""

    seat: Seat
    transcript: Transcript
    branching: Branching
    choice: Choice

    @property
    def state(self) -> str:
        """What the worker does, or that it is starting, or stopped."""

    def own_commands(self) -> list[commands.Command]: ...
    def say(self, command: str, text: str) -> None:
        """Print lines of text above the input, the answer to `command`."""

    def hint(self, text: str) -> None:
        """Show a line for a few seconds."""

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` beside the keyboard."""

    def leave(self, *switch_to: str) -> None:
        """Leave; with arguments go on with ``cass ARGUMENTS``."""

    def pick(self, title: str, choices: Sequence[str], then: Callable[[int], None], at: int = 0) -> None:
        """Have the person choose one of `choices`, beginning at one, and go on with its index."""

    def take_back(self, name: str) -> None:
        """Take one of what waits back into the draft."""

    def send_to_terminal(self, control: str) -> None: ...


class Slash:
    def __init__(self, composer: Composing) -> None:
        self._composer = composer
        self._line = ""
        """What is carried out."""

    def run(self, line: str) -> None:
        """Carry out one command. Raises CassError when there is none, or it cannot be done."""
        word, _, argument = line.strip().partition(" ")
        command = commands.find(word)
        if command is None:
            if meant := commands.begun(word, self._composer.own_commands()):
                raise UsageError(f"{word} may be {' or '.join(one.name for one in meant)}")
            raise UsageError(f"no command {word}; /help lists them, a space in front makes it a message")
        argument = argument.strip()
        if argument and not command.arguments:
            raise UsageError(f"{command.name} takes no argument")
        self._line = f"{command.name} {argument}".rstrip()
        method: Callable[[str], None] = getattr(self, command.name[1:])
        method(argument)

    def _say(self, text: str) -> None:
        self._composer.say(self._line, text)

    def help(self, _: str) -> None:
        own = [(command.usage, safe_line(command.help)) for command in self._composer.own_commands()]
        self._say(columns([*commands.help_rows(), *([("", ""), *own] if own else [])]))

    def new(self, _: str) -> None:
        self._composer.leave("--cwd", self._composer.seat.standing.cwd or os.getcwd())

    def resume(self, chat_id: str) -> None:
        seat = self._composer.seat
        if chat_id:
            found = catalogue.find(seat.files.home, chat_id, Path(seat.standing.cwd or os.getcwd()))
            self._composer.leave("--resume", found.chat_id)
            return
        here = Path(seat.standing.cwd or os.getcwd())
        others = [s for s in catalogue.summaries(seat.files.home, here) if s.chat_id != seat.files.chat_id]
        if not others:
            self._composer.hint("there is no other chat of this directory")
            return
        self._composer.pick(
            "go to a chat",
            listing.choices(seat.files.home, others, standing.look),
            lambda n: self._composer.leave("--resume", others[n].chat_id),
        )

    def agents(self, _: str) -> None:
        agents.pick(self._composer, self._line)

    def branch(self, _: str) -> None:
        self._composer.branching.branch()

    def restore(self, _: str) -> None:
        self._composer.branching.restore()

    def queue(self, _: str) -> None:
        texts = self._composer.seat.waiting()
        if not texts:
            self._composer.hint("nothing waits")
            return
        names = self._composer.seat.waiting_names()
        self._composer.pick(
            "take back what waits",
            [text[:1000] for text in texts],
            lambda n: self._composer.take_back(names[n]),
            len(texts) - 1,
        )

    def clear(self, _: str) -> None:
        is_next = not self._composer.seat.is_busy  # else it stands in the queue
        self._composer.seat.order("clear")
        if is_next:
            self._composer.hint("the model forgets what was said so far; the chat file keeps it")

    def compact(self, focus: str) -> None:
        self._composer.seat.order("compact", **({"focus": focus} if focus else {}))

    def model(self, name: str) -> None:
        if not name:
            self._composer.choice.pick_model()
            return
        *provider, model = name.split()
        if len(provider) > 1:
            raise UsageError("/model takes a model, or a provider and a model")
        self._composer.seat.order("model", model=model, **({"provider": provider[0]} if provider else {}))

    def effort(self, level: str) -> None:
        if not level:
            raise UsageError("/effort needs a level, such as low, medium or high")
        self._composer.seat.order("effort", effort=level)

    def mode(self, mode: str) -> None:
        if not mode:
            self._say(f"  {self._composer.seat.standing.mode or 'not known before the worker runs'}\n")
            return
        try:
            self._composer.choice.mode(Mode(mode))
        except ValueError:
            raise UsageError(f"no mode {mode}; there are {', '.join(Mode)}") from None

    def status(self, _: str) -> None:
        seat, now = self._composer.seat, self._composer.seat.standing
        unknown = "not known before the worker runs"
        state = standing.words(self._composer.state)
        self._say(
            columns(
                [
                    ("chat", seat.files.chat_id),
                    ("workspace", safe_line(now.cwd)),
                    ("worker", f"{state}; the next message starts it" if state == standing.STOPPED else state),
                    ("mode", now.mode or unknown),
                    ("model", safe_line(f"{now.provider}: {now.model}") if now.model else unknown),
                    ("context", _context(now) if now.limit else unknown),
                    ("cost", _cost(now.cost)),
                    ("waiting", str(len(seat.waiting()))),
                ]
            )
        )

    def tokens(self, _: str) -> None:
        now = self._composer.seat.standing
        usage = now.usage
        if usage is None:
            self._say("  no turn has told its usage yet\n")
            return
        cached = f" ({usage.cache_read:,} from the cache)" if usage.cache_read else ""
        reasoning = f" ({usage.reasoning:,} of reasoning)" if usage.reasoning else ""
        rows = [("input", f"{usage.input:,} tokens{cached}"), ("output", f"{usage.output:,} tokens{reasoning}")]
        rows.append(("cost", _cost(usage.cost)))
        if now.cost is not None:
            rows.append(("the chat", f"{money(now.cost)} so far"))
        if now.used is not None and now.limit:
            rows.append(("context", _context(now)))
        self._say(columns(rows))

    def stats(self, _: str) -> None:
        width = str(listing.columns() - 2)
        self._show("stats", self._composer.seat.files.chat_id, "--width", width, end="\n  all chats: cass stats\n")

    def mcp(self, _: str) -> None:
        self._show("mcp", "list", "--chat", self._composer.seat.files.chat_id)

    def _show(self, *words: str, end: str = "") -> None:
        """Show what ``cass WORDS`` prints in the workspace, under the command that was typed."""
        self._composer.do(subcommand.hinting(self._shown(self._line, words, end), self._composer.hint))

    async def _shown(self, line: str, words: Sequence[str], end: str) -> None:
        seat = self._composer.seat
        said = await subcommand.run(seat.files, *words, cwd=seat.standing.cwd or os.getcwd())
        rows = safe(said.decode("utf-8", "replace")).rstrip("\n").split("\n")
        self._composer.say(line, "".join(f"  {row}".rstrip() + "\n" for row in rows) + end)

    def login(self, provider: str) -> None:
        self._composer.choice.configure(provider)

    def logout(self, provider: str) -> None:
        if not provider:
            raise UsageError("/logout needs a provider")
        self._composer.choice.forget_key(provider)

    def save(self, _: str) -> None:
        self._say(f"  saved all along: {safe_line(str(self._composer.seat.files.chat))}\n")

    def export(self, file: str) -> None:
        self._composer.do(subcommand.hinting(self._export(file, self._line), self._composer.hint))

    async def _export(self, file: str, line: str) -> None:
        seat = self._composer.seat
        workspace = seat.standing.cwd or os.getcwd()
        path = os.path.join(workspace, os.path.expanduser(file or f"{seat.files.chat_id}.md"))
        await subcommand.run(seat.files, "export", seat.files.chat_id, "--output", path, cwd=workspace)
        self._composer.say(line, f"  written to {safe_line(path)}\n")

    def copy(self, _: str) -> None:
        """By tmux's own command inside tmux, which takes no OSC 52 from programs by default; else by OSC 52."""
        answer = self._composer.seat.standing.answer
        if not answer:
            self._composer.hint("there is no answer to copy yet")
            return
        if os.environ.get("TMUX") and shutil.which("tmux"):
            done = subprocess.run(["tmux", "load-buffer", "-w", "-"], input=answer.encode(), capture_output=True)
            if done.returncode:
                raise CassError(f"tmux load-buffer: {done.stderr.decode('utf-8', 'replace').strip()}")
        else:
            self._composer.send_to_terminal(f"\x1b]52;c;{base64.b64encode(answer.encode()).decode()}\a")
        self._composer.hint("the last answer is on the clipboard, where the terminal allows it")

    def exit(self, _: str) -> None:
        self._composer.leave()


def _cost(usd: float | None) -> str:
    return "not known" if usd is None else f"{money(usd)}, at list prices"


def _context(now: standing.Standing) -> str:
    """What is in use of the context, and what of that is a guess."""
    limit = f"{now.limit:,} tokens" + (" (assumed: nothing is known about this model here)" if now.assumed else "")
    return f"{now.used or 0:,} of {limit}" + (", what was not sent yet estimated" if now.used else "")
