"""The pictures in docs/ are drawn from the real programs, and are there."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SHOWN = {
    "inline": ["❯ why are my word counts wrong?", "1. two spaces in a row", "● read words.py 6-7", "Shift-Tab mode"],
    "diff": ["● edit words.py (2 edits)", '7 -    return len(text.split(" "))', "7 +    return len(text.split())"],
    "approval": ["shell asks", "sandboxed: writes only to the workspace", "y approve"],
    "panes": ["● edit words.py (2 edits)", "exit status 0", "Shift-Tab mode"],
}


def text_of(picture: Path) -> str:
    found = re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text())
    return " ".join("".join(found).replace("&#160;", " ").replace("&quot;", '"').split())


@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")
def test_the_pictures_can_be_drawn_and_show_what_they_are_of(tmp_path: Path) -> None:
    command = [sys.executable, str(DOCS / "pictures.py"), str(tmp_path)]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    for name, words in SHOWN.items():
        for shown in (text_of(tmp_path / f"{name}.svg"), text_of(DOCS / f"{name}.svg")):
            assert [word for word in words if " ".join(word.split()) not in shown] == []


def test_every_picture_is_shown_and_loads_nothing_from_elsewhere() -> None:
    page = (DOCS / "terminal.md").read_text()
    for name in ("inline", "diff"):  # the composer's part shows the others
        assert f"({name}.svg)" in page
    for picture in DOCS.glob("*.svg"):
        assert not re.search(r"(url\(|href=.)http", picture.read_text())
