"""The witness sees through frameworks: their faults are found, their right loops are silent."""

from __future__ import annotations

import logging
import warnings

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from zerograd import watch  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def codes(watching):
    return [finding.rule.code for finding in watching.findings]


def data(size=24, batch=4):
    torch.manual_seed(0)
    return DataLoader(TensorDataset(torch.randn(size, 4), torch.randn(size, 1)), batch_size=batch)


@pytest.fixture
def accelerator(monkeypatch):
    accelerate = pytest.importorskip("accelerate")
    from accelerate.state import AcceleratorState, GradientState

    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    yield lambda **options: accelerate.Accelerator(cpu=True, **options)
    AcceleratorState._reset_state(True)
    GradientState._reset_state()


class TestAccelerate:
    def train(self, accelerator, body, **options):
        accel = accelerator(**options)
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        with watch(policy="collect") as watching:
            model, optimizer, loader = accel.prepare(model, optimizer, data())
            for _ in range(3):
                for x, y in loader:
                    body(accel, model, optimizer, nn.functional.mse_loss(model(x), y))
        return watching

    def test_accumulation_is_silent(self, accelerator):
        def body(accel, model, optimizer, loss):
            with accel.accumulate(model):
                accel.backward(loss)
                if accel.sync_gradients:
                    accel.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()

        watching = self.train(accelerator, body, gradient_accumulation_steps=3)
        assert codes(watching) == []
        assert watching.steps == 6

    def test_a_missing_clear_is_found_at_the_users_line(self, accelerator):
        def body(accel, model, optimizer, loss):
            accel.backward(loss)
            optimizer.step()  # here

        watching = self.train(accelerator, body)
        assert codes(watching) == ["ZG101"]
        (finding,) = watching.findings
        assert finding.spot.path == __file__
        assert finding.owner == "optimizer"
        assert finding.live.parameters == ("weight", "bias")

    def test_a_module_cleared_in_every_micro_batch_is_found(self, accelerator):
        def body(accel, model, optimizer, loss):
            with accel.accumulate(model):
                model.zero_grad()
                accel.backward(loss)
                optimizer.step()

        assert codes(self.train(accelerator, body, gradient_accumulation_steps=2)) == ["ZG501"]


@pytest.fixture
def lightning():
    found = pytest.importorskip("lightning")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    return found


def quiet_trainer(lightning, tmp_path, **options):
    return lightning.Trainer(
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
        **options,
    )


class TestLightning:
    def module(self, lightning, *, manual=False, clear=True):
        class Net(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 1)
                self.automatic_optimization = not manual

            def training_step(self, batch, index):
                loss = nn.functional.mse_loss(self.layer(batch[0]), batch[1])
                if manual:
                    optimizer = self.optimizers()
                    if clear:
                        optimizer.zero_grad()
                    self.manual_backward(loss)
                    optimizer.step()  # here, in manual optimization
                return loss

            def configure_optimizers(self):
                return torch.optim.Adam(self.parameters(), lr=1e-3)

        return Net()

    @pytest.mark.parametrize(
        "options", [{}, {"accumulate_grad_batches": 3}, {"gradient_clip_val": 1}]
    )
    def test_automatic_optimization_is_silent(self, lightning, tmp_path, options):
        trainer = quiet_trainer(lightning, tmp_path, max_epochs=3, **options)
        with watch(policy="collect") as watching:
            trainer.fit(self.module(lightning), data())
        assert codes(watching) == []
        assert watching.steps in (6, 18)

    def test_a_clear_in_each_micro_batch_is_found_where_epochs_end_with_a_short_window(
        self, lightning, tmp_path
    ):
        module = self.module(lightning)
        module.on_train_batch_start = lambda *_: module.optimizers().zero_grad()
        trainer = quiet_trainer(lightning, tmp_path, max_epochs=6, accumulate_grad_batches=4)
        with watch(policy="collect") as watching:
            trainer.fit(module, data())
        assert codes(watching) == ["ZG501"]

    def test_manual_optimization_is_silent(self, lightning, tmp_path):
        trainer = quiet_trainer(lightning, tmp_path, max_epochs=2)
        with watch(policy="collect") as watching:
            trainer.fit(self.module(lightning, manual=True), data())
        assert codes(watching) == []
        assert watching.steps == 12

    def test_manual_optimization_without_a_clear_is_found(self, lightning, tmp_path):
        trainer = quiet_trainer(lightning, tmp_path, max_epochs=2)
        with watch(policy="collect") as watching:
            trainer.fit(self.module(lightning, manual=True, clear=False), data())
        assert codes(watching) == ["ZG101"]
        assert watching.findings[0].spot.path == __file__
        assert watching.findings[0].owner == "optimizer"

    @pytest.mark.parametrize("clear", [True, False])
    def test_fabric(self, lightning, clear):
        fabric = lightning.Fabric(accelerator="cpu", devices=1)
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        with watch(policy="collect") as watching:
            model, optimizer = fabric.setup(model, optimizer)
            for x, y in fabric.setup_dataloaders(data()):
                fabric.backward(nn.functional.mse_loss(model(x), y))
                optimizer.step()
                if clear:
                    optimizer.zero_grad()
        assert codes(watching) == ([] if clear else ["ZG101"])


class TestTransformersTrainer:
    def trainer(self, tmp_path, **options):
        transformers = pytest.importorskip("transformers")
        transformers.logging.set_verbosity_error()
        config = transformers.GPT2Config(
            vocab_size=32, n_positions=16, n_embd=16, n_layer=1, n_head=2
        )
        torch.manual_seed(0)
        rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 32, (24, 12))]
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path),
            max_steps=6,
            per_device_train_batch_size=2,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            save_strategy="no",
            logging_strategy="no",
            **options,
        )
        model = transformers.GPT2LMHeadModel(config)
        return transformers.Trainer(model=model, args=arguments, train_dataset=rows)

    @pytest.mark.parametrize("accumulation", [1, 3])
    def test_training_is_silent(self, tmp_path, accumulation):
        trainer = self.trainer(tmp_path, gradient_accumulation_steps=accumulation)
        with watch(policy="collect") as watching:
            trainer.train()
        assert codes(watching) == []
        assert watching.steps == 6
        assert watching.metrics()["zerograd/backwards"] == 6 * accumulation

    def test_a_subclass_that_forgets_gradients_is_found(self, tmp_path):
        trainer = self.trainer(tmp_path)
        usual = trainer.training_step

        def training_step(model, inputs, *rest):
            loss = usual(model, inputs, *rest)
            model.zero_grad()
            return loss

        trainer.training_step = training_step
        with watch(policy="collect") as watching:
            trainer.train()
        assert codes(watching) == ["ZG102"]


class TestCompile:
    def breaks(self, act, times=4):
        """Return the number of graphs and graph breaks that `act`, compiled, has."""
        from torch._dynamo.utils import counters

        torch._dynamo.reset()
        counters.clear()
        compiled = torch.compile(act, backend="eager")
        for _ in range(times):
            compiled()
        return counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())

    def parts(self):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
        return model, torch.optim.SGD(model.parameters(), lr=0.01), torch.randn(8, 4)

    def step_to_compile(self, kind):
        model, optimizer, x = self.parts()

        def step():
            if kind == "module clear":
                model.zero_grad()
            elif kind == "clear first":
                optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            if kind == "clip":
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if kind in ("clip", "clear last"):
                optimizer.zero_grad()

        return step

    @pytest.mark.parametrize("kind", ["clear first", "clear last", "module clear", "clip"])
    def test_a_compiled_step_has_no_more_graphs_or_breaks_than_without_us(self, kind):
        plain = self.breaks(self.step_to_compile(kind))
        with watch(policy="collect") as watching:
            watched = self.breaks(self.step_to_compile(kind), times=8)
        assert codes(watching) == []
        assert watched[0] <= plain[0]
        assert watched[1] <= plain[1]
        assert watching.metrics()["zerograd/backwards"] == 8
        assert watching.steps == 8

    def test_a_fault_in_a_compiled_step_is_found(self):
        with watch(policy="collect") as watching:
            self.breaks(self.step_to_compile("no clear"), times=8)
        assert codes(watching) == ["ZG101"]

    def test_a_module_clear_stays_in_a_full_graph(self):
        model, _, x = self.parts()

        def act():
            model.zero_grad()
            return model(x).sum()

        with watch(policy="collect"):
            torch._dynamo.reset()
            torch.compile(act, backend="eager", fullgraph=True)()

    @pytest.mark.parametrize("clear", [True, False])
    def test_a_compiled_model(self, clear):
        model, optimizer, x = self.parts()
        torch._dynamo.reset()
        with watch(policy="collect") as watching:
            compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
            for _ in range(5):
                compiled(x).pow(2).mean().backward()
                optimizer.step()
                if clear:
                    optimizer.zero_grad()
        assert codes(watching) == ([] if clear else ["ZG101"])


class TestOptimizers:
    @pytest.mark.parametrize("clear", ["none", "zero", "never"])
    @pytest.mark.parametrize("options", [{}, {"foreach": True}, {"fused": True}])
    def test_every_way_to_run_an_optimizer(self, options, clear):
        model = nn.Linear(4, 1)
        optimizer = torch.optim.AdamW(model.parameters(), **options)
        with watch(policy="collect") as watching:
            for _ in range(5):
                model(torch.randn(8, 4)).pow(2).mean().backward()
                optimizer.step()
                if clear != "never":
                    optimizer.zero_grad(set_to_none=clear == "none")
        assert codes(watching) == (["ZG101"] if clear == "never" else [])

    def test_a_fused_optimizer_under_a_scaler(self):
        model = nn.Linear(4, 1)
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
        with watch(policy="collect") as watching, warnings.catch_warnings():
            for _ in range(5):
                optimizer.zero_grad()
                scaler.scale(model(torch.randn(8, 4)).pow(2).mean()).backward()
                scaler.step(optimizer)
                scaler.update()
        assert codes(watching) == []
        assert watching.steps == 5
