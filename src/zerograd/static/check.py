"""check_source() and check_paths(): text or files in, findings out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from zerograd.errors import UnreadableSourceError
from zerograd.lifecycle.findings import Finding, in_order
from zerograd.lifecycle.rule import Rule
from zerograd.static.allow import Use, apply_allowances
from zerograd.static.checked import Checked, Fixed
from zerograd.static.depth import is_deep, with_room
from zerograd.static.files import find_files, may_train, read_bytes
from zerograd.static.garbage import Sweeper
from zerograd.static.project import Project
from zerograd.static.settings import DEFAULTS, Settings, SettingsFinder
from zerograd.static.source import Source, shown_path

if TYPE_CHECKING:
    from zerograd.static.baseline import Baseline


AnyPath = str | os.PathLike[str]


class Progress(Protocol):
    """Hears how far the work is."""

    def read(self) -> None: ...  # one more file was read

    def found(self) -> None: ...  # it has training code

    def checked(self, number: int) -> None: ...  # so many of these are done


@dataclass(frozen=True, slots=True)
class Asked:
    """What the caller wants to know, whatever the files are."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    notes: bool = False  # show notes too
    may: bool = False  # show what holds on some paths only
    offer: bool = True  # work out the fix of each finding
    fix: bool = False  # apply them
    known: Baseline | None = None  # what it holds is not fixed


class Checker:
    """Checks one file after another, with what is shared between them."""

    def __init__(self, asked: Asked, roots: Sequence[str] = (), *, alone: bool = False) -> None:
        self.asked = asked
        self.settings = SettingsFinder()
        self._project = None if alone else Project(roots)  # alone: no other module is read
        self._shown: dict[tuple[Settings, bool], frozenset[str]] = {}

    def words(self, folder: str) -> tuple[bytes, ...]:
        """Return the project's own names, by which a file may train without torch's words."""
        wrappers = self.settings.of(folder).wrappers
        names = (*wrappers.backward, *wrappers.step, *wrappers.clear)
        return tuple(name.rsplit(".", 1)[-1].encode() for name in names)

    def check(self, data: bytes, path: str) -> Checked:
        """Return what came of one file; faults of the file and of ours are part of that."""
        settings = self.settings.of(os.path.dirname(path))
        result = Checked(files=1, analysed=1, paths={path})
        source = None
        try:
            if self._project is not None:
                source = self._project.source_of(data, path)
            else:
                source = Source.read(data, shown_path(path))
            result.problems += source.problems
            self._judge(source, settings, result)
        except UnreadableSourceError as problem:
            return Checked(problems=[str(problem)])
        except RecursionError as fault:
            if source is not None and not is_deep(source.tree):
                return Checked(files=1, crashes=[_crash(path, fault)])  # it goes round and round
            return Checked(problems=[f"{path}: not checked, it is nested too deeply"])
        except Exception as fault:  # ours: told with its traceback, and the rest still checked
            return Checked(files=1, crashes=[_crash(path, fault)])
        return result

    def check_text(self, text: str, path: str, settings: Settings = DEFAULTS) -> Checked:
        """Return what came of a text; unlike a file's, its faults are raised."""
        result = Checked(files=1, analysed=1)
        self._judge(Source.parse(text, path), settings, result)
        return result

    def _judge(self, source: Source, settings: Settings, result: Checked) -> None:
        outcome = self.everything(source, settings)
        all_found, result.unresolved, result.used = outcome
        found = self.to_show(all_found, source, settings)
        if found and (self.asked.offer or self.asked.fix):
            from zerograd.static.fixing.fixer import Fixer

            fixer = Fixer(
                lambda each: self.everything(each, settings)[0],
                lambda findings, each: self._to_fix(findings, each, settings),
            )
            if self.asked.fix:
                before = found
                source, all_found, count = fixer.fix_all(source, all_found)
                found = self.to_show(all_found, source, settings)
                if count:
                    result.fixed[source.path] = Fixed(source.data(), count, before, found)
            else:
                found = fixer.offer(source, all_found, found)
        result.findings = in_order(found)
        shown = {each.key for each in found}
        result.unshown = [each for each in all_found if each.key not in shown]
        if not self.asked.notes:
            every = self.to_show(all_found, source, settings, notes=True)
            result.hidden = {each.key for each in every} - shown

    def everything(self, source: Source, settings: Settings) -> tuple[list[Finding], int, set[Use]]:
        """Return all that is found and not allowed, what was unresolved, and allowances used."""
        from zerograd.static.engine import analyze

        project = self._project
        if project is None:
            outcome = with_room(lambda: analyze(source, None, settings.wrappers))
            kept, used = apply_allowances(outcome.findings, source)
        else:
            project.start(source)
            outcome = with_room(lambda: analyze(source, project, settings.wrappers))
            kept, used = apply_allowances(outcome.findings, source, project.source_at)
        return kept, outcome.unresolved, used

    def to_show(
        self,
        findings: Sequence[Finding],
        source: Source,
        settings: Settings,
        *,
        notes: bool = False,
    ) -> list[Finding]:
        """Return those of the findings that were asked for, or would be with `notes`."""
        codes = self.codes(settings, notes=notes)
        if settings.per_file_ignores:
            codes = codes - self._ignored_in(source.path, settings)
        return [
            finding
            for finding in findings
            if finding.rule.code in codes and (finding.certain or self.asked.may)
        ]

    def _to_fix(
        self, findings: Sequence[Finding], source: Source, settings: Settings
    ) -> list[Finding]:
        """Return those of the findings that may be fixed: shown, and in no baseline."""
        shown = self.to_show(findings, source, settings)
        if self.asked.known is None:
            return shown
        here = [finding for finding in shown if finding.spot.path == source.path]
        return self.asked.known.new(here, lambda each: source.lines[source.row(each.spot) - 1])

    def codes(self, settings: Settings, *, notes: bool = False) -> frozenset[str]:
        """Return the codes to show under some settings; with `notes`, as with `--all`."""
        asked = self.asked
        key = (settings, notes or asked.notes)
        codes = self._shown.get(key)
        if codes is None:
            # What is selected on the command line is wanted, whatever the project has settled.
            ignore = asked.ignore if asked.select else (*settings.ignore, *asked.ignore)
            from zerograd.rules.selection import select_rules

            rules = select_rules(asked.select or settings.select, ignore, notes=key[1])
            codes = self._shown[key] = frozenset(rule.code for rule in rules)
        return codes

    def _ignored_in(self, path: str, settings: Settings) -> frozenset[str]:
        from zerograd.rules.selection import matching
        from zerograd.static.ignored import Patterns

        return frozenset(
            rule.code
            for glob, words in settings.per_file_ignores
            if Patterns([glob], settings.root).match(path)
            for word in words
            for rule in matching(word)
        )


def _crash(path: str, fault: Exception) -> str:
    import traceback

    last = traceback.extract_tb(fault.__traceback__)[-1]
    where = f"{os.path.basename(last.filename)}:{last.lineno}"
    lines = "".join(traceback.format_exception(fault, limit=-20))  # the others led there
    return f"{path}: zerograd failed here ({type(fault).__name__} in {where})\n{lines}"


def check_source(
    text: str,
    filename: str = "<string>",
    *,
    select: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    notes: bool = False,
    may: bool = False,
) -> list[Finding]:
    """Return the findings in a Python source, in order.

    A text that Python cannot parse raises UnreadableSourceError. Nothing on disk
    is read, not even other modules or settings.

    >>> loop = '''
    ... for x, y in loader:
    ...     loss_fn(model(x), y).backward()
    ...     optimizer.step()
    ... '''
    >>> [(finding.rule.code, finding.spot.line) for finding in check_source(loop)]
    [('ZG101', 4)]
    """
    from zerograd.rules.selection import several

    asked = Asked(several(select, "select"), several(ignore, "ignore"), notes=notes, may=may)
    return Checker(asked, alone=True).check_text(text, filename).findings


def check_paths(
    paths: AnyPath | Sequence[AnyPath],
    *,
    select: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    notes: bool = False,
    may: bool = False,
    exclude: str | Sequence[str] = (),
    jobs: int = 1,
) -> Checked:
    """Check files and folders; what could not be read is in `problems`, never raised.

    >>> check_paths("no/such/folder").problems
    ['no/such/folder: no such file or folder']

    Args:
        paths: one of them, or several.
        notes: also report notes, such as windows that are not averaged.
        may: also report what goes wrong on some paths only.
        jobs: processes to use. With more than one, the calling script needs the
            usual `if __name__ == "__main__":`.
    """
    from zerograd.rules.selection import several

    asked = Asked(several(select, "select"), several(ignore, "ignore"), notes=notes, may=may)
    given = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    places = [os.fspath(path) for path in given]
    with Sweeper() as sweeper:
        return check_all(
            places,
            asked,
            exclude=several(exclude, "exclude", "paths or patterns of paths"),
            jobs=jobs,
            sweeper=sweeper,
        )


def _roots(paths: Sequence[str]) -> list[str]:
    """Return the folders that were asked for, and for a file that of the user, if it is in it.

    So `check tools/train.py` reads the same modules as `check .` does from there.
    """
    roots = [path for path in paths if os.path.isdir(path)]
    here = os.getcwd()
    files = [os.path.abspath(path) for path in paths if path not in roots]
    if here not in (os.path.expanduser("~"), os.path.dirname(here)) and any(
        path.startswith(here + os.sep) for path in files
    ):
        roots.append(here)
    return roots


def check_all(
    paths: Sequence[str],
    asked: Asked,
    *,
    exclude: Sequence[str] = (),
    force_exclude: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
    sweeper: Sweeper | None = None,
) -> Checked:
    """Check everything below `paths`, with several processes where there is enough to do.

    Args:
        sweeper: holds the garbage collector off, and runs it between the files.
    """
    from zerograd.static.jobs import check_in_processes, is_enough, may_share

    roots = _roots(paths)
    checker = Checker(asked, roots)
    checker.codes(DEFAULTS)  # a rule that does not exist is told before anything is read
    result = Checked()

    def candidates() -> Iterator[tuple[str, bytes]]:
        """Yield the files with training code, counting the others as they go by."""
        listing = find_files(
            paths,
            settings=checker.settings,
            exclude=exclude,
            force_exclude=force_exclude,
            tell=result.problems.append,
        )
        for each in listing:
            data = read_bytes(each.path, result.problems.append)
            if progress is not None:
                progress.read()
            if data is None:
                continue
            if not may_train(data, checker.words(os.path.dirname(each.path))):
                result.files += 1
                result.paths.add(each.path)
                continue
            if each.is_ignored():
                result.files += 1
                continue
            if progress is not None:
                progress.found()
            yield each.path, data

    def done(part: Checked, number: int) -> None:
        result.add(part)
        if progress is not None:
            progress.checked(number)

    stream = candidates()
    if may_share(jobs):
        # Files wait until it is clear whether there is enough to do for more than one process.
        waiting: list[tuple[str, bytes]] = []
        size = 0
        for path, data in stream:
            waiting.append((path, data))
            size += len(data)
            if is_enough(size, jobs):
                rest = ((path, len(data)) for path, data in chain(waiting, stream))
                for part, number in check_in_processes(rest, asked, roots, jobs):
                    done(part, number)
                waiting = []
        stream = iter(waiting)
    for path, data in stream:
        done(checker.check(data, path), 1)
        if sweeper is not None:
            sweeper.file_done()
    result.put_in_order()
    return result


def with_rules_of_ours(result: Checked, rules: dict[str, Rule]) -> Checked:
    """Return a result that came from another process with this process's rules in it."""

    def ours(findings: Sequence[Finding]) -> list[Finding]:
        return [replace(each, rule=rules[each.rule.code]) for each in findings]

    result.findings = ours(result.findings)
    for fixed in result.fixed.values():
        fixed.before, fixed.after = ours(fixed.before), ours(fixed.after)
    return result
