"""Bring the public repositories of `corpus.toml` into a folder, at their pinned commits.

    python -m benchmarks.accuracy.corpus --into .scratch/corpus [--split development]

Only names and commits are kept in this repository, never the code. Each snapshot is
fetched with git (one commit, no history); `--mirror` takes it from a folder of bare
clones named `owner+name` instead. Only `.py` and `.ipynb` files are written out.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CORPUS_FILE = Path(__file__).with_name("corpus.toml")
KEPT_SUFFIXES = (".py", ".ipynb")
SPLITS = {  # name in the corpus -> folder
    "development": "dev",
    "held-out": "held_out",
    "fresh-development": "fresh_dev",
    "fresh-held-out": "fresh_held_out",
    "third-development": "third_dev",
    "third-held-out": "third_held_out",
    "fourth-development": "fourth_dev",
    "fourth-held-out": "fourth_held_out",
    "fifth-development": "fifth_dev",
    "fifth-second": "fifth_second",
    "fifth-held-out": "fifth_held_out",
    "sixth-development": "sixth_dev",
    "sixth-held-out": "sixth_held_out",
    "seventh-development": "seventh_dev",
    "seventh-second": "seventh_second",
    "seventh-held-out": "seventh_held_out",
    "eighth-development": "eighth_dev",
    "eighth-held-out": "eighth_held_out",
    "ninth-development": "ninth_dev",
    "ninth-held-out": "ninth_held_out",
    "tenth-development": "tenth_dev",
    "tenth-held-out": "tenth_held_out",
    "eleventh-development": "eleventh_dev",
    "eleventh-held-out": "eleventh_held_out",
    "twelfth-development": "twelfth_dev",
    "twelfth-held-out": "twelfth_held_out",
    "thirteenth-development": "thirteenth_dev",
    "thirteenth-held-out": "thirteenth_held_out",
    "fourteenth-development": "fourteenth_dev",
    "fourteenth-second": "fourteenth_second",
    "fourteenth-held-out": "fourteenth_held_out",
    "fifteenth-development": "fifteenth_dev",
    "fifteenth-held-out": "fifteenth_held_out",
    "sixteenth-development": "sixteenth_dev",
    "sixteenth-held-out": "sixteenth_held_out",
    "eighteenth-development": "eighteenth_dev",
    "nineteenth-development": "nineteenth_dev",
    "nineteenth-held-out": "nineteenth_held_out",
    "twentieth-development": "twentieth_dev",
    "twentieth-held-out": "twentieth_held_out",
    "twenty-first-held-out": "twenty_first_held_out",
}


@dataclass(frozen=True, slots=True)
class Repository:
    """One public repository at one commit; `paths` limits a huge one to some folders."""

    name: str
    commit: str
    split: str
    paths: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        return self.name.replace("/", "+")


def read_corpus(file: Path = CORPUS_FILE, split: str | None = None) -> list[Repository]:
    """Return the repositories of the corpus, or of one part of it."""
    entries = tomllib.loads(file.read_text(encoding="utf-8"))["repository"]
    repositories = [
        Repository(e["name"], e["commit"], e["split"], tuple(e.get("paths", ()))) for e in entries
    ]
    return [r for r in repositories if split is None or r.split == split]


def _git(git_dir: Path, *arguments: str) -> str:
    command = ["git", f"--git-dir={git_dir}", *arguments]
    done = subprocess.run(command, capture_output=True, check=True)
    return done.stdout.decode("utf-8", "surrogateescape")


def _git_dir(repository: Repository, mirror: Path | None, scratch: Path) -> Path:
    if mirror is not None:
        for candidate in (
            mirror / repository.folder / "repo" / ".git",
            mirror / repository.folder / "repo",
            mirror / repository.folder,
        ):
            if (candidate / "HEAD").exists():
                return candidate
        raise SystemExit(f"{repository.name}: no clone under {mirror}")
    git_dir = scratch / f"{repository.folder}.git"
    if not (git_dir / "HEAD").exists():
        subprocess.run(["git", "init", "-q", "--bare", str(git_dir)], check=True)
    url = f"https://github.com/{repository.name}"
    _git(git_dir, "fetch", "-q", "--depth", "1", url, repository.commit)
    return git_dir


def _blobs(git_dir: Path, repository: Repository) -> Iterator[tuple[str, str]]:
    """Yield (blob id, path) of each plain Python or notebook file."""
    listing = _git(git_dir, "ls-tree", "-r", "-z", repository.commit, *repository.paths)
    for entry in filter(None, listing.split("\0")):
        meta, path = entry.split("\t", 1)
        mode, _, blob = meta.split()
        if mode in ("100644", "100755") and path.endswith(KEPT_SUFFIXES):
            yield blob, path


def extract(repository: Repository, git_dir: Path, into: Path) -> int:
    """Write the repository's Python files under `into`; return how many."""
    wanted = list(_blobs(git_dir, repository))
    reader = subprocess.Popen(
        ["git", f"--git-dir={git_dir}", "cat-file", "--batch"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert reader.stdin is not None and reader.stdout is not None
    count = 0
    for blob, path in wanted:
        reader.stdin.write(f"{blob}\n".encode())
        reader.stdin.flush()
        header = reader.stdout.readline().split()
        if header[-1] == b"missing":
            continue
        content = reader.stdout.read(int(header[2]))
        reader.stdout.read(1)
        target = into / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        count += 1
    reader.stdin.close()
    reader.wait()
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, required=True, help="folder to fill")
    parser.add_argument("--split", choices=sorted(SPLITS), help="only one part")
    parser.add_argument("--mirror", type=Path, help="folder of clones named owner+name")
    args = parser.parse_args()
    args.into.mkdir(parents=True, exist_ok=True)
    for repository in read_corpus(split=args.split):
        target = args.into / SPLITS[repository.split] / repository.folder
        stamp = target.parent / f".{repository.folder}.commit"
        if stamp.exists() and stamp.read_text() == repository.commit:
            continue
        count = extract(repository, _git_dir(repository, args.mirror, args.into), target)
        stamp.write_text(repository.commit)
        print(f"{repository.split:12} {repository.name:55} {count:5} files", flush=True)


if __name__ == "__main__":
    main()
