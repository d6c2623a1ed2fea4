from datetime import UTC, datetime

from cass import listing
from cass.catalogue import Summary


def test_who_picks_a_chat_reads_what_it_is_about_first(home):
    fields = dict.fromkeys(Summary._fields, None)
    now = datetime.now(UTC).isoformat()
    fields |= {"chat_id": "2026-06-20-143012-a8f3", "changed_at": now, "title": "Fix\nit", "model": "a/b/large"}
    found = [Summary(**fields | {"is_running": False}), Summary(**fields | {"is_running": False, "title": ""})]
    assert listing.choices(home, found, lambda _: None) == [
        " now  Fix␊it · large · 2026-06-20-143012-a8f3",
        " now  (no message yet) · large · 2026-06-20-143012-a8f3",
    ]
