"""The pool of the standard module: its queues carry tensors."""

from multiprocessing.pool import Pool, ThreadPool

__all__ = ["Pool", "ThreadPool"]
