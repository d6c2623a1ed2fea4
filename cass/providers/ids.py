"""Ids of tool calls, as one API takes them.

Each API has rules of its own, and one chat may hold calls of several: those that another model made get ids that fit,
the same ones in each request, so that what was sent stays a prefix of what is sent next.
"""

import re
import zlib


class Ids:
    """The ids of one request, whose messages are gone through in their order."""

    def __init__(self, takes: str, *, unique: bool = False) -> None:
        """`takes`: a pattern of ids that the API accepts; `unique`: whether one may stand only once in a request."""
        self._takes = re.compile(takes)
        self._unique = unique
        self._sent: dict[str, str] = {}
        self._used: set[str] = set()

    def call(self, id: str, *, own: bool) -> str:
        """What a call goes by; `own`: the model that is asked made it, so that its id goes back as it came."""
        sent = id if own or self._takes.fullmatch(id) else _short(id)
        again = 1
        while self._unique and sent in self._used:
            again += 1
            sent = _short(f"{id} {again}")
        self._used.add(sent)
        self._sent[id] = sent
        return sent

    def result(self, id: str) -> str:
        """What the result of the last call with this id goes by."""
        return self._sent.get(id, id)


def _short(id: str) -> str:
    """Nine letters and digits: the strictest of all (Mistral) takes no others."""
    return f"c{zlib.crc32(id.encode('utf-8', 'replace')):08x}"
