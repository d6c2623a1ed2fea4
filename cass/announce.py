"""Announcements: what a terminal is told beside its screen: title, notices, and that it is to say where one looks.

Sources: https://invisible-island.net/xterm/ctlseqs/ctlseqs.html (title, focus),
https://github.com/tmux/tmux/wiki/FAQ (the envelope that takes a sequence through tmux)
"""

from collections.abc import Mapping

from cass.visible import safe_line

KEEP_TITLE, TITLE_OF_BEFORE = "\x1b[22;2t", "\x1b[23;2t"
FOCUS_REPORTS, NO_FOCUS_REPORTS = "\x1b[?1004h", "\x1b[?1004l"


def title(text: str) -> str:
    """Name the window, and in tmux the pane."""
    return f"\x1b]2;{safe_line(text)}\a"


def notice(text: str, environ: Mapping[str, str]) -> str:
    """A notice of the desktop: OSC 777 for who knows only that, else OSC 9; through tmux in its envelope."""
    only_777 = environ.get("TERM", "").startswith("rxvt") or bool(environ.get("VTE_VERSION"))
    command = f"\x1b]777;notify;cass;{safe_line(text)}\a" if only_777 else f"\x1b]9;{safe_line(text)}\a"
    return "\x1bPtmux;" + command.replace("\x1b", "\x1b\x1b") + "\x1b\\" if environ.get("TMUX") else command


def call(text: str, environ: Mapping[str, str], notify: str) -> str:
    """Call who looks elsewhere, as they want it: ``off``, ``bell`` or ``all``."""
    if notify == "off":
        return ""
    return "\a" + (notice(text, environ) if notify == "all" else "")
