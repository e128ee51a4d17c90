"""The learner's files and progress outlive a sitting, a reset and a broken progress file."""

import pytest

from zerograd.errors import UsageError
from zerograd.learn.folder import PROGRESS_FILE, Folder


def test_starters_are_copied_once_and_never_over_the_learners_text(tmp_path):
    folder = Folder.open(tmp_path / "new" / "place")
    first = folder.file(folder.exercises[0])
    first.write_text("mine")
    assert Folder.open(folder.path).file(folder.exercises[0]).read_text() == "mine"
    assert sorted(p.name for p in folder.path.glob("*.py")) == [
        one.file_name for one in folder.exercises
    ]


def test_the_next_sitting_goes_on_where_the_last_one_ended(tmp_path):
    folder = Folder.open(tmp_path)
    folder.mark_done(folder.exercises[0])
    folder.turn_to(folder.exercises[3])
    folder.next_hint(folder.exercises[3])
    again = Folder.open(tmp_path)
    assert again.current.number == 4
    assert again.done == {"zero-gradients"}
    assert again.next_hint(again.current)[0] == 2


def test_a_new_sitting_begins_at_what_is_open(tmp_path):
    folder = Folder.open(tmp_path)
    folder.turn_to(folder.exercises[3])
    folder.mark_done(folder.exercises[3])
    assert folder.current.number == 4  # its explanation is on the screen
    assert Folder.open(tmp_path).current.number == 5
    for one in folder.exercises:
        folder.mark_done(one)
    assert Folder.open(tmp_path).current.number == 4  # nothing is open any more


def test_hints_go_up_to_three_and_stay(tmp_path):
    folder = Folder.open(tmp_path)
    levels = [folder.next_hint(folder.current)[0] for _ in range(4)]
    assert levels == [1, 2, 3, 3]


def test_a_reset_keeps_every_earlier_text(tmp_path):
    folder = Folder.open(tmp_path)
    one = folder.exercises[0]
    for text in ("first try", "second try"):
        folder.file(one).write_text(text)
        kept = folder.reset(one)
        assert kept.read_text() == text
    assert folder.file(one).read_text() == one.starter()
    assert len(list(tmp_path.glob("*.bak"))) == 2


def test_next_goes_round_to_what_was_skipped_and_ends(tmp_path):
    folder = Folder.open(tmp_path)
    last = folder.exercises[-1]
    assert folder.next_after(last) is folder.exercises[0]
    for one in folder.exercises:
        folder.mark_done(one)
    assert folder.next_after(last) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"done": 3}', '{"done":[],"hints":[],"current":1}']
)
def test_a_broken_progress_file_costs_the_ticks_only(tmp_path, text):
    folder = Folder.open(tmp_path)
    folder.file(folder.current).write_text("mine")
    (tmp_path / PROGRESS_FILE).write_text(text)
    again = Folder.open(tmp_path)
    assert again.current.number == 1
    assert again.file(again.current).read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="Name another folder"):
        Folder.open(tmp_path / "file" / "learn")
