"""Text made visible: whatever a model, a file, a tool or a title holds, it cannot control the terminal."""

import re

_UNSEEN = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # bidi, line ends, of no width
    "\ud800-\udfff\U000e0000-\U000e007f]"  # half characters, tags
)


def safe(text: str) -> str:
    """`text` with everything made visible that would move the cursor, turn the direction round, or hide.

    Tabs and newlines stay, ``\\r\\n`` is a newline. A C1 control is shown as the two characters it stands for
    (ECMA-48, 5.3).
    """
    if text.isprintable():  # most lines are, and then the pattern need not even be compiled
        return text
    return re.sub(_UNSEEN, _shown, text.replace("\r\n", "\n"))


def safe_line(text: str) -> str:
    """As `safe`, but one line whatever it holds."""
    return safe(text).replace("\n", "␊").replace("\t", " ")


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if code < 0xA0:
        return "␛" + chr(code - 0x40)
    return "�" if 0xD800 <= code <= 0xDFFF else f"⟨U+{code:04X}⟩"
