from cass.composer.words import READ_S, Words


def press(words, now, *said):
    words.key_begins()
    for text in said:
        words.hint(text, now)
    words.key_ends(now)


def test_what_answers_a_key_goes_with_the_next_one():
    words = Words()
    press(words, 1.0, "no such command")
    assert words.hinted(1.1) == "no such command"
    press(words, 1.2)
    assert words.hinted(1.2) == ""


def test_what_a_key_says_takes_the_place_of_what_the_one_before_said():
    words = Words()
    press(words, 1.0, "low")
    press(words, 1.1, "medium")
    assert words.hinted(1.2) == "medium"


def test_what_nobody_asked_for_stands_until_it_is_read_also_for_who_types():
    words = Words()
    words.hint("the worker is started again", 1.0)
    press(words, 1.1)
    assert words.hinted(1.2) == "the worker is started again"
    assert words.hinted(1.0 + READ_S) == ""


def test_a_notice_waits_for_a_key_that_finds_it_read():
    words = Words()
    words.notice("error", "no key", 1.0)
    press(words, 1.5)
    assert words.noticed == [("class:error", "no key")]
    press(words, 1.0 + READ_S)
    assert words.noticed == []


def test_what_the_terminal_reports_is_no_key():
    words = Words()
    press(words, 1.0, "Ctrl-C again to leave")
    words.key_begins()
    words.report_ends()
    assert words.hinted(1.1) == "Ctrl-C again to leave"
