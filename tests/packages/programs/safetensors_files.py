"""safetensors: write, read whole and in slices, share, and refuse, on tensors and modules."""

import json
import struct

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
from torch import nn

torch.manual_seed(0)
tensors = {
    "weight": torch.randn(4, 6),
    "half": torch.randn(3).half(),
    "brain": torch.randn(3).bfloat16(),
    "count": torch.arange(5),
    "mask": torch.tensor([True, False]),
    "byte": torch.arange(3, dtype=torch.uint8),
    "scalar": torch.tensor(2.5, dtype=torch.float64),
    "empty": torch.empty(0, 3),
    "complex": torch.randn(2, dtype=torch.complex64),
    "eight": torch.randn(4).to(torch.float8_e4m3fn),
}
save_file(tensors, "all.safetensors", metadata={"format": "pt"})
for source in (load_file("all.safetensors"), load(save(tensors))):
    assert source.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert source[name].dtype == tensor.dtype and source[name].shape == tensor.shape, name
        assert torch.equal(source[name].view(torch.uint8) if name == "eight" else source[name],
                           tensor.view(torch.uint8) if name == "eight" else tensor), name  # fmt: skip

with open("all.safetensors", "rb") as file:
    (length,) = struct.unpack("<Q", file.read(8))
    header = json.loads(file.read(length))
assert header["weight"]["dtype"] == "F32" and header["weight"]["shape"] == [4, 6]

with safe_open("all.safetensors", framework="pt", device="cpu") as file:
    assert file.metadata() == {"format": "pt"} and set(file.keys()) == set(tensors)
    assert torch.equal(file.get_tensor("weight"), tensors["weight"])
    part = file.get_slice("weight")
    assert part.get_shape() == [4, 6] and part.get_dtype() == "F32"
    assert torch.equal(part[1:3, 2:], tensors["weight"][1:3, 2:]) and torch.equal(
        part[:, -1:], tensors["weight"][:, -1:]
    )

model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
model[2].weight = nn.Parameter(model[0].weight.detach().T.contiguous())
tied = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
tied["b"].weight = tied["a"].weight
save_model(tied, "tied.safetensors")
fresh = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
fresh["b"].weight = fresh["a"].weight
assert load_model(fresh, "tied.safetensors") == (set(), [])
assert all(torch.equal(value, tied.state_dict()[name]) for name, value in fresh.state_dict().items())
save_file(model.state_dict(), "model.safetensors")
other = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
other.load_state_dict(load_file("model.safetensors"))
assert all(torch.equal(value, model.state_dict()[name]) for name, value in other.state_dict().items())

for refused, text in (({"a": tied["a"].weight, "b": tied["b"].weight}, "share memory"),
                      ({"a": torch.ones(2, 3).T}, "non contiguous")):  # fmt: skip
    try:
        save_file(refused, "refused.safetensors")
    except (RuntimeError, ValueError) as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
try:
    load(save(tensors)[:-1])
except SafetensorError as error:
    assert "ncomplete" in str(error), error
else:
    raise AssertionError("a truncated file was read")
