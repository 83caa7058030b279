"""lightning: fit, validate, test, predict, callbacks, loggers, checkpoints, going on from one; Fabric."""

import os

import lightning
import torch
from lightning.pytorch.callbacks import (
    Callback,
    EarlyStopping,
    GradientAccumulationScheduler,
    LearningRateMonitor,
    ModelCheckpoint,
    ModelSummary,
    StochasticWeightAveraging,
)
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger

VALIDATION = 0.1348  # the loss after four epochs, on PyTorch 2.13


class Regression(lightning.LightningModule):
    def __init__(self, width=16, rate=0.05):
        super().__init__()
        self.save_hyperparameters()
        layers = torch.nn.Linear(4, width), torch.nn.Tanh(), torch.nn.Linear(width, 1)
        self.network = torch.nn.Sequential(*layers)

    def forward(self, x):
        return self.network(x)

    def loss(self, batch, name):
        inputs, targets = batch
        loss = torch.nn.functional.mse_loss(self(inputs), targets)
        self.log(name, loss)
        return loss

    def training_step(self, batch, index):
        return self.loss(batch, "train")

    def validation_step(self, batch, index):
        self.loss(batch, "validation")

    def test_step(self, batch, index):
        self.loss(batch, "test")

    def predict_step(self, batch, index):
        return self(batch[0])

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.rate)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)]


class Sums(lightning.LightningDataModule):
    def setup(self, stage):
        x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
        self.examples = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))

    def train_dataloader(self):
        return torch.utils.data.DataLoader(self.examples, batch_size=8, shuffle=True)

    def val_dataloader(self):
        return torch.utils.data.DataLoader(self.examples, batch_size=16)

    def test_dataloader(self):
        return torch.utils.data.DataLoader(self.examples, batch_size=16)

    def predict_dataloader(self):
        return torch.utils.data.DataLoader(self.examples, batch_size=16)


class Count(Callback):
    batches = 0

    def on_train_batch_end(self, *args):
        self.batches += 1


def trainer(**options):
    quiet = {
        "enable_progress_bar": False,
        "enable_model_summary": "callbacks" in options,
        "accelerator": "cpu",
    }
    return lightning.Trainer(**{"logger": False, **quiet, **options})


def near(value, recorded):
    assert abs(float(value) - recorded) < 2e-3, (float(value), recorded)


lightning.seed_everything(3)
model, count = Regression(), Count()
checkpoint = ModelCheckpoint("checkpoints", monitor="validation", save_top_k=2, save_last=True)
first = trainer(
    max_epochs=4,
    logger=[CSVLogger("csv"), TensorBoardLogger("events")],
    callbacks=[
        checkpoint,
        count,
        EarlyStopping("validation", patience=3),
        LearningRateMonitor(),
        ModelSummary(2),
        GradientAccumulationScheduler({2: 2}),
    ],
    log_every_n_steps=4,
    gradient_clip_val=1.0,
    deterministic=True,
)
first.fit(model, datamodule=Sums())
assert (count.batches, first.global_step) == (32, 24)
near(first.callback_metrics["validation"], VALIDATION)
[validated] = first.validate(model, datamodule=Sums(), verbose=False)
[tested] = first.test(ckpt_path="best", datamodule=Sums(), verbose=False)
near(validated["validation"], VALIDATION)
near(tested["test"], VALIDATION)
predicted = first.predict(model, datamodule=Sums())
assert [tuple(batch.shape) for batch in predicted] == [(16, 1)] * 4
assert len(os.listdir("checkpoints")) == 3
again = Regression.load_from_checkpoint(checkpoint.best_model_path)
assert again.hparams == {"width": 16, "rate": 0.05}
assert all(torch.equal(p, q) for p, q in zip(model.parameters(), again.parameters(), strict=True))

on = trainer(max_epochs=6, enable_checkpointing=False)
on.fit(Regression(), datamodule=Sums(), ckpt_path="checkpoints/last.ckpt")
assert on.global_step == 40 and on.callback_metrics["validation"] < VALIDATION

lightning.seed_everything(3)
averaged = trainer(
    max_epochs=3,
    enable_checkpointing=False,
    precision="bf16-mixed",
    accumulate_grad_batches=2,
    callbacks=[StochasticWeightAveraging(1e-2, swa_epoch_start=1)],
)
averaged.fit(Regression(), datamodule=Sums())
assert averaged.callback_metrics["validation"] < 4
double = Regression()
trainer(fast_dev_run=2, precision="64-true").fit(double, datamodule=Sums())

lightning.seed_everything(3)
fabric = lightning.Fabric(accelerator="cpu")
layer = torch.nn.Linear(3, 1)
layer, optimizer = fabric.setup(layer, torch.optim.SGD(layer.parameters(), 0.1))
for _ in range(3):
    optimizer.zero_grad()
    loss = layer(torch.ones(2, 3)).square().mean()
    fabric.backward(loss)
    optimizer.step()
near(loss, 0.00531)
fabric.save("fabric.ckpt", {"layer": layer, "optimizer": optimizer, "step": 3})
state = {"layer": layer, "optimizer": optimizer, "step": 0}
fabric.load("fabric.ckpt", state)
assert state["step"] == 3
