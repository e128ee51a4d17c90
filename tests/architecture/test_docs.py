"""The documentation builds without a warning, and what it shows is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from zerograd.cli.main import COMMANDS
from zerograd.rules import ALL_RULES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TUTORIAL = (ROOT / "docs" / "tutorial" / "first-finding.md").read_text(encoding="utf-8")
HOW_TO = sorted((ROOT / "docs" / "how-to").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("tests/README.md")]
# Everything that people read on a code host, where no page has been generated.
LINKED = [*PAGES, *ROOT.glob("docs/**/*.md"), *ROOT.glob("modules/**/*.md")]
LINKED += [*ROOT.glob("*.md"), *ROOT.glob("benchmarks/**/*.md"), *ROOT.glob("examples/**/*.md")]


def fences(text: str, tag: str) -> list[str]:
    return re.findall(rf"^```{tag}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def check(folder: Path, source: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(source, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "zerograd", "check", *words, "train.py"],
        cwd=folder, capture_output=True, encoding="utf-8", timeout=60, check=False,
        env={"PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("torch", reason="the reference imports the public names")
    out = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.mark.xdist_group("site")
def test_the_site_has_every_rule_and_command(site):
    rules = (site / "reference" / "rules" / "index.html").read_text(encoding="utf-8")
    for rule in ALL_RULES:
        assert f'href="{rule.name}.html"' in rules
        assert (site / "reference" / "rules" / f"{rule.name}.html").exists()
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"usage: zerograd {name}" in commands


@pytest.mark.xdist_group("site")
def test_links_to_sources_lead_to_the_pages_made_of_them(site):
    text = (site / "explanation" / "semantics.html").read_text(encoding="utf-8")
    assert 'href="../reference/rules/stale-gradient.html"' in text
    assert 'href="reference/rules/index.html"' in (site / "index.html").read_text(encoding="utf-8")
    assert 'href="../reference/json.html"' in (site / "how-to" / "ci.html").read_text("utf-8")
    assert not any(
        "src/zerograd/rules/" in page.read_text("utf-8") for page in site.rglob("*.html")
    )


@pytest.mark.xdist_group("site")
def test_the_site_needs_no_network(site):
    loaded = re.compile(
        r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"(https?:)?//", re.IGNORECASE
    )
    for page in site.rglob("*.html"):
        found = loaded.search(page.read_text(encoding="utf-8"))
        assert found is None, f"{page.name}: {found and found[0]}"


@pytest.mark.xdist_group("site")
def test_tags_of_tests_are_not_shown(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "# expect:" not in text and "```" not in text, page.name


def test_the_finding_in_the_readme_is_what_check_says(tmp_path):
    source, shown = fences(README, "python")[0], fences(README, "text")[0]
    done = check(tmp_path, source)
    assert shown == f"$ zerograd check train.py\n{done.stdout}"
    assert done.returncode == 1


def test_the_fix_in_the_readme_is_what_fix_writes(tmp_path):
    source, diff = fences(README, "python")[0], fences(README, "diff")[0]
    check(tmp_path, source, "--fix")
    before = [line[1:] for line in diff.splitlines() if line[0] in " -"]
    after = [line[1:] for line in diff.splitlines() if line[0] in " +"]
    assert "\n".join(before) in source
    assert (tmp_path / "train.py").read_text(encoding="utf-8") == source.replace(
        "\n".join(before), "\n".join(after)
    )


def test_the_tutorial_does_what_it_says(tmp_path):
    source = fences(TUTORIAL, "python")[0]
    done = check(tmp_path, source)
    assert done.stdout.startswith("train.py:10:5: ZG101 stale-gradient\n  error: optimizer.step() ")
    assert check(tmp_path, source, "--fix").returncode == 0
    fixed = (tmp_path / "train.py").read_text(encoding="utf-8")
    assert fixed == source + "    optimizer.zero_grad()\n"
    assert check(tmp_path, fixed).returncode == 0


def test_the_readme_says_the_whole_story_on_its_first_screen():
    first = "\n".join(README.splitlines()[:50])
    for word in (
        "bucket",
        "zerograd check train.py",
        "**find**",
        "**see**",
        "**prevent**",
        "**learn**",
    ):
        assert word in first


@pytest.mark.parametrize("page", HOW_TO, ids=lambda path: path.name)
def test_settings_in_the_docs_are_settings_that_check_takes(page, tmp_path):
    for number, settings in enumerate(fences(page.read_text(encoding="utf-8"), "toml")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "pyproject.toml").write_text(settings, encoding="utf-8")
        assert check(folder, "x = 1\n").returncode == 0, settings


def test_the_allow_comment_in_the_docs_allows(tmp_path):
    page = (ROOT / "docs" / "how-to" / "allow.md").read_text(encoding="utf-8")
    broken = fences(README, "python")[0]
    allowed = broken.replace("optimizer.step()\n", fences(page, "python")[0])
    assert allowed != broken
    assert check(tmp_path, allowed).returncode == 0


def test_the_hooks_we_offer_call_commands_there_are(tmp_path):
    (tmp_path / "train.py").write_text("x = 1\n", encoding="utf-8")
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    for entry in re.findall(r"entry: zerograd (.+)$", hooks, re.MULTILINE):
        words = [sys.executable, "-m", "zerograd", *entry.split(), "train.py"]
        assert subprocess.run(words, cwd=tmp_path, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no make")
def test_the_demo_shows_a_finding_before_torch_is_installed(tmp_path):
    words = ["make", "--dry-run", "demo", f"VENV={tmp_path / 'env'}"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert 0 < done.stdout.index("zerograd check") < done.stdout.index("Installing PyTorch")


@pytest.mark.parametrize("page", sorted(set(LINKED)), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere_in_a_checkout(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_make_help_names_every_target_people_are_told_of():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    texts = [README, *(path.read_text(encoding="utf-8") for path in PAGES)]
    for target in {name for text in texts for name in re.findall(r"make ([a-z-]+)\b", text)}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target}"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no make")
def test_make_help_lists_every_target_that_says_what_it_does():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    command = ["make", "--no-print-directory", "help"]  # inside `make test`, make would say where
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    listed = {line.split()[0] for line in done.stdout.splitlines()}
    assert listed == set(re.findall(r"^([^\s:]+):.*## ", makefile, re.MULTILINE))


def test_every_bench_target_has_something_to_run():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"-m (benchmarks[.\w]+)", makefile))
    assert named
    missing = {
        name
        for name in named
        if not (ROOT / name.replace(".", "/")).with_suffix(".py").is_file()
        and not (ROOT / name.replace(".", "/") / "__main__.py").is_file()
    }
    assert missing == set()


def test_a_build_machine_runs_the_same_as_everybody():
    run = ROOT / ".ci" / "run"
    assert "make test" in run.read_text(encoding="utf-8")
    assert os.access(run, os.X_OK)
