"""The former home of `torch.hub.load_state_dict_from_url`, as `load_url`."""

from rushlight.hub import load_state_dict_from_url as load_url
from rushlight.hub import tqdm

__all__ = ["load_url", "tqdm"]
