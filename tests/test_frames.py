from cass.composer.frames import Frames, joined


def test_frames_that_came_together_are_one():
    lines = [b'{"print":"a\\n"}', b'{"live":"x"}', b'{"print":"b\\n"}', b'{"live":""}']
    assert joined(lines) == Frames("a\nb\n", "")


def test_without_a_live_frame_what_grows_stays_as_it_was():
    assert joined([b'{"print":"a\\n"}']) == Frames("a\n", None)


def test_what_is_no_frame_is_left_out():
    assert joined([b"Traceback", b"[]", b"", b'{"print":"a\\n"}']) == Frames("a\n", None)
