"""The former home of `torch.distributed.tensor.experimental`."""

from rushlight.distributed.tensor.experimental import implicit_replication, local_map

__all__ = ["implicit_replication", "local_map"]
