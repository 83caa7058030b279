"""What both Rushlight and PyTorch run: layouts, training, errors, told as JSON.

python dtensor_oracle.py rushlight|torch FOLDER
"""

import importlib
import json
import sys


def _join(lib, rank, size, folder):
    lib.set_num_threads(1)
    store = lib.distributed.FileStore(f"{folder}/store_{lib.__name__}", size)
    lib.distributed.init_process_group("gloo", store=store, rank=rank, world_size=size)


def _program(rank, name, folder):
    lib = importlib.import_module(name)
    _join(lib, rank, 2, folder)
    said = [_layouts(lib, 2), _training(lib, rank), _checkpoint(lib, folder)]
    if rank == 0:
        with open(f"{folder}/{name}.json", "w") as stream:
            json.dump(said, stream)
    lib.distributed.destroy_process_group()


def _layouts(lib, size):
    tensor = importlib.import_module(f"{lib.__name__}.distributed.tensor")
    mesh = lib.distributed.init_device_mesh("cpu", (size,))
    R, P, S = tensor.Replicate(), tensor.Partial(), tensor.Shard
    said = [repr(p) + str(p) for p in (R, P, S(1), tensor.Partial("avg"))] + [repr(mesh)]

    def spread(t, p):
        return tensor.distribute_tensor(t, mesh, [p])

    a, b = lib.arange(24.0).view(4, 6) / 10, lib.arange(24.0).view(6, 4) / 7
    for what in [
        lambda: spread(a, S(0)) + spread(a, S(0)),
        lambda: spread(a, R) * spread(a, S(1)),
        lambda: spread(a, S(0)).sum(0),
        lambda: spread(a, S(0)).sum(1),
        lambda: spread(a, S(0)).mean(0),
        lambda: spread(a, S(0)).amax(0),
        lambda: spread(a, S(0)) @ spread(b, R),
        lambda: spread(a, R) @ spread(b, S(1)),
        lambda: spread(a, S(1)) @ spread(b, S(0)),
        lambda: (spread(a, S(1)) @ spread(b, S(0))).relu(),
        lambda: spread(a, S(0)).t(),
        lambda: spread(a, S(0)).view(24),
        lambda: spread(a, S(0)).softmax(1),
        lambda: spread(a, S(0)).softmax(0),
        lambda: lib.nn.functional.layer_norm(spread(a, S(0)), (6,)),
        lambda: spread(a, S(0)).redistribute(placements=[S(1)]),
        lambda: spread(a, S(0)) + a,
        lambda: spread(a, S(0)).redistribute(placements=[P]),
        lambda: tensor.distribute_tensor(a, mesh, [R, R]),
    ]:
        try:
            result = what()
            said.append([str(result.placements), result.full_tensor().tolist(), list(result.stride())])
        except Exception as error:
            said.append([type(error).__name__, str(error).split("!")[0].split(" before")[0]])
    leaf = spread(a, S(0)).requires_grad_()
    (leaf @ spread(b, R)).square().sum().backward()
    said.append([str(leaf.grad.placements), leaf.grad.full_tensor().tolist()])
    return said


def _training(lib, rank):
    fsdp = importlib.import_module(f"{lib.__name__}.distributed.fsdp")
    said = []

    def fresh():
        lib.manual_seed(0)
        return lib.nn.Sequential(lib.nn.Linear(5, 7), lib.nn.Sequential(lib.nn.Linear(7, 3), lib.nn.ReLU()),
                                 lib.nn.Linear(3, 2))  # fmt: skip

    def steps(model):
        optimizer = lib.optim.Adam(model.parameters(), lr=0.1)
        for step in range(3):
            lib.manual_seed(10 * step + rank)
            loss = model(lib.randn(4, 5)).square().mean()
            loss.backward()
            said.append(loss.item())
            optimizer.step()
            optimizer.zero_grad()

    model = fresh()
    fsdp.fully_shard(model[1])
    fsdp.fully_shard(model)
    steps(model)
    said += [[key, str(v.placements), v.full_tensor().tolist()] for key, v in model.state_dict().items()]
    said.append(type(model).__name__)
    for original in (True, False):
        policy = importlib.import_module(f"{lib.__name__}.distributed.fsdp.wrap").ModuleWrapPolicy(
            {lib.nn.Sequential}
        )
        model = fsdp.FullyShardedDataParallel(
            fresh(), auto_wrap_policy=policy, use_orig_params=original, device_id=lib.device("cpu")
        )
        steps(model)
        said.append([[key, list(p.shape)] for key, p in model.named_parameters()])
        said.append(repr(model))
        said += [[key, value.tolist()] for key, value in model.state_dict().items()]
    return said


def _state(lib, values):
    """A state with tensors spread and whole, nested values and an optimizer; zeros, or values to save."""
    tensor = importlib.import_module(f"{lib.__name__}.distributed.tensor")
    mesh = lib.distributed.init_device_mesh("cpu", (2,))
    lib.manual_seed(1)
    layer = lib.nn.Linear(3, 2)
    optimizer = lib.optim.AdamW(layer.parameters(), lr=0.5)
    layer(lib.ones(1, 3)).sum().backward()
    optimizer.step()
    cut = tensor.Shard(0 if values else 1)
    return {
        "spread": tensor.distribute_tensor(lib.arange(10.0).view(5, 2) * values, mesh, [cut]),
        "nested": {
            "half": lib.ones(2, dtype=lib.bfloat16) * values,
            "n": 3 * values,
            "list": [1, 2 * values],
        },
        "mixed": [lib.ones(2) * values, {"x": "text" * values}],
        "optimizer": optimizer.state_dict(),
    }


def _checkpoint(lib, folder):
    """Save; read what the other one saved, if it has."""
    checkpoint = importlib.import_module(f"{lib.__name__}.distributed.checkpoint")
    checkpoint.save(_state(lib, 1), checkpoint_id=f"{folder}/of_{lib.__name__}")
    read = _state(lib, 0)
    checkpoint.load(read, checkpoint_id=f"{folder}/of_rushlight")
    spread, half = read["spread"].full_tensor().tolist(), read["nested"]["half"].tolist()
    rest = [read["nested"]["n"], read["nested"]["list"], read["mixed"][0].tolist(), read["mixed"][1]["x"]]
    states = [state["exp_avg"].tolist() for state in read["optimizer"]["state"].values()]
    return [spread, half, rest, states, read["optimizer"]["param_groups"][0]["lr"]]


if __name__ == "__main__":
    start = importlib.import_module(f"{sys.argv[1]}.multiprocessing").start_processes
    start(_program, args=tuple(sys.argv[1:]), nprocs=2, start_method="fork")
