"""Edition: a configuration that is changed while a worker runs is not silently left out."""

import pytest
from stage import end_worker, run

from cass import catalogue
from cass.edition import Edition
from cass.records import Notice
from cass.tail import Tail


@pytest.mark.parametrize(
    ("name", "text", "is_news"),
    [
        ("config.json", '{"allow": ["shell(ls)"]}', True),
        ("config.json", '{"deny": [], "default_model": "x"}', False),
        ("config.json", '{"deny": []}', False),
        ("mcp.json", '{"mcpServers": {}}', True),
        ("models.json", "{}", False),
    ],
)
def test_what_a_worker_would_read_otherwise_is_news_once(home, name, text, is_news):
    home.make()
    home.config.write_text('{"deny": []}')
    edition = Edition(home, None)
    assert edition.news() == []
    (home.root / name).write_text(text)
    assert edition.news() == [home.root / name] * is_news
    assert edition.news() == []
    home.config.write_text('{"deny": []}')
    assert edition.news() == []


def test_a_chat_says_that_it_goes_on_with_what_its_worker_read(home, scripted, workspace):
    scripted({"text": "one"}, {"text": "two"}, {"text": "three"})
    run("cass", "-p", "first")
    files = home.files(catalogue.ids(home)[0])
    try:
        run("cass-send", files.chat_id, "second", "--wait")
        live = Tail(files.live)
        live.read()
        home.config.write_text('{"fetch_private": ["localhost"]}')
        run("cass-send", files.chat_id, "third", "--wait")
        said = [record.text for record in live.read() if isinstance(record, Notice)]
        live.close()
    finally:
        end_worker(files)
    assert [text for text in said if f"{home.config} was changed" in text and f"cass stop {files.chat_id}" in text]
