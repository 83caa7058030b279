"""NVIDIA's collectives between devices: not part of this build."""

__all__ = ["is_available", "version"]


def is_available(tensors=None):
    return False


def version():
    raise NotImplementedError("torch.cuda.nccl: this build has no NCCL; torch.distributed runs on Gloo")
