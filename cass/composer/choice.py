"""The choice: what the person has answer from now on, the provider, its model, the effort, and in which access mode."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from cass.access import Mode
from cass.composer import models
from cass.composer.completion import EFFORTS
from cass.composer.errands import Errands
from cass.composer.seat import Seat
from cass.visible import safe_line


class Composing(Protocol):
    """What choosing needs of the composer."""

    seat: Seat
    errands: Errands

    def hint(self, text: str) -> None: ...
    def do(self, work: Coroutine[Any, Any, None]) -> None: ...
    def decide(self, decision: dict[str, Any]) -> None:
        """Have the worker decide something at once."""

    def pick(self, title: str, choices: Sequence[str], then: Callable[[int], None], at: int = 0) -> None: ...


class Choice:
    def __init__(self, composer: Composing) -> None:
        self._composer = composer
        self._effort = ""

    def mode(self, mode: Mode) -> None:
        if self._composer.seat.is_busy:
            self._composer.hint("mode can be changed when idle")
        else:
            self._composer.decide({"do": "mode", "mode": mode.value})

    def next_effort(self) -> None:
        """Another effort, from the next message on."""
        seat = self._composer.seat
        now = self._effort or seat.standing.effort
        self._effort = EFFORTS[(EFFORTS.index(now) + 1) % len(EFFORTS) if now in EFFORTS else 0]
        seat.take_back_orders("effort")  # who goes through them means the last one
        seat.order("effort", effort=self._effort)
        self._composer.hint(f"reasoning effort: {self._effort}, from the next message on")

    def pick_model(self) -> None:
        async def choose() -> None:
            seat = self._composer.seat
            found = await asyncio.to_thread(models.models, seat.files.home, seat.standing.provider, os.environ)
            now = next((n for n, m in enumerate(found) if m[:2] == (seat.standing.provider, seat.standing.model)), 0)
            lines = [model.line for model in found]
            self._composer.pick("go on with a model", lines, lambda n: self._use(*found[n][:2]), now)

        self._composer.do(choose())

    def configure(self, provider: str) -> None:
        """Have ``cass setup`` choose provider and model, and go on with them here; "": any provider."""

        async def choose() -> None:
            status = await self._composer.errands.cass("setup", *(["--provider", provider] if provider else []))
            if status == 0:
                self._use(*await asyncio.to_thread(models.configured, self._composer.seat.files.home, os.environ))

        self._composer.do(choose())

    def forget_key(self, provider: str) -> None:
        """Have ``cass logout`` forget the key of `provider`."""

        async def forget() -> None:
            await self._composer.errands.cass("logout", provider)

        self._composer.do(forget())

    def _use(self, provider: str, model: str) -> None:
        self._composer.seat.order("model", provider=provider, model=model)
        self._composer.hint(f"{safe_line(provider)}: {safe_line(model)}, from the next message on")
