"""Pastes: long texts in a draft, each of which one character stands for, so that it takes one line on the screen.

The draft is then `held` text; what is sent, kept on disk, or handed to an editor is the `whole` one.
"""

import re

from cass.pattern import pattern

LINES = 20
CHARACTERS = 4_000
"""What is longer than either is held."""
LINES_BY_HAND = 1_000
"""A text of which no part was pasted here (a draft or a message from before, an edited one) is held from so many on."""

_FIRST, _LAST = 0xF0000, 0xFFFFD
"""A private plane of Unicode: nobody types these."""
_STANDS_FOR = pattern(f"[{chr(_FIRST)}-{chr(_LAST)}]")


class Pastes:
    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def hold(self, text: str) -> str:
        """A paste as it goes into the draft: itself, or the one character that stands for it."""
        is_short = text.count("\n") < LINES and len(text) <= CHARACTERS
        return self._literal(text) if is_short else self._stand_in(text)

    def held(self, text: str) -> str:
        """A whole text as a draft: what was pasted here is held as before, and all of it where it is very long."""
        text = self._literal(text)
        for character, paste in self._texts.items():
            if not _STANDS_FOR.search(paste):  # it could be found in what stands for others
                text = text.replace(paste, character)
        return text if text.count("\n") < LINES_BY_HAND else self._stand_in(self.whole(text))

    def whole(self, text: str) -> str:
        """A draft with its pastes in place."""
        return _STANDS_FOR.sub(lambda found: self._texts.get(found[0], found[0]), text)

    def shown(self, character: str) -> str | None:
        """What stands on the screen for a character of the draft; None: itself."""
        text = self._texts.get(character)
        if text is None or text == character:
            return None
        lines = text.count("\n") + (not text.endswith("\n"))
        return f"[pasted {lines:,} lines]" if lines > 1 else f"[pasted {len(text):,} characters]"

    def _literal(self, text: str) -> str:
        """`text` where what it has of that plane itself stands for nothing else."""

        def literal(found: re.Match[str]) -> str:
            taken = self._texts.setdefault(found[0], found[0]) != found[0]
            return self._stand_in(found[0]) if taken else found[0]

        return _STANDS_FOR.sub(literal, text)

    def _stand_in(self, text: str) -> str:
        for character, known in self._texts.items():
            if known == text:
                return character
        character = next(c for c in map(chr, range(_FIRST, _LAST)) if c not in self._texts and c not in text)
        self._texts[character] = text
        return character
