"""Colours: whether an output is to have them, and whether it can take escape sequences at all.

Sources: https://no-color.org, https://bixense.com/clicolors/, https://force-color.org
"""

from collections.abc import Mapping


def wanted(environ: Mapping[str, str], is_terminal: bool, color: str = "auto") -> tuple[bool, bool]:
    """Escape sequences, and colours; `color` is what ``--color`` says: ``auto``, ``always`` or ``never``."""
    forced = any(environ.get(name, "") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE"))
    dumb = environ.get("TERM", "") in ("dumb", "unknown")
    escapes = {"always": True, "never": False}.get(color, forced or (is_terminal and not dumb))
    quiet = bool(environ.get("NO_COLOR")) or (environ.get("CLICOLOR") == "0" and not forced)
    return escapes, escapes and (color == "always" or not quiet)
