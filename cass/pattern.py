"""Pattern: a regular expression that is compiled when it is first used.

Compiling those of every module that a program loads takes 3 to 5 ms of each start, and most are never asked.
"""

import re
from typing import Any, AnyStr, cast


class _Pattern:
    """Whatever is asked of it is asked of the compiled pattern, once, and from then on stands here."""

    def __init__(self, text: Any, flags: int) -> None:
        self._source = text, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._source), name)
        setattr(self, name, found)
        return found


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, but an error in `text` is raised at its first use, and no function of `re` takes it."""
    return cast("re.Pattern[AnyStr]", _Pattern(text, flags))
