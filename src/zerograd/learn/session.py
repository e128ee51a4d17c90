"""The interactive course: watch the folder, grade on save, answer keys."""

from __future__ import annotations

import queue
import threading
from pathlib import Path

from zerograd.learn.exercise import Exercise
from zerograd.learn.folder import Folder
from zerograd.learn.keyboard import END, key_by_key, read_key
from zerograd.learn.process import run_checks
from zerograd.learn.screen import KEYS, Screen

_ONLY_SHOWS = ("h", "l")  # keys that need not stop the checks
_KEYS = (*_ONLY_SHOWS, "r", "n", "q", END)


class _Stopped(Exception):
    """The learner wants something else than the result of the checks that run."""


class Session:
    """One sitting: shows an exercise, grades it whenever its file is saved.

    Keys are answered at once, also while checks run: whatever makes their result
    worthless ends them.
    """

    def __init__(self, folder: Folder, screen: Screen) -> None:
        self._folder = folder
        self._screen = screen
        self._stop = threading.Event()
        self._saved: queue.SimpleQueue[Exercise] = queue.SimpleQueue()
        self._known: dict[str, tuple[int, int]] = {}  # each file as it was graded last, or found
        self._key: str | None = None  # pressed while checks ran, and not answered yet
        self._resetting = False  # `r` was pressed once
        self._picking = False  # the list is shown, a digit picks from it

    def run(self) -> None:
        """Go on until the learner quits or the terminal goes away."""
        for exercise in self._folder.exercises:
            self._note(exercise)
        watcher = threading.Thread(target=self._watch, name="zerograd-learn-watch", daemon=True)
        watcher.start()
        try:
            with key_by_key():
                self._screen.clear()
                self._screen.welcome(self._folder)
                self._show()
                while (key := self._next_key()) not in ("q", END):
                    if key is not None:
                        self._press(key)
                    self._grade_saved()
        except KeyboardInterrupt:
            pass
        finally:
            self._stop.set()
            watcher.join(timeout=2)
        self._screen.line()
        self._screen.line(
            f"{len(self._folder.done)} of {len(self._folder.exercises)} done. "
            "`zerograd learn` goes on from here."
        )

    def _next_key(self) -> str | None:
        key, self._key = self._key, None
        return key if key is not None else read_key(0.1)

    def _watch(self) -> None:
        from watchfiles import watch

        files = {self._folder.file(one).resolve(): one for one in self._folder.exercises}
        for changes in watch(
            self._folder.path, stop_event=self._stop, debounce=300, step=50, recursive=False
        ):
            for path in {Path(path).resolve() for _, path in changes}:
                if path in files and path.is_file():
                    self._saved.put(files[path])

    def _newest_save(self) -> Exercise | None:
        """Return the exercise that was saved last, if its file is not the one graded already."""
        newest = None
        while not self._saved.empty():
            saved = self._saved.get()
            if self._stamp(saved) != self._known[saved.name]:
                newest = saved
        return newest

    def _stamp(self, exercise: Exercise) -> tuple[int, int]:
        try:
            state = self._folder.file(exercise).stat()
        except OSError:  # an editor is just replacing it
            return (0, 0)
        return (state.st_mtime_ns, state.st_size)

    def _note(self, exercise: Exercise) -> None:
        self._known[exercise.name] = self._stamp(exercise)

    def _grade_saved(self) -> None:
        saved = self._newest_save()
        if saved is not None:
            self._screen.clear()
            self._turn_to(saved)

    def _turn_to(self, exercise: Exercise) -> None:
        self._folder.turn_to(exercise)
        self._show()

    def _show(self) -> None:
        """Show the current exercise and run its checks."""
        exercise, folder, screen = self._folder.current, self._folder, self._screen
        self._resetting = self._picking = False
        screen.exercise(folder, exercise)
        self._note(exercise)
        try:
            with screen.busy():
                verdict = run_checks(exercise, folder.file(exercise), while_waiting=self._listen)
        except _Stopped:
            return
        self._resetting = False  # the question has gone up the screen
        screen.verdict(verdict)
        if verdict.passed:
            folder.mark_done(exercise)
            screen.solved(exercise, folder)
        screen.keys(folder)

    def _listen(self) -> None:
        """Answer a key while checks run; raise _Stopped if their result is not wanted any more."""
        key = read_key(0)
        if key is not None and (key in _ONLY_SHOWS or (key == "r" and not self._resetting)):
            with self._screen.between():
                self._press(key)
        elif key in _KEYS or (self._picking and key is not None and key.isdigit()):
            self._key = key
        saved = self._newest_save()
        if saved is not None:
            self._saved.put(saved)
        if self._key is not None or saved is not None:
            raise _Stopped

    def _press(self, key: str) -> None:
        exercise, folder, screen = self._folder.current, self._folder, self._screen
        resetting, picking = self._resetting, self._picking
        self._resetting = self._picking = False
        if key == "h":
            level, text = folder.next_hint(exercise)
            screen.hint(level, len(exercise.hints), text)
            screen.keys(folder)
        elif key == "l":
            screen.line()
            screen.listing(folder)
            self._picking = True
            screen.keys(folder, f"{KEYS}   [1-9, 0 for 10] go to")
        elif key == "r" and not resetting:
            self._resetting = True
            screen.ask("Press r again to put the starter back; your text is kept as a .bak file.")
        elif key == "r":
            kept = folder.reset(exercise)
            screen.clear()
            screen.line(f"The starter is back. Your text is in {kept.name}.")
            self._show()
        elif key == "n":
            following = folder.next_after(exercise)
            screen.clear()
            if following is None:
                screen.line("Every exercise is done.")
            self._turn_to(following or exercise)
        elif picking and key.isdigit():
            number = int(key) or 10
            if number <= len(folder.exercises):
                screen.clear()
                self._turn_to(folder.exercises[number - 1])
