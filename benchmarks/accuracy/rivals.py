"""Run the other static checkers over the same originals and mutants as zerograd.

    python -m benchmarks.accuracy.rivals install --rivals .scratch/rivals
    python -m benchmarks.accuracy.rivals measure --rivals .scratch/rivals \\
        --corpus .scratch/corpus/dev --sample 150 --results FILE

Each lives in an environment of its own; dslinter's pinned pylint no longer builds, so it
gets one it runs on. A rival has found a mutant if it says of it anything about gradients,
at any line, that it does not say of the original: more generous than zerograd's own
"right code, right line". Slow as they are, they see a sample of each kind, drawn by seed;
zerograd's figure beside theirs is on the same sample.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import venv
from collections import Counter, defaultdict
from pathlib import Path

from benchmarks.accuracy.checkers import RIVALS, Said, zerograd
from benchmarks.accuracy.mutants import Mutant, Subject
from benchmarks.accuracy.mutations import MUTATIONS, mutate
from benchmarks.accuracy.worklist import distinct_units

INSTALLS: dict[str, list[list[str]]] = {
    "torch-preflight": [["torch-preflight==0.5.0"]],
    "dslinter": [["pylint==2.17.7", "astroid==2.15.8", "mypy"], ["--no-deps", "dslinter==2.0.9"]],
    "mldoct": [["--no-deps", "mldoct==1.0.0"]],
}


def install(rivals: Path) -> None:
    for name, steps in INSTALLS.items():
        if (rivals / name).exists():
            continue
        venv.create(rivals / name, with_pip=True)
        for arguments in steps:
            command = [str(rivals / name / "bin" / "python"), "-m", "pip", "install", "--quiet"]
            subprocess.run([*command, *arguments], check=True)


PLAIN_FAULT = """\
import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(8, 4, 2):
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
"""


def probe(rivals: Path) -> None:
    """Stop if one is silent on a loop that never clears: then it does not run as it should."""
    with tempfile.TemporaryDirectory(prefix="rivals-") as name:
        path = Path(name) / "plain_fault.py"
        path.write_text(PLAIN_FAULT)
        silent = [tool for tool, run in RIVALS.items() if not run([path], rivals)]
    if silent:
        sys.exit(f"{', '.join(silent)}: silent on a loop that never clears; install it again")


def draw(corpus: Path, sample: int, seed: int) -> list[tuple[Mutant, str]]:
    """Return at most `sample` mutants of each kind, with the text of their originals."""
    kinds: dict[str, list[tuple[Mutant, str]]] = defaultdict(list)
    seen: set[str] = set()
    for repository in sorted(p for p in corpus.iterdir() if p.is_dir()):
        for _, text, units, _ in distinct_units(repository, seen):
            for unit in units:
                for mutant in mutate(Subject(text, unit)):
                    if isinstance(mutant, Mutant):
                        kinds[mutant.kind].append((mutant, text))
    chance = random.Random(seed)
    return [
        chosen
        for kind in MUTATIONS
        for chosen in chance.sample(kinds[kind], min(sample, len(kinds[kind])))
    ]


def new_findings(said: list[Said], folder: Path) -> tuple[set[int], dict[int, list[Said]]]:
    """Return the numbers of mutants with more findings than their original, and all said."""
    counts: Counter[str] = Counter(Path(s.path).name for s in said)
    of_mutant: dict[int, list[Said]] = defaultdict(list)
    for s in said:
        if Path(s.path).name.startswith("m"):
            of_mutant[int(Path(s.path).stem[1:])].append(s)
    more = {n for n in of_mutant if counts[f"m{n:05}.py"] > counts[f"o{n:05}.py"]}
    return more, of_mutant


def measure(corpus: Path, rivals: Path, sample: int, seed: int) -> dict[str, object]:
    drawn = draw(corpus, sample, seed)
    rows: dict[str, dict[str, int]] = {kind: {"mutants": 0} for kind in MUTATIONS}
    for mutant, _ in drawn:
        rows[mutant.kind]["mutants"] += 1
    with tempfile.TemporaryDirectory(prefix="rivals-") as name:
        folder = Path(name)
        for number, (mutant, original) in enumerate(drawn):
            for letter, text in (("m", mutant.text), ("o", original)):
                target = folder / f"{letter}{number:05}.py"
                target.write_text(text, encoding="utf-8", errors="surrogatepass")
        paths = sorted(folder.glob("*.py"))
        for tool in ("zerograd", *RIVALS):
            said = zerograd(paths) if tool == "zerograd" else RIVALS[tool](paths, rivals)
            more, of_mutant = new_findings(said, folder)
            for number, (mutant, _) in enumerate(drawn):
                strict = any(
                    s.code in mutant.codes and s.line in mutant.lines for s in of_mutant[number]
                )
                found = strict if tool == "zerograd" else number in more
                row = rows[mutant.kind]
                row[tool] = row.get(tool, 0) + found
            print(tool, "done", flush=True)
    return {"sample_of_each_kind": sample, "seed": seed, "found": rows}


def originals(corpus: Path, rivals: Path) -> dict[str, object]:
    """Return how many training files of the corpus each tool says something of, untouched."""
    seen: set[str] = set()
    paths = [
        path
        for repository in sorted(p for p in corpus.iterdir() if p.is_dir())
        for path, _, units, _ in distinct_units(repository, seen)
        if units and path.suffix == ".py"
    ]
    result: dict[str, object] = {"training_files": len(paths)}
    for tool, run in RIVALS.items():
        said = run(paths, rivals)
        result[tool] = {"findings": len(said), "files": len({s.path for s in said})}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["install", "measure"])
    parser.add_argument("--rivals", type=Path, required=True)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--sample", type=int, default=100, help="mutants of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path)
    args = parser.parse_args()
    if args.action == "install":
        install(args.rivals)
        return
    if args.corpus is None:
        sys.exit("measure needs --corpus")
    probe(args.rivals)
    result = {"part": args.corpus.name.replace("_", "-"), "installed": INSTALLS}
    result |= measure(args.corpus, args.rivals, args.sample, args.seed)
    result["originals"] = originals(args.corpus, args.rivals)
    text = json.dumps(result, indent=1)
    if args.results:
        args.results.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
