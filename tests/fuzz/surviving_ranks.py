"""What the ranks of surviving_jobs.py run: a job that trains, saves all it needs, and goes on from there.

    python -m rushlight.distributed.run --nproc-per-node 4 surviving_ranks.py '{"kind": "ddp", ...}'

The options are those of `DEFAULTS`, as JSON. Each rank writes after every step which one it was to
`progress.RANK`, and at the end the digests of its weights and losses to `final.RANK`.
"""

import ctypes
import hashlib
import io
import json
import os
import shutil
import sys
import time
from datetime import timedelta

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.distributed import checkpoint as dcp
from rushlight.distributed.checkpoint import state_dict as states
from rushlight.utils.data import DataLoader, Dataset
from rushlight.utils.data.distributed import DistributedSampler

DEFAULTS = {
    "kind": "ddp",  # what trains: ddp, fsdp, pipeline, or several with +
    "folder": "",  # of progress and results
    "checkpoints": "",  # another one, which may be small
    "steps": 24,
    "every": 4,  # steps from one checkpoint to the next
    "seconds": 0.02,  # at least, of a step
    "seed": 0,
    "timeout": 6.0,  # of a collective
    "workers": 1,  # of each loader
    "place": "steps",  # checkpoints in a folder each, or all in the "same"
    "save": "now",  # or "beside": by async_save
    "full": "raise",  # what a failed save does: raise, or pass
}
WIDTH, ROWS, BATCH = 24, 256, 4


class Examples(Dataset):
    """Rows of a table, each with noise that a worker draws."""

    def __init__(self, seed):
        generator = torch.Generator().manual_seed(seed)
        self.x = torch.randn(ROWS, WIDTH, generator=generator)
        self.y = self.x.roll(1, 1).tanh()

    def __len__(self):
        return ROWS

    def __getitem__(self, i):
        return self.x[i] + 0.1 * torch.randn(WIDTH), self.y[i]


def _block():
    return nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * WIDTH, WIDTH))


class Batches:
    """The batches of this rank, epoch after epoch; its state is the loader's and the epoch's number."""

    def __init__(self, options, name, rank, size):
        dataset = Examples(options["seed"])
        self.sampler = DistributedSampler(dataset, size, rank, seed=options["seed"])
        workers = options["workers"]
        self.loader = DataLoader(
            dataset,
            BATCH,
            sampler=self.sampler,
            num_workers=workers,
            persistent_workers=bool(workers) and options["seed"] % 2 == 0,
            generator=torch.Generator().manual_seed(options["seed"] * 100 + rank),
        )
        self.name, self.epoch, self._iterator = f"{name}.loader.{rank}", 0, None

    def next(self):
        while True:
            if self._iterator is None:
                self.sampler.set_epoch(self.epoch)
                self._iterator = iter(self.loader)
            batch = next(self._iterator, None)
            if batch is not None:
                return batch
            self.epoch, self._iterator = self.epoch + 1, None

    def state(self):
        """As bytes: a checkpoint is read into a state of the same form, and this one has many."""
        stream = io.BytesIO()
        torch.save({"epoch": self.epoch, "loader": self.loader.state_dict()}, stream)
        return {self.name: stream.getvalue()}

    def load(self, state):
        own = torch.load(io.BytesIO(state[self.name]), weights_only=True)
        self.epoch = own["epoch"]
        self.sampler.set_epoch(self.epoch)
        self.loader.load_state_dict(own["loader"])


class Whole:
    """A model that every rank trains with its own batches: DDP, or `fully_shard`."""

    def __init__(self, kind, options, rank, size):
        self.kind = kind
        torch.manual_seed(options["seed"] + len(kind))
        model = nn.Sequential(_block(), nn.LayerNorm(WIDTH), _block())
        if kind == "ddp":
            model.append(nn.BatchNorm1d(WIDTH))
            self.model = nn.parallel.DistributedDataParallel(model)
        else:
            for block in (model[0], model[2]):
                dist.fsdp.fully_shard(block)
            self.model = dist.fsdp.fully_shard(model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 50)
        self.batches = Batches(options, kind, rank, size)

    def step(self):
        x, y = self.batches.next()
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.schedule.step()
        self.optimizer.zero_grad()
        return loss.item()

    def state(self):
        model, optimizer = states.get_state_dict(self.model, self.optimizer)
        own = {"model": model, "optimizer": optimizer, "schedule": self.schedule.state_dict()}
        return {self.kind: own, **self.batches.state()}

    def load(self, state):
        own = state[self.kind]
        states.set_state_dict(
            self.model, self.optimizer, model_state_dict=own["model"], optim_state_dict=own["optimizer"]
        )
        self.schedule.load_state_dict(own["schedule"])
        self.batches.load(state)

    def weights(self):
        whole = states.StateDictOptions(full_state_dict=True, cpu_offload=True)
        return states.get_model_state_dict(self.model, options=whole)


class Pipeline:
    """A model of one block a rank, through which micro-batches pass."""

    def __init__(self, kind, options, rank, size):
        from rushlight.distributed import pipelining as pp

        torch.manual_seed(options["seed"] + 100 + rank)
        self.kind, self.rank, self.last = f"{kind}.{rank}", rank, rank == size - 1
        self.model, device = _block(), torch.device("cpu")
        stage = pp.PipelineStage(self.model, rank, size, device)
        schedule = pp.Schedule1F1B if options["seed"] % 2 else pp.ScheduleGPipe
        self.schedule = schedule(stage, 4, loss_fn=nn.functional.mse_loss)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.batches = Batches({**options, "workers": 0}, kind, 0, 1)
        self.batches.name = f"{kind}.loader.{rank}"

    def step(self):
        rng = torch.get_rng_state()
        x, y = self.batches.next()  # first and last stage need the same batch: noise of equal seeds
        torch.set_rng_state(rng)
        torch.rand(())  # which moves on by one number, whatever the batch took
        losses = []
        if self.rank == 0:
            self.schedule.step(x)
        elif self.last:
            self.schedule.step(target=y, losses=losses)
        else:
            self.schedule.step()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return float(sum(losses)) if losses else 0.0

    def state(self):
        model, optimizer = states.get_state_dict(self.model, self.optimizer)
        return {self.kind: {"model": model, "optimizer": optimizer}, **self.batches.state()}

    def load(self, state):
        own = state[self.kind]
        states.set_state_dict(
            self.model, self.optimizer, model_state_dict=own["model"], optim_state_dict=own["optimizer"]
        )
        self.batches.load(state)

    def weights(self):
        return self.model.state_dict()


class Run:
    """All that one rank does."""

    def __init__(self, options):
        self.options = {**DEFAULTS, **options}
        torch.set_num_threads(1)
        dist.init_process_group("gloo", timeout=timedelta(seconds=self.options["timeout"]))
        self.rank, size = dist.get_rank(), dist.get_world_size()
        self.folder, self.place = self.options["folder"], self.options["checkpoints"]
        made = [(Pipeline if kind == "pipeline" else Whole, kind) for kind in self.options["kind"].split("+")]
        self.parts = [make(kind, self.options, self.rank, size) for make, kind in made]
        torch.manual_seed(self.options["seed"] * 10 + self.rank)
        self.step, self.history = 0, torch.zeros(self.options["steps"], len(self.parts), dtype=torch.float64)
        self._saving = None

    def state(self):
        found = {"step": self.step, f"history.{self.rank}": self.history}
        found[f"numbers.{self.rank}"] = torch.get_rng_state()
        for part in self.parts:
            found |= part.state()
        return found

    def resume(self):
        """Go on from the newest complete checkpoint, which rank 0 chooses."""
        box = [self._newest() if self.rank == 0 else None]
        dist.broadcast_object_list(box, src=0)
        if box[0] is None:
            return
        state = self.state()
        dcp.load(state, checkpoint_id=box[0])
        for part in self.parts:
            part.load(state)
        self.step, self.history = state["step"], state[f"history.{self.rank}"]
        torch.set_rng_state(state[f"numbers.{self.rank}"])

    def _newest(self):
        found = []
        for name in os.listdir(self.place):
            path = os.path.join(self.place, name)
            if os.path.exists(os.path.join(path, ".metadata")):
                found.append((int(name.rpartition("-")[2]), path))
            else:
                shutil.rmtree(path, ignore_errors=True)  # of a save that did not end
        return max(found)[1] if found else None

    def save(self):
        name = "all-0" if self.options["place"] == "same" else f"step-{self.step}"
        path = os.path.join(self.place, name)
        try:
            if self.options["save"] == "beside":
                self.finish_save()
                self._saving = dcp.async_save(self.state(), checkpoint_id=path)
            else:
                dcp.save(self.state(), checkpoint_id=path)
        except (dcp.CheckpointException, OSError) as error:
            self._not_saved(error)
        else:
            if self.rank == 0:
                self._forget(keep=2)

    def finish_save(self):
        saving, self._saving = self._saving, None
        if saving is not None:
            try:
                saving.result()
            except (dcp.CheckpointException, OSError) as error:
                self._not_saved(error)

    def _not_saved(self, error):
        with open(os.path.join(self.folder, f"not_saved.{self.rank}"), "a") as file:
            file.write(f"{self.step}: {type(error).__name__}: {error}\n")
        if self.options["full"] == "raise":
            raise error

    def _forget(self, keep):
        complete = [
            int(name[5:])
            for name in os.listdir(self.place)
            if name.startswith("step-") and os.path.exists(os.path.join(self.place, name, ".metadata"))
        ]
        for number in sorted(complete)[:-keep]:
            shutil.rmtree(os.path.join(self.place, f"step-{number}"), ignore_errors=True)

    def train(self):
        self.resume()
        self._tell("begun")
        while self.step < self.options["steps"]:
            began = time.monotonic()
            self.history[self.step] = torch.tensor([part.step() for part in self.parts], dtype=torch.float64)
            self.step += 1
            if self.step % self.options["every"] == 0:
                self.save()
            self._tell(self.step)
            time.sleep(max(0.0, began + self.options["seconds"] - time.monotonic()))
        self.finish_save()
        self.end()

    def _tell(self, what):
        with open(os.path.join(self.folder, f"progress.{self.rank}"), "a") as file:
            file.write(f"{os.getpid()} {what}\n")

    def end(self):
        digests = {"history": digest(self.history)}
        for part in self.parts:
            digests |= {f"{part.kind}.{name}": digest(value) for name, value in part.weights().items()}
        dist.barrier()
        path = os.path.join(self.folder, f"final.{self.rank}")
        with open(path + ".part", "w") as file:
            json.dump(digests, file)
        os.replace(path + ".part", path)
        dist.destroy_process_group()


def digest(tensor):
    data = tensor.detach().contiguous()
    return hashlib.sha256(ctypes.string_at(data.data_ptr(), data.nbytes)).hexdigest()[:16]


if __name__ == "__main__":
    Run(json.loads(sys.argv[1])).train()
