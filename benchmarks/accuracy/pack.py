"""Pack what a measurement needs of a corpus into one small archive, to take it elsewhere.

    python -m benchmarks.accuracy.pack --corpus CORPUS/dev --corpus CORPUS/held_out \\
        --into .scratch/corpus.tar.xz

Every `.py` file keeps its place, because an import is resolved by what a folder holds; those
without a word of training in them are kept empty. Of notebooks only the sources of the code
cells are kept. A measurement of what is unpacked gives the same figures, to the last mutant.
"""

from __future__ import annotations

import argparse
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

WORDS = (b"zero_grad", b"backward", b".step", b".grad", b"optim", b"Optim", b"unscale_")


def packed(path: Path) -> bytes | None:
    """Return what of a file is taken along, or None where it is not needed."""
    raw = path.read_bytes()
    if path.suffix == ".py":
        return raw if any(word in raw for word in WORDS) else b""
    if path.suffix != ".ipynb" or b"backward" not in raw or b"step" not in raw:
        return None
    try:
        cells = json.loads(raw)["cells"]
        kept = [
            {"cell_type": cell["cell_type"], "source": cell["source"]}
            for cell in cells
            if cell.get("cell_type") == "code"
        ]
    except (ValueError, KeyError, TypeError):
        return None
    return json.dumps({"cells": kept}).encode("utf-8", "surrogatepass")


def files_of(corpus: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name in the archive and the content of each file that is taken along."""
    for path in sorted(corpus.rglob("*")):
        if path.suffix in (".py", ".ipynb") and path.is_file():
            content = packed(path)
            if content is not None:
                yield f"{corpus.name}/{path.relative_to(corpus).as_posix()}", content


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, action="append", required=True)
    parser.add_argument("--into", type=Path, required=True, help="archive: .tar.xz or .tar.gz")
    args = parser.parse_args()
    mode = "w:gz" if args.into.suffix == ".gz" else "w:xz"
    count = size = 0
    with tarfile.open(args.into, mode) as archive:  # type: ignore[call-overload]
        for corpus in args.corpus:
            for name, content in files_of(corpus):
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
                count, size = count + 1, size + len(content)
    told = args.into.stat().st_size
    print(f"{count} files, {size / 1e6:.0f} MB, {told / 1e6:.1f} MB packed")


if __name__ == "__main__":
    main()
