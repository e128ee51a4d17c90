"""Imports resolved to files of the same project, by reading folders only."""

from __future__ import annotations

from pathlib import Path

import pytest

from zerograd import check_paths
from zerograd.static import neighbours
from zerograd.static import project as module
from zerograd.static.project import Project
from zerograd.static.source import Source


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name} .grad\n")


def found(path: str, name: str, level: int = 0, roots: tuple[str, ...] = ()) -> str | None:
    project = Project(roots)
    source = Source.read(Path(path).read_bytes(), path)
    project.start(source)
    other = project.find(source, name, level)
    return None if other is None else other.path


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("def go(loss):\n    loss.backward()\n", True),
        ("def go(fill):\n    run_backward(fill)\n", True),
        ("norm = p.grad.norm()\n", True),
        ("# kept for backward compatibility, and backwards too\n", False),
        ("self.grad_checkpointing = False\n", False),
        ("import math\n", False),
    ],
)
def test_a_module_is_read_for_what_it_does_to_gradients_and_not_for_what_it_speaks_of(
    tree: Path, text: str, is_read: bool
) -> None:
    write(tree, "train.py")
    (tree / "engine.py").write_text(text)
    assert (found("train.py", "engine") == "engine.py") is is_read


def test_a_module_beside_the_script_is_found(tree: Path) -> None:
    write(tree, "train.py", "engine.py")
    assert found("train.py", "engine") == "engine.py"


def test_a_package_beside_the_script_is_found(tree: Path) -> None:
    write(tree, "train.py", "core/__init__.py", "core/loop.py", "core/ns/deep.py")
    assert found("train.py", "core") == "core/__init__.py"
    assert found("train.py", "core.loop") == "core/loop.py"
    assert found("train.py", "core.ns.deep") == "core/ns/deep.py"


def test_relative_imports_are_found(tree: Path) -> None:
    write(tree, "p/__init__.py", "p/a.py", "p/q/__init__.py", "p/q/b.py")
    assert found("p/q/b.py", "a", 2) == "p/a.py"
    assert found("p/a.py", "q.b", 1) == "p/q/b.py"
    assert found("p/a.py", "", 1) == "p/__init__.py"
    assert found("p/a.py", "nothing", 1) is None
    assert found("p/a.py", "a", 40) is None


def test_an_absolute_import_is_found_from_inside_its_package(tree: Path) -> None:
    write(tree, "p/__init__.py", "p/q/__init__.py", "p/q/b.py", "p/c.py")
    assert found("p/q/b.py", "p.c") == "p/c.py"


def test_a_src_layout_is_found_from_the_scripts_folder(tree: Path) -> None:
    write(tree, "src/p/__init__.py", "src/p/c.py", "scripts/train.py")
    assert found("scripts/train.py", "p.c") == "src/p/c.py"


def test_the_root_of_the_project_is_searched_from_its_folders(tree: Path) -> None:
    write(tree, "losses.py", "experiments/one/train.py")
    assert found("experiments/one/train.py", "losses") == "losses.py"


def test_folders_above_the_project_are_left_alone(tree: Path) -> None:
    write(tree, "outside.py", "repo/.git/HEAD", "repo/train.py")
    assert found("repo/train.py", "outside") is None


def test_without_any_root_only_the_own_package_counts(tree: Path) -> None:
    (tree / "pyproject.toml").unlink()
    write(tree, "other.py", "d/train.py", "d/near.py")
    assert found("d/train.py", "near") == "d/near.py"
    assert found("d/train.py", "other") is None
    assert found("d/train.py", "other", roots=(".",)) == "other.py"


def test_a_package_wins_over_a_module_and_a_module_over_a_plain_folder(tree: Path) -> None:
    write(tree, "train.py", "a.py", "a/__init__.py", "b.py", "b/data.txt")
    assert found("train.py", "a") == "a/__init__.py"
    assert found("train.py", "b") == "b.py"


def test_libraries_are_not_found(tree: Path) -> None:
    write(tree, "train.py")
    assert found("train.py", "torch.optim") is None


def test_a_module_does_not_find_itself(tree: Path) -> None:
    write(tree, "train.py")
    assert found("train.py", "train") is None


def test_broken_and_huge_modules_are_none(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tree, "train.py", "large.py")
    (tree / "broken.py").write_text("for x in")
    (tree / "folder.py").mkdir()
    monkeypatch.setattr(neighbours, "MOST_BYTES", 5)
    assert found("train.py", "broken") is None
    assert found("train.py", "large") is None
    assert found("train.py", "folder") is None


def test_modules_without_a_word_about_gradients_are_not_parsed(tree: Path) -> None:
    write(tree, "train.py")
    (tree / "paths.py").write_text("import os\n")
    assert found("train.py", "paths") is None


def test_that_another_looked_into_a_plain_module_makes_it_no_module_of_training(
    tree: Path,
) -> None:
    write(tree, "train.py")
    (tree / "paths.py").write_text("import os\n")
    project = Project()
    source = Source.parse("", "train.py")
    project.start(source)
    plain = project.find(source, "paths", plain=True)
    assert plain is not None
    assert project.find(source, "paths") is None
    assert project.find(source, "paths", plain=True) is plain


def test_a_file_may_look_into_so_many_modules_only(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_PER_FILE", 3)
    write(tree, "train.py", *(f"m{n}.py" for n in range(6)))
    project = Project()
    source = Source.parse("", "train.py")
    for _ in range(2):  # the allowance is by file, whatever is known from before
        project.start(source)
        hits = [project.find(source, f"m{n}") is not None for n in range(6)]
        assert hits == [True, True, True, False, False, False]
        assert project.find(source, "m0") is not None


def test_modules_are_parsed_once(tree: Path) -> None:
    write(tree, "train.py", "a.py")
    project = Project()
    source = Source.parse("", "train.py")
    project.start(source)
    assert project.find(source, "a") is project.find(source, "a")


def test_a_module_that_was_imported_is_not_parsed_again_to_be_checked(tree: Path) -> None:
    write(tree, "train.py", "a.py")
    project = Project()
    source = Source.parse("", "train.py")
    project.start(source)
    imported = project.find(source, "a")
    data = Path("a.py").read_bytes()
    assert project.source_of(data, "a.py") is imported
    assert project.source_of(data + b"x = 1\n", "a.py").text.endswith("x = 1\n")


def test_files_that_nobody_imports_are_not_held(tree: Path) -> None:
    write(tree, "a.py", "b.py")
    project = Project()
    for name in ("a.py", "b.py"):
        project.start(project.source_of(Path(name).read_bytes(), name))
    assert not project._sources


def test_no_more_modules_are_kept_than_allowed(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 2)
    write(tree, "train.py", *(f"m{n}.py" for n in range(5)))
    project = Project()
    source = Source.parse("", "train.py")
    project.start(source)
    assert all(project.find(source, f"m{n}") for n in range(5))
    assert len(project._sources) == 2


def test_a_base_class_elsewhere_may_clear_before_it_calls(tree: Path) -> None:
    (tree / "passes.py").write_text(
        "class Passes:\n"
        "    def train_epoch(self, loader):\n"
        "        for x in loader:\n"
        "            self.zero_grad()\n"
        "            out = self.forward(x)\n"
    )
    (tree / "gan.py").write_text(
        "import torch\n"
        "from torch import nn\n"
        "from passes import Passes\n"
        "class Gan(nn.Module, Passes):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.d, self.g = nn.Linear(2, 1), nn.Linear(2, 2)\n"
        "        self.opt_d = torch.optim.Adam(self.d.parameters())\n"
        "        self.opt_g = torch.optim.Adam(self.g.parameters())\n"
        "    def forward(self, x):\n"
        "        self.d(self.g(x).detach()).mean().backward()\n"
        "        self.opt_d.step()\n"
        "        self.zero_grad()\n"
        "        out = self.g(x)\n"
        "        self.d(out).mean().backward()\n"
        "        self.opt_g.step()\n"
        "        return out\n"
    )
    assert not check_paths(["gan.py"]).findings
    (tree / "passes.py").write_text("class Passes:\n    def no_step(self): ...\n")
    assert [each.rule.code for each in check_paths(["gan.py"]).findings] == ["ZG201"]


def test_a_guard_of_another_file_is_shown_where_it_stands(tree: Path) -> None:
    (tree / "update.py").write_text(
        "\n" * 30 + "def go(opt, due):\n    if due:\n        opt.step()\n        opt.zero_grad()\n"
    )
    (tree / "train.py").write_text(
        "import torch\n"
        "from update import go\n"
        "net = torch.nn.Linear(2, 2)\n"
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for i, x in enumerate(loader):\n"
        "    (net(x).mean() / accumulate).backward()\n"
        "    go(opt, i % accumulate == 0)\n"
    )
    (finding,) = check_paths(["train.py"]).findings
    assert (finding.rule.code, finding.spot.path, finding.spot.line) == ("ZG504", "train.py", 7)


def test_a_base_class_elsewhere_may_update_the_scaler(tree: Path) -> None:
    base = (
        "import torch\n"
        "class Learner:\n"
        "    def __init__(self, net, opt):\n"
        "        self.net, self.opt = net, opt\n"
        "        self.scaler = torch.cuda.amp.GradScaler()\n"
        "    def run(self, loader):\n"
        "        for x in loader:\n"
        "            self.train_batch(x)\n"
        "            self.scaler.update()\n"
        "def step(learner, opt):\n"
        "    learner.scaler.step(opt)\n"
    )
    (tree / "learner.py").write_text(base)
    (tree / "images.py").write_text(
        "from learner import Learner, step\n"
        "class Images(Learner):\n"
        "    def train_batch(self, x):\n"
        "        self.opt.zero_grad()\n"
        "        self.scaler.scale(self.net(x).mean()).backward()\n"
        "        step(self, self.opt)\n"
    )
    assert not check_paths(["images.py"]).findings
    (tree / "learner.py").write_text(base.replace("            self.scaler.update()\n", ""))
    assert [each.rule.code for each in check_paths(["images.py"]).findings] == ["ZG302"]


MAKER = """
def make_step(net, loss_fn, opt):
    def step(x, y):
        loss = loss_fn(net(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step
"""
TAKER = """
from maker import make_step

def run(net, loss_fn, opt, data):
    step = make_step(net, loss_fn, opt)
    for x, y in data:
        {clear}
        step(x, y)
"""


@pytest.mark.parametrize(("clear", "lines"), [("opt.zero_grad()", []), ("print(x)", [6])])
def test_a_made_function_is_judged_where_nobody_clears_around_it(
    tree: Path, clear: str, lines: list[int]
) -> None:
    (tree / "maker.py").write_text(MAKER)
    (tree / "taker.py").write_text(TAKER.format(clear=clear))
    said = check_paths(["maker.py"]).findings
    assert [each.spot.line for each in said] == lines


OWN_OPTIMIZER = """
class Optimizer:
    def __init__(self, params):
        self.params = list(params)
    def step(self):
        for p in self.params:
            self.move(p)
            {then}
    def move(self, p):
        pass
    def drop(self, p):
        p.grad = None
"""
SCRIPT = """
import torch
from kit.optimizers import Plain
net = torch.nn.Linear(2, 1)
optimizer = Plain(net.parameters())
for x in torch.randn(4, 3, 2):
    net(x).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("then", "codes"), [("self.drop(p)", []), ("pass", ["ZG101"])])
def test_a_package_that_only_hands_on_is_read_for_what_its_classes_inherit(
    tree: Path, then: str, codes: list[str]
) -> None:
    package = tree / "kit" / "optimizers"
    package.mkdir(parents=True)
    (tree / "kit" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("from .plain import Plain\n")
    (package / "base.py").write_text(OWN_OPTIMIZER.format(then=then))
    (package / "plain.py").write_text(
        "from .base import Optimizer\n"
        "class Plain(Optimizer):\n"
        "    def move(self, p):\n"
        "        p.data -= 0.1 * p.grad\n"
    )
    (tree / "script.py").write_text(SCRIPT)
    result = check_paths([str(tree)])
    assert [each.rule.code for each in result.findings] == codes


@pytest.mark.parametrize(("clear", "codes"), [("self.way.opt.zero_grad()", []), ("", ["ZG101"])])
def test_a_caller_far_from_its_call_may_clear(tree: Path, clear: str, codes: list[str]) -> None:
    (tree / "ways").mkdir()
    (tree / "runs").mkdir()
    (tree / "ways" / "plain.py").write_text(
        "import torch\n"
        "class Plain:\n"
        "    def set_up(self, net):\n"
        "        self.opt = torch.optim.SGD(net.parameters(), 0.1)\n"
        "    def backward(self, loss):\n"
        "        loss.backward()\n"
        "        self.opt.step()\n"
    )
    between = "        x = self.prepare(x, self.settings, self.where)\n" * 20
    (tree / "runs" / "run.py").write_text(
        "from ways.plain import Plain\n"
        "class Run:\n"
        "    def batch(self, x):\n"
        f"        {clear}\n{between}"
        "        self.way.backward(self.net(x).mean())\n"
        f"    def prepare_all(self, x):\n{between}"
        "    def end(self, opt):\n"
        "        opt.zero_grad()\n"
    )
    result = check_paths([str(tree)])
    assert [each.rule.code for each in result.findings] == codes


HEIR = (
    "from trainer import Trainer\n"
    "class Mine(Trainer):\n"
    "    def train_step(self, x):\n"
    "        self.opt.zero_grad()\n"
    "        self.scaler.scale(self.net(x).mean()).backward()\n"
    "        self.scaler.step(self.opt)\n"
)
BASE = (
    "import torch\n"
    "class Trainer:\n"
    "    def __init__(self, net, opt):\n"
    "        self.net, self.opt = net, opt\n"
    "        self.scaler = torch.cuda.amp.GradScaler()\n"
    "    def run(self, loader):\n"
    "        for x in loader:\n"
    "            self.train_step(x)\n"
    "    def train_step(self, x):\n"
    "        self.opt.zero_grad()\n"
    "        self.scaler.scale(self.net(x).mean()).backward()\n"
    "        self.scaler.step(self.opt)\n"
    "        self.scaler.update()\n"
)


def test_a_step_that_an_heir_replaces_updates_for_itself(tree: Path) -> None:
    (tree / "trainer.py").write_text(BASE)
    (tree / "mine.py").write_text(HEIR)
    assert [each.rule.code for each in check_paths(["mine.py"]).findings] == ["ZG302"]


def test_a_caller_in_a_file_that_is_not_imported_may_update_the_scaler(tree: Path) -> None:
    (tree / "trainer.py").write_text(BASE)
    (tree / "mine.py").write_text(HEIR)
    caller = (
        "from mine import Mine\n"
        "def main(net, opt, loader):\n"
        "    mine = Mine(net, opt)\n"
        "    for x in loader:\n"
        "        mine.train_step(x)\n"
        "        mine.scaler.update()\n"
    )
    (tree / "main.py").write_text(caller)
    assert not check_paths(["mine.py"]).findings
    (tree / "main.py").write_text(caller.replace("        mine.scaler.update()\n", ""))
    assert [each.rule.code for each in check_paths(["mine.py"]).findings] == ["ZG302"]


def test_the_update_of_a_scaler_or_of_a_dict_is_no_call_of_an_update(tree: Path) -> None:
    base, heir = (text.replace("train_step", "update") for text in (BASE, HEIR))
    reads = "    def update(self, x):\n        inputs = dict()\n        inputs.update({'x': x})\n"
    (tree / "trainer.py").write_text(base)
    (tree / "mine.py").write_text(heir)
    (tree / "other.py").write_text(
        heir.replace("    def update(self, x):\n", reads)
        + "        self.scaler.update()\n"
        + "    def after(self, x):\n"
        + "        self.update(x)\n"
    )
    assert [each.rule.code for each in check_paths(["mine.py"]).findings] == ["ZG302"]


LOSSES = """def of_real(D, real, fake):
    return (1 - D(real)).relu().mean() + (1 + D(fake.detach())).relu().mean()
def of_fake(D, fake):
    return -D(fake).mean()
"""
ADVERSARIES = """import torch
from losses import of_real
import losses
def train(G, D, loader):
    g, d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
    for real, z in loader:
        fake = G(z)
{before}        of_real(D, real, fake).backward()
        d.step()
        {after}g.zero_grad()
        losses.of_fake(D, fake).backward()
        g.step()
"""


@pytest.mark.parametrize(
    ("before", "after", "codes"),
    [("        d.zero_grad()\n", "", []), ("", "d.zero_grad()\n        ", ["ZG201"])],
)
def test_a_loss_in_a_module_of_its_own_is_read_for_the_networks_it_reaches(
    tree: Path, before: str, after: str, codes: list[str]
) -> None:
    (tree / "losses.py").write_text(LOSSES)
    (tree / "main.py").write_text(ADVERSARIES.format(before=before, after=after))
    result = check_paths([str(tree / "main.py")])
    assert [each.rule.code for each in result.findings] == codes


def test_what_a_loop_says_is_read_in_the_module_it_stands_in(tree: Path) -> None:
    # The lines of the same numbers in the other module speak of a loss; the loop does not.
    (tree / "engine.py").write_text(
        "import torch\n\n\ndef losses(model, x):\n"
        + "    loss = model(x).sum()\n" * 12
        + "    return loss\n\n\ndef advance(opt):\n    opt.zero_grad()\n    opt.step()\n"
    )
    (tree / "schedule.py").write_text(
        "import torch\nfrom engine import advance\n\nmodel = torch.nn.Linear(2, 2)\n"
        "opt = torch.optim.SGD(model.parameters(), 0.1)\n"
        "schedule = torch.optim.lr_scheduler.StepLR(opt, 1)\n\n"
        "for _ in range(5):\n    advance(opt)\n    schedule.step()\n"
    )
    assert list(check_paths(["schedule.py"])) == []


DEEP = """def plan(net):
    return [{parts}]
"""


def test_what_other_modules_hold_does_not_keep_a_file_from_being_read(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zerograd.static.engine.identity.progress.FUEL", 300)
    calls = ", ".join(f"net.part_{number}().grad" for number in range(100))
    (tree / "deep.py").write_text(DEEP.format(parts=calls))
    (tree / "main.py").write_text(
        "import torch\n"
        "from deep import plan\n"
        + "".join(
            f"def train_{name}(net, opt, data):\n"
            "    plan(net)\n"
            "    for x in data:\n"
            "        opt.zero_grad\n"
            "        net(x).sum().backward()\n"
            "        opt.step()\n"
            for name in "abc"
        )
    )
    result = check_paths([str(tree / "main.py")])
    found = [each.spot.line for each in result.findings if each.rule.code == "ZG103"]
    assert found == [6, 12, 18]


def test_a_method_of_a_base_elsewhere_that_an_heir_hides_clears_nothing(tree: Path) -> None:
    (tree / "base.py").write_text(
        "import torch\n\n\n"
        "class Base:\n"
        "    def __init__(self, net):\n"
        "        self.net = net\n"
        "        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)\n\n"
        "    def step(self, x):\n"
        "        self.opt.zero_grad()\n"
        "        self.net(x).sum().backward()\n"
    )
    (tree / "heir.py").write_text(
        "from base import Base\n\n\n"
        "class Heir(Base):\n"
        "    def step(self, x):\n"
        "        loss = self.net(x).mean()\n"
        "        loss.backward()\n"
        "        self.opt.step()\n"
    )
    assert [(each.rule.code, each.spot.line) for each in check_paths(["heir.py"])] == [("ZG101", 8)]


def test_amp_of_a_copy_of_apex_in_the_project_is_known_by_name(tree: Path) -> None:
    amp = tree / "apex" / "amp"
    amp.mkdir(parents=True)
    (tree / "apex" / "__init__.py").write_text("from . import amp\n")
    (amp / "__init__.py").write_text(
        "import contextlib\n\n\n"
        "@contextlib.contextmanager\n"
        "def scale_loss(loss, optimizer):\n"
        "    yield loss\n"
        "    old = optimizer.step\n\n"
        "    def skip():\n"
        "        optimizer.zero_grad()\n"
        "        optimizer.step = old\n\n"
        "    optimizer.step = skip\n"
    )
    (tree / "train.py").write_text(
        "import torch\n"
        "from apex import amp\n\n"
        "net = torch.nn.Linear(2, 2)\n"
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for x in data:\n"
        "    loss = net(x).sum()\n"
        "    with amp.scale_loss(loss, opt) as scaled:\n"
        "        scaled.backward()\n"
        "    opt.step()\n"
    )
    assert [(each.rule.code, each.spot.line) for each in check_paths(["train.py"])] == [
        ("ZG101", 10)
    ]


HANDLER = """\
# on_step_end(state) is handed state.grad_norm, after backward() and .step()
class Handler:
    def __init__(self, callbacks):
        self.callbacks = list(callbacks)

    def on_step_end(self, state):
        self._call("on_step_end", state)

    def _call(self, event, state):
        for each in self.callbacks:
            getattr(each, event)(state)
"""
TRAINER = """\
import torch
from elsewhere import Shown
from handler import Handler

class State:
    step = 0

class Trainer:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.Adam(net.parameters())
        self.state = State()
        self.handler = Handler([Shown()])

    def fit(self, loader):
        for _ in range(9):
            CLEAR
            for x in loader:
                self.net(x).sum().backward()
                self.opt.step()
                self.handler.on_step_end(self.state)
"""


@pytest.mark.parametrize(("clear", "codes"), [("self.opt.zero_grad()", ["ZG101"]), ("print()", [])])
def test_callbacks_in_a_module_of_their_own_clear_only_for_who_does_not(
    tree: Path, clear: str, codes: list[str]
) -> None:
    (tree / "handler.py").write_text(HANDLER)
    (tree / "train.py").write_text(TRAINER.replace("CLEAR", clear))
    assert [each.rule.code for each in check_paths(["train.py"]).findings] == codes


def test_a_constructor_is_read_for_each_object_by_itself(tree: Path) -> None:
    (tree / "base.py").write_text(
        "class BaseTrainer:\n"
        "    def __init__(self, model, optimizer_g, optimizer_d, config):\n"
        "        self.model = model.to(config['device'])\n"
        "        self.optimizer_g = optimizer_g\n"
        "        self.optimizer_d = optimizer_d\n"
        "    def train(self):\n"
        "        for epoch in range(9):\n"
        "            result = self._train_epoch(epoch)\n"
    )
    (tree / "trainer.py").write_text(
        "import torch\n"
        "from base import BaseTrainer\n"
        "class Trainer(BaseTrainer):\n"
        "    def __init__(self, model, optimizer_g, optimizer_d, config, data):\n"
        "        super().__init__(model, optimizer_g, optimizer_d, config)\n"
        "        self.data = data\n"
        "        self.gen_opt = optimizer_g\n"
        "        self.dis_opt = optimizer_d\n"
        "    def _train_epoch(self, epoch):\n"
        "        for x in self.data:\n"
        "            self.optimizer_d.zero_grad()\n"
        "            self.model(x, True).mean().backward()\n"
        "            self.dis_opt.step()\n"
        "            self.optimizer_g.zero_grad()\n"
        "            self.model(x).mean().backward()\n"
        "            self.gen_opt.step()\n"
    )
    assert not check_paths(["trainer.py"]).findings


def test_what_is_cast_to_a_type_is_not_named_by_the_type(tree: Path) -> None:
    (tree / "config.py").write_text(
        "from typing import TypeVar, cast\n"
        "Opt = TypeVar('Opt')\n"
        "class Config:\n"
        "    def build(self, net) -> Opt:\n"
        "        made = self.kind()(net.parameters())\n"
        "        for group in made.param_groups:\n"
        "            group.setdefault('initial_lr', 0.1)\n"
        "        return cast(Opt, made)\n"
        "def wipe(p):\n"
        "    p.grad = None\n"
    )
    (tree / "make.py").write_text(
        "import torch\n"
        "from config import Config\n"
        "def checkpoint(seed):\n"
        "    net = torch.nn.Linear(2, 2)\n"
        "    opt = Config().build(net)\n"
        "    net(torch.randn(2)).sum().backward()\n"
        "    opt.step()\n"
        "for seed in range(3):\n"
        "    checkpoint(seed)\n"
    )
    assert not check_paths(["make.py"]).findings


@pytest.mark.parametrize("module", ["trainers", "kit.trainers"])
@pytest.mark.parametrize("clears", [True, False])
def test_a_base_written_with_its_module_is_read(tree: Path, clears: bool, module: str) -> None:
    write(tree, "kit/__init__.py")
    (tree / f"{module.replace('.', '/')}.py").write_text(
        "class Trainer:\n"
        "    def __init__(self):\n"
        "        self.opts = {}\n"
        "    def run(self, data):\n"
        "        for x in data:\n"
        + ("            self.clear()\n" if clears else "")
        + "            self.iterate(x)\n"
        "    def clear(self):\n"
        "        for opt in self.opts.values():\n"
        "            opt.zero_grad()\n"
    )
    (tree / "own.py").write_text(
        "import torch\n"
        f"import {module}\n"
        f"class Own({module}.Trainer):\n"
        "    def __init__(self, net):\n"
        "        super().__init__()\n"
        "        self.net = net\n"
        "        self.opts['net'] = torch.optim.Adam(net.parameters())\n"
        "    def iterate(self, x):\n"
        "        loss = self.net(x).mean()\n"
        "        loss.backward()\n"
        "        self.opts['net'].step()\n"
    )
    found = [(each.rule.code, each.spot.line) for each in check_paths(["own.py"])]
    assert found == ([] if clears else [("ZG101", 11)])


@pytest.mark.parametrize("cleared", ["user", "item"])
def test_the_loop_of_a_base_is_read_though_nothing_in_its_file_touches_gradients(
    tree: Path, cleared: str
) -> None:
    (tree / "abstract.py").write_text(
        "class Abstract:\n"
        "    def run(self, data, model, opts):\n"
        "        for batch in data:\n"
        "            self.learn(model(batch), opts)\n"
    )
    (tree / "tower.py").write_text(
        "import torch\n"
        "from abstract import Abstract\n"
        "class Tower(Abstract):\n"
        "    def learn(self, loss, opts):\n"
        "        user, item = opts\n"
        f"        {cleared}.zero_grad()\n"
        "        loss.backward()\n"
        "        user.step()\n"
        "        item.step()\n"
        "def main(model, data):\n"
        "    user = torch.optim.SGD(model.user.parameters(), 0.1)\n"
        "    Tower().run(data, model, (user, torch.optim.SGD(model.item.parameters(), 0.1)))\n"
    )
    (finding,) = check_paths(["tower.py"]).findings
    assert (finding.rule.code, finding.spot.line) == ("ZG101", 9 if cleared == "user" else 8)


@pytest.mark.parametrize("cleared", [False, True])
def test_a_factory_that_imports_its_optimizer_by_name_is_read(tree: Path, cleared: bool) -> None:
    (tree / "made.py").write_text(
        "from torch.optim import AdamW\n"
        "def make(model, crf):\n"
        "    return AdamW([{'params': model.parameters()}, {'params': crf.parameters()}])\n"
    )
    (tree / "train.py").write_text(
        "from made import make\n"
        "def train(model, crf, data):\n"
        "    opt = make(model, crf)\n"
        "    for x in data:\n"
        "        crf(model(x)).backward()\n"
        "        opt.step()\n"
        f"        model.zero_grad(){'; crf.zero_grad()' if cleared else ''}\n"
    )
    findings = check_paths(["train.py"]).findings
    assert [(each.rule.code, each.spot.line) for each in findings] == [("ZG101", 6)][cleared:]


def test_a_loop_whose_step_stands_in_another_file_is_found_from_its_own(tree: Path) -> None:
    (tree / "engine.py").write_text(
        "from parts import apply_update\n"
        "def train(model, data, optimizer):\n"
        "    for x in data:\n"
        "        loss = model(x).mean()\n"
        "        loss.backward()\n"
        "        apply_update(optimizer)\n"
    )
    (tree / "parts.py").write_text("def apply_update(optimizer):\n    optimizer.step()\n")
    (finding,) = check_paths(["engine.py"]).findings
    assert (finding.rule.code, finding.spot.path, finding.spot.line) == ("ZG101", "parts.py", 2)


def test_of_starred_modules_only_those_are_read_that_may_have_the_name(tree: Path) -> None:
    write(tree, "train.py", "nets/__init__.py", "nets/small.py", "nets/large.py", "nets/more.py")
    (tree / "nets/small.py").write_text("def tiny(net): net.grad\n")
    (tree / "nets/more.py").write_text("from .small import *\n# .grad\n")
    package = Source.read(b"", "nets/__init__.py")
    project = Project()
    project.start(package)
    given = [project.find(package, name, 1, giving="tiny") for name in ("small", "large", "more")]
    assert [each and each.path for each in given] == ["nets/small.py", None, "nets/more.py"]
    assert project.find(package, "large", 1) is not None  # asked for by its own name


def test_a_name_comes_through_the_star_of_a_star(tree: Path) -> None:
    write(tree, "nets/large.py")
    (tree / "nets/__init__.py").write_text("from .large import *\nfrom .more import *\n")
    (tree / "nets/more.py").write_text("from .small import *  # .grad\n")
    (tree / "nets/small.py").write_text("def update(opt, loss):\n    loss.backward(); opt.step()\n")
    (tree / "train.py").write_text(
        "import torch, nets\nnet = torch.nn.Linear(2, 2)\n"
        "opt = torch.optim.SGD(net.parameters())\n"
        "for x in data:\n    nets.update(opt, net(x).sum())\n"
    )
    (finding,) = check_paths("train.py")
    assert (finding.rule.code, finding.spot.path) == ("ZG101", "nets/small.py")
