"""Words: what a composer tells the person about itself, for as long as it takes to read. Pure; times are monotonic.

A hint is a line in the place of the help line, and goes by itself. One that answers a key goes with the next key: what
it was said about is over. A notice stands above the draft until a key comes that finds it read.
"""

from cass.composer.question import Fragments

READ_S = 4.0


class Words:
    def __init__(self) -> None:
        self._hint = ""
        self._hint_until = 0.0
        self._answers_key = False
        self._notice: Fragments = []
        self._noticed_at = 0.0
        self._is_in_key = False
        self._is_new = False

    def hint(self, text: str, now: float, seconds: float = READ_S) -> None:
        self._hint, self._hint_until = text, now + seconds
        self._answers_key = self._is_new = self._is_in_key

    def notice(self, style: str, text: str, now: float) -> None:
        self._notice, self._noticed_at = [(f"class:{style}", text)], now

    def forget_notice(self) -> None:
        self._notice = []

    def key_begins(self) -> None:
        self._is_in_key, self._is_new = True, False

    def key_ends(self, now: float) -> None:
        """A key has done what it does; what was said before it may go."""
        self._is_in_key = False
        if self._answers_key and not self._is_new:
            self._hint = ""
        if now - self._noticed_at >= READ_S:
            self._notice = []

    def report_ends(self) -> None:
        """It was no key: the terminal told something."""
        self._is_in_key = False

    def hinted(self, now: float) -> str:
        """The hint that stands now; "" for none."""
        return self._hint if now < self._hint_until else ""

    @property
    def noticed(self) -> Fragments:
        return self._notice
