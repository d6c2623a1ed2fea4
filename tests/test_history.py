import stat

from cass.composer import history


def test_this_directory_comes_first_and_each_text_once(home):
    for text, cwd in [("one", "/a"), ("two", "/b"), ("three", "/a"), ("one", "/a"), ("two\nlines", "/b")]:
        history.append(home.history, text, cwd)
    assert history.load(home.history, "/a") == ["one", "three", "two\nlines", "two"]
    assert history.load(home.history, "/b") == ["two\nlines", "two", "one", "three"]


def test_the_file_is_private_and_a_missing_one_is_empty(home):
    assert history.load(home.history, "/a") == []
    history.append(home.history, "secret", "/a")
    assert stat.S_IMODE(home.history.stat().st_mode) == 0o600


def test_broken_lines_are_passed_over(home):
    history.append(home.history, "good", "/a")
    with home.history.open("ab") as file:
        file.write(b'{"text": \n[]\n"x"\n{"no": 1}\n\xff\n')
    history.append(home.history, "also good", "/a")
    assert history.load(home.history, "/a") == ["also good", "good"]
