import pytest

from cass.composer.picker import Picker


def shown(columns, *choices):
    return "".join(text for _, text in Picker("go on with a chat", choices, lambda: (columns, 24)).fragments())


@pytest.mark.parametrize(
    ("columns", "head"),
    [
        (80, "go on with a chat · 2 · type to filter · Enter takes it · Esc none"),
        (60, "go on with a chat · 2 · type to filter · Enter · Esc"),
        (30, "go on with a chat · 2"),
        (12, "go on with…"),
    ],
)
def test_what_the_keys_do_gives_way_to_what_is_chosen(columns, head):
    assert shown(columns, "one", "two").split("\n")[0] == head
