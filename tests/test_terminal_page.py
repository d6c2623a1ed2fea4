"""`docs/terminal.md`: its tables are those of `commands`; ``python tests/test_terminal_page.py`` writes them."""

from pathlib import Path

import pytest

from cass.commands import SLASH, At, keys_at

PAGE = Path(__file__).parents[1] / "docs" / "terminal.md"


def table(at: At) -> str:
    """The keys of one place as a table of Markdown."""
    rows = [f"| {key.name} | {key.help} |" for key in keys_at(at)]
    return "\n".join(["| key | |", "|---|---|", *rows])


def slash() -> str:
    rows = [f"| `{command.usage}` | {command.help} |" for command in SLASH]
    return "\n".join(["| command | |", "|---|---|", *rows])


TABLES = {**{f"keys at the {at}": table(at) for at in At}, "commands": slash()}


def marked(name: str) -> str:
    return f"<!-- {name} -->\n{TABLES[name]}\n<!-- end -->"


@pytest.mark.parametrize("name", TABLES)
def test_the_page_has_each_table_as_it_is(name):
    assert marked(name) in PAGE.read_text(), "write it anew: python tests/test_terminal_page.py"


def _write() -> None:
    text = PAGE.read_text()
    for name in TABLES:
        before, _, rest = text.partition(f"<!-- {name} -->\n")
        text = before + marked(name) + rest.partition("<!-- end -->")[2]
    PAGE.write_text(text)


if __name__ == "__main__":
    _write()
