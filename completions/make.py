#!/usr/bin/env python3
"""Write the completions here and the man pages beside them, from the table of programs: completions/make.py"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from cass import completions, manual, synopsis  # noqa: E402
from cass.cli import PROGRAMS  # noqa: E402

programs = synopsis.programs(PROGRAMS)
places = {"completions": completions.files(programs), "man": manual.pages(programs)}
for folder, files in places.items():
    for name, text in files.items():
        path = ROOT / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
