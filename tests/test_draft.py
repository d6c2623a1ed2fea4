import stat

from cass.composer.draft import Draft


def test_a_draft_is_kept_and_an_empty_one_leaves_no_file(files):
    draft = Draft(files)
    draft.save("half\na thought é")
    draft.close()
    assert stat.S_IMODE(files.draft.stat().st_mode) == 0o600
    again = Draft(files)
    assert again.load() == "half\na thought é"
    again.save("")
    assert not files.draft.exists()
    again.close()


def test_of_two_composers_the_first_has_the_file(files):
    first, second = Draft(files), Draft(files)
    first.save("mine")
    assert second.load() == ""
    second.save("other")
    assert files.draft.read_text() == "mine"
    first.close()
    second.close()
    third = Draft(files)
    assert third.load() == "mine"
    third.close()


def test_half_a_character_does_not_keep_a_draft_from_being_saved(files):
    draft = Draft(files)
    draft.save("a \ud83d b")
    draft.close()
    assert files.draft.read_text() == "a ? b"
