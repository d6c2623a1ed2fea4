"""The veil: the API key hidden wherever a server sends it back, and every known secret where a tool puts it out.

The arguments of a tool call are not veiled: a call that copies a file of the person's, key and all, must not change it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from cass.jsonl import dump
from cass.records import Assistant, Delta

HIDDEN = "…"
HIDDEN_KEY = "[a secret, hidden here by cass]"
"""In a file that is read and written back, this must be seen for what it is."""
SECRET_CHARS = 16
"""A shorter key stands for none (``EMPTY``, ``ollama``), and an answer may well hold it as a word."""


class Veil:
    """Hides `secret` in a text that comes in any pieces; what may yet become the secret is held back."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._held = ""

    def feed(self, text: str) -> str:
        """What can be shown now."""
        if self._held:
            text = self._held + text
        text = text.replace(self._secret, HIDDEN)
        self._held = self._beginning(text)
        return text[: len(text) - len(self._held)] if self._held else text

    def end(self) -> str:
        """What was held back, and is no secret after all."""
        held, self._held = self._held, ""
        return held

    def _beginning(self, text: str) -> str:
        """The longest end of `text` that the secret, longer than it, begins with."""
        first = self._secret[0]
        at = text.find(first, max(0, len(text) - len(self._secret) + 1))
        while at >= 0 and not self._secret.startswith(text[at:]):
            at = text.find(first, at + 1)
        return text[at:] if at >= 0 else ""


class Answer:
    """An answer behind a veil: its text and its reasoning."""

    def __init__(self, key: str | None) -> None:
        self._key = key if key and len(key) >= SECRET_CHARS else None
        self._text = Veil(self._key or HIDDEN)
        self._reasoning = Veil(self._key or HIDDEN)

    def deltas(self, delta: Delta) -> Iterator[Delta]:
        """What of it can be shown now."""
        if self._key is None or delta.tool_call is not None:
            yield delta
        elif text := self._text.feed(delta.text or ""):
            yield delta if text is delta.text else Delta(of=delta.of, text=text)
        elif thought := self._reasoning.feed(delta.reasoning or ""):
            yield Delta(of=delta.of, reasoning=thought)

    def end(self, of: str) -> Iterator[Delta]:
        """What was held back."""
        if thought := self._reasoning.end():
            yield Delta(of=of, reasoning=thought)
        if text := self._text.end():
            yield Delta(of=of, text=text)

    def message(self, message: Assistant) -> Assistant:
        """The whole, as its deltas have shown it; what would go back as it came does not, where it holds the key."""
        if self._key is None:
            return message
        if message.raw is not None and self._key in dump(message.raw).decode():
            message = replace(message, raw=None)
        if self._key not in f"{message.content}\0{message.reasoning}":
            return message
        reasoning = message.reasoning and message.reasoning.replace(self._key, HIDDEN)
        return replace(message, content=message.content.replace(self._key, HIDDEN), reasoning=reasoning)


class Output:
    """What a tool puts out, behind a veil, so that no secret goes into the chat and on to a model."""

    def __init__(self, secrets: Iterable[str]) -> None:
        # A secret may hold a shorter one.
        self._secrets = sorted({one for one in secrets if len(one) >= SECRET_CHARS}, key=len, reverse=True)
        self._veils = [Veil(secret) for secret in self._secrets]

    def piece(self, text: str) -> str:
        """What can be shown now; what is held back comes with the whole."""
        for veil in self._veils:
            text = veil.feed(text)
        return text

    def whole(self, text: str) -> str:
        """A result, or the change it made."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN_KEY)
        return text
