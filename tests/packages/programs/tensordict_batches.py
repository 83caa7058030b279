"""tensordict: nested batches, modules on them, vmap over them."""

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential

batch = TensorDict({"a": torch.ones(3, 4), "b": {"c": torch.arange(3)}}, batch_size=[3])
assert batch[1]["b", "c"] == 1 and torch.stack([batch, batch]).batch_size == torch.Size([2, 3])
network = TensorDictSequential(
    TensorDictModule(torch.nn.Linear(4, 2), in_keys=["a"], out_keys=["h"]),
    TensorDictModule(torch.tanh, in_keys=["h"], out_keys=["out"]),
)
assert network(batch)["out"].shape == (3, 2)
assert torch.vmap(lambda t: t["a"].sum())(batch).tolist() == [4, 4, 4]
