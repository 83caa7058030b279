"""Saving and loading, devices and dtypes, options of the process."""

import io
from typing import TYPE_CHECKING, Any

import rushlight as torch
from rushlight import nn

if TYPE_CHECKING:
    from typing_extensions import assert_type


def choose(name: str | None = None) -> torch.device:
    return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))


def main() -> None:
    device, kind = choose("cpu"), torch.float64
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten()).to(device, kind)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "epoch": 3}, file)
    file.seek(0)
    state: dict[str, Any] = torch.load(file, map_location=device, weights_only=True)
    missing = model.load_state_dict(state["model"], strict=True)
    assert not missing.missing_keys and state["epoch"] == 3
    for name, parameter in model.named_parameters():
        assert parameter.dtype is kind and name
    sizes = {name: tuple(buffer.shape) for name, buffer in model.named_buffers()}
    assert sizes["1.running_mean"] == (2,)
    kinds = [type(module).__name__ for module in model.modules()]
    assert kinds[0] == "Sequential" and torch.finfo(kind).eps < 1e-10
    before = torch.get_num_threads()
    torch.set_num_threads(before)
    array = torch.ones(2).numpy()
    assert torch.from_numpy(array).tolist() == [1.0, 1.0]
    if TYPE_CHECKING:
        assert_type(model.eval(), nn.Sequential)
        assert_type(choose(), torch.device)


if __name__ == "__main__":
    main()
