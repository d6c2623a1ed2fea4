"""Errands: other programs on the person's terminal, for which the composer stands aside and then comes back."""

import asyncio
import os
import shlex
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

from cass import itself
from cass.composer import foreground
from cass.composer.console import Console
from cass.visible import safe, safe_line


class Errands:
    def __init__(self, console: Console, cwd: Callable[[], str], hint: Callable[[str], None]) -> None:
        self._console = console
        self._cwd = cwd
        self._hint = hint

    async def run(self, command: list[str], *, keep: bool = False) -> tuple[int, str]:
        """Run a program in the foreground; return its exit status and, with `keep`, what it wrote."""
        async with self._console.aside():
            try:
                return await asyncio.to_thread(foreground.run, command, 0, keep=keep, cwd=self._cwd())
            except OSError as e:
                self._hint(safe_line(f"{command[0]}: {e.strerror}"))
                return 127, ""

    async def shell(self, command: str, *, keep: bool) -> str:
        """Run a line of shell, shown like a shell's; return it with its output and a status other than 0, as text."""
        self._console.print(f"\n❯ $ {safe(command)}\n")
        status, output = await self.run(["bash", "-c", command], keep=keep)
        ended = f"\n[exit status {status}]" if status else ""
        if status:
            self._console.print(f"[exit status {status}]\n")
        return f"$ {command}\n{output.rstrip()}{ended}"

    async def cass(self, *arguments: str) -> int:
        """Run ``cass ARGUMENTS``; return its exit status."""
        self._console.print(f"\n❯ $ cass {safe_line(shlex.join(arguments))}\n")
        return (await self.run(itself.argv("cass", *arguments)))[0]

    async def edit(self, text: str) -> str:
        """`text` as the person's editor leaves it; as it was when the editor fails."""
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        with tempfile.TemporaryDirectory(prefix="cass-") as directory:
            path = Path(directory) / "message.md"
            path.write_text(text, "utf-8")
            status, _ = await self.run([*shlex.split(editor), str(path)])
            if status:
                self._hint(safe_line(f"{editor} ended with status {status}; the draft is as it was"))
                return text
            return path.read_text("utf-8", "replace").removesuffix("\n")

    async def suspend(self) -> None:
        """Stop the whole job, launcher and viewer too, until the shell lets it go on."""
        async with self._console.aside():
            os.kill(0, signal.SIGTSTP)
