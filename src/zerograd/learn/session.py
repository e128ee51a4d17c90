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


class Session:
    """One sitting: shows an exercise, grades it whenever its file is saved."""

    def __init__(self, folder: Folder, screen: Screen) -> None:
        self._folder = folder
        self._screen = screen
        self._stop = threading.Event()
        self._saved: queue.SimpleQueue[Exercise] = queue.SimpleQueue()
        self._resetting = False  # `r` was pressed once
        self._picking = False  # the list is shown, a digit picks from it

    def run(self) -> None:
        """Go on until the learner quits or the terminal goes away."""
        watcher = threading.Thread(target=self._watch, name="zerograd-learn-watch", daemon=True)
        watcher.start()
        try:
            with key_by_key():
                self._screen.clear()
                self._screen.welcome(self._folder)
                self._show()
                while (key := read_key(0.1)) not in ("q", END):
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

    def _watch(self) -> None:
        from watchfiles import watch

        files = {self._folder.file(one).resolve(): one for one in self._folder.exercises}
        for changes in watch(
            self._folder.path, stop_event=self._stop, debounce=300, step=50, recursive=False
        ):
            for path in {Path(path).resolve() for _, path in changes}:
                if path in files and path.is_file():
                    self._saved.put(files[path])

    def _grade_saved(self) -> None:
        saved = None
        while not self._saved.empty():
            saved = self._saved.get()
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
        with screen.busy():
            verdict = run_checks(exercise, folder.file(exercise))
        screen.verdict(exercise, verdict)
        if verdict.passed:
            folder.mark_done(exercise)
            screen.solved(exercise, folder)
        screen.keys()

    def _press(self, key: str) -> None:
        exercise, folder, screen = self._folder.current, self._folder, self._screen
        resetting, picking = self._resetting, self._picking
        self._resetting = self._picking = False
        if key == "h":
            level, text = folder.next_hint(exercise)
            screen.hint(level, len(exercise.hints), text)
            screen.keys()
        elif key == "l":
            screen.line()
            screen.listing(folder)
            self._picking = True
            screen.keys(f"{KEYS}   [1-9, 0 for 10] go to")
        elif key == "r" and not resetting:
            self._resetting = True
            screen.keys("Press r again to put the starter back; your text is kept as a .bak file.")
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
