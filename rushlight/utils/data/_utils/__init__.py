"""The parts of the loader that a batch passes through: fetch, collate, pin."""

from rushlight.utils.data._utils import collate, fetch, pin_memory, worker

__all__ = ["collate", "fetch", "pin_memory", "worker"]
