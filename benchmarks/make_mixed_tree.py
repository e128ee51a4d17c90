"""Write a tree of about ten thousand Python files from pinned source distributions.

    python -m benchmarks.make_mixed_tree --into .scratch/mixed [--downloads .scratch/sdists]

The tree is what a machine-learning company's checkout looks like to a checker: much code
that trains nothing (a web framework, a computer algebra system) beside libraries and
their training scripts. pip fetches the archives, and each must match its checksum.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tarfile
from pathlib import Path, PurePosixPath

PINNED = {
    "accelerate==1.15.0": "5654f8c5eaa0d4fa68b33e287a97765da6849bf6d51dcac874e73fbbddfb6134",
    "diffusers==0.42.1": "ce855ab670c8cd1c7a61be8f12fbc68c081bca8ec5e747273946d8d6c2aff23b",
    "django==5.2.19": "ad03d8abc51dbff95ebf34b27123cf0c26a3b62db7ba0cd520783686362533d1",
    "keras==3.15.1": "92ae7c1dd7f61041953dc2d42253181ee099086f0b58ae36fcf98147a6f08a29",
    "lightning==2.6.6": "1c6329e241f8a85f29fedead89c1ee138b36caa08de60c260c6a7eaee81c8295",
    "peft==0.21.2": "b803ccfb3f3f316004d850284306687833a2235ea278fb56abc856203456142e",
    "pytorch_lightning==2.6.6": "52c52b20522dd3d3feb3bb3aae2dbe3f291e8e836d4111a74cfd72e9df018834",
    "sympy==1.14.0": "d3d3fe8df1e5a0b42f0e7bdf50541697dbe7d23746e894990c030e2b05e72517",
    "timm==1.0.30": "1444a3af7e17fdba5440ac2bcf6e4b728da96dd62289ed9e1bcba31a545f5935",
    "transformers==5.22.2": "55f57e5cbd7c0b500b7a706daa0ecd76567b56ca139e6e02ef0bba0437e3a763",
    "trl==1.16.0": "999bd4a85b08870b7bfa387e1efa5177d2a4b88fe82b2526a057ac5d3cc600cd",
}


def archive_of(requirement: str, downloads: Path) -> Path:
    """Return the archive of a pinned distribution, fetched if it is not there yet."""
    name = requirement.replace("==", "-") + ".tar.gz"
    archive = downloads / name
    if not archive.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", ":all:", "--dest", str(downloads), requirement]
        subprocess.run(command, check=True)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != PINNED[requirement]:
        raise SystemExit(f"{archive}: its checksum is {digest}, not the pinned one")
    return archive


def unpack(archive: Path, into: Path) -> int:
    """Write the archive's Python files under `into`; return how many."""
    count = 0
    with tarfile.open(archive) as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            if not member.isfile() or path.suffix != ".py" or ".." in path.parts:
                continue
            content = tar.extractfile(member)
            assert content is not None
            target = into.joinpath(*path.parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())
            count += 1
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, required=True, help="folder to fill")
    parser.add_argument("--downloads", type=Path, default=Path(".scratch/sdists"))
    args = parser.parse_args()
    args.downloads.mkdir(parents=True, exist_ok=True)
    total = 0
    for requirement in PINNED:
        count = unpack(archive_of(requirement, args.downloads), args.into)
        print(f"{requirement:28} {count:6} files")
        total += count
    print(f"{'all':28} {total:6} files")


if __name__ == "__main__":
    main()
