#!/usr/bin/env python3
"""The pictures of docs/terminal.md: docs/pictures.py [DIRECTORY], with the Python of .venv and a tmux.

A scripted chat is held in a tmux of its own and a home of its own, and what stands on the screen is drawn with rich.
"""

import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
CHAT = "2026-06-20-143012-a8f3"
COLUMNS = 92
PATIENCE_S = 60.0

SOURCE = '''\
"""Count the words of files."""

import sys


def count(text):
    return len(text.split(" "))


def main(paths):
    for path in paths:
        print(count(open(path).read()), path)


main(sys.argv[1:])
'''
ANSWER = """\
`count` splits at single spaces, so

1. two spaces in a row count as **a word between them**,
2. a line end joins the words around it.

`str.split` without an argument does both:

```python
return len(text.split())
```

| text | now | then |
|------|----:|-----:|
| `a  b` | 3 | 2 |
| `a\\nb` | 1 | 2 |
"""
STEPS = [
    {
        "text": "I look at how it counts.",
        "reasoning": "They see wrong numbers; how is a word found?",
        "tool_calls": [{"name": "read", "arguments": {"files": [{"path": "words.py", "lines": "6-7"}]}}],
    },
    {"text": ANSWER},
    {
        "tool_calls": [
            {
                "name": "edit",
                "arguments": {
                    "path": "words.py",
                    "edits": [
                        {"old_text": 'text.split(" ")', "new_text": "text.split()"},
                        {
                            "old_text": "        print(count(open(path).read()), path)",
                            "new_text": "        with open(path) as file:\n            print(count(file.read()), path)",
                        },
                    ],
                },
            }
        ],
    },
    {"text": "Done; it also closes each file now. Shall I try it?"},
    {"tool_calls": [{"name": "shell", "arguments": {"command": "printf 'a  b\\nc' > t && python words.py t; rm t"}}]},
    {"text": "Three words, as there should be."},
]


class Screen:
    """A tmux server with one window."""

    def __init__(self, scratch: Path, rows: int) -> None:
        self._socket = str(scratch / "tmux")
        self.rows = rows
        self.run("new-session", "-d", "-x", str(COLUMNS), "-y", str(rows), "sh")
        self.run("set-option", "-g", "status", "off")
        self.run("set-option", "-g", "escape-time", "0")

    def run(self, *command: str) -> str:
        tmux = ["tmux", "-S", self._socket, "-f", "/dev/null", *command]
        environ = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}  # no keys and no settings of the person
        return subprocess.run(tmux, check=True, capture_output=True, text=True, env=environ).stdout

    def type(self, text: str) -> None:
        self.run("send-keys", "-l", text)
        self.run("send-keys", "Enter")

    def panes(self) -> list[str]:
        return self.run("list-panes", "-F", "#D").split()

    def until(self, *texts: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not all(text in "".join(self.shot(pane) for pane in self.panes()) for text in texts):
            if time.monotonic() > deadline:
                sys.exit(f"waited in vain for {texts}:\n" + "".join(self.shot(pane) for pane in self.panes()))
            time.sleep(0.05)

    def settle(self) -> None:
        """Wait until nothing changes any more."""
        before: list[str] = []
        while (now := [self.shot(pane) for pane in self.panes()]) != before:
            before = now
            time.sleep(0.5)

    def shot(self, pane: str, *flags: str) -> str:
        try:
            return self.run("capture-pane", "-p", *flags, "-t", pane)
        except subprocess.CalledProcessError:  # it was closed just now
            return ""

    def picture(self, path: Path, title: str) -> None:
        """Draw what stands there, the panes one below the other."""
        line = "\x1b[2m" + "─" * COLUMNS + "\x1b[0m\n"
        text = line.join(self.shot(pane, "-e").rstrip("\n") + "\n" for pane in self.panes())
        console = Console(width=COLUMNS, record=True, file=io.StringIO(), color_system="truecolor")
        console.print(Text.from_ansi(text.rstrip("\n")), soft_wrap=True)
        plain = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)  # nothing from elsewhere
        plain = plain.replace("Fira Code", "ui-monospace, Menlo, Consolas")
        path.write_text(console.export_svg(title=title, code_format=plain, unique_id=path.stem))

    def close(self) -> None:
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True, check=False)


def prepare(scratch: Path) -> str:
    """Make home, workspace and chat; return the start of a command line for the programs there."""
    work, home = scratch / "words", scratch / "home"
    work.mkdir()
    (work / "words.py").write_text(SOURCE)
    (home / "conversations").mkdir(parents=True, mode=0o700)
    (scratch / "script.json").write_text(json.dumps(STEPS))
    entry = {"id": "scripted", "kind": "demo", "script": str(scratch / "script.json"), "default_model": "model"}
    (home / "providers.json").write_text(json.dumps({"providers": [entry]}))
    (home / "config.json").write_text(json.dumps({"default_provider": "scripted"}))
    meta = {"type": "meta", "v": 1, "chat_id": CHAT, "created_at": "2026-06-20T12:30:12.000Z", "cwd": str(work)}
    (home / "conversations" / f"{CHAT}.jsonl").write_text(
        json.dumps(meta | {"provider": "scripted", "model": "model"}) + '\n{"type":"system","content":"A demo."}\n'
    )
    environ = {"CASS_HOME": str(home), "HOME": str(scratch), "LC_ALL": "C.UTF-8"}
    start = shlex.join(["env", *(f"{name}={value}" for name, value in environ.items())])
    return f"cd {shlex.quote(str(work))}; clear; {start} {sys.executable} -I -m cass.cli"


def draw(directory: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="demo-") as place:
        scratch = Path(place)
        begin = prepare(scratch)
        screen = Screen(scratch, rows=40)
        try:
            screen.type(f"{begin} cass --resume {CHAT} --workspace-edit --layout inline")
            screen.until("Shift-Tab mode")
            screen.type("why are my word counts wrong?")
            screen.until("a\\nb", "idle")
            screen.settle()
            screen.picture(directory / "inline.svg", "cass")
            screen.type("change it")
            screen.until("Shall I try it?", "idle")
            screen.settle()
            screen.picture(directory / "diff.svg", "a change")
            screen.type("yes")
            screen.until("y approve")
            time.sleep(1)  # from then on the answers take keys, and are drawn so
            screen.picture(directory / "approval.svg", "an approval")
            screen.run("send-keys", "y")
            screen.until("Three words", "idle")
            screen.settle()
            screen.run("send-keys", "C-d")
            screen.until("Resume this chat with")
            screen.type(f"{begin} cass --resume {CHAT} --workspace-edit --layout panes")
            screen.until("Shift-Tab mode", "Three words")
            screen.settle()
            screen.picture(directory / "panes.svg", "cass in tmux")
            screen.run("send-keys", "C-d")
            screen.until("Resume this chat with")
        finally:
            screen.type(f"{begin} cass stop {CHAT}")
            screen.close()


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs")
