"""The blocks of layers that are converted within a `with` statement."""

import threading

__all__ = ["LinearBlockSparsePattern"]


class LinearBlockSparsePattern:
    """A context in which ``dynamic.Linear.from_float`` takes blocks of this shape: 1 by 4, or 8 by 1.

    Args:
        row_block_size: rows of a block.
        col_block_size: columns of a block.
    """

    rlock = threading.RLock()
    row_block_size = 1
    col_block_size = 4
    prev_row_block_size = 1
    prev_col_block_size = 4

    def __init__(self, row_block_size=1, col_block_size=4):
        if (row_block_size, col_block_size) not in ((1, 4), (8, 1)):
            raise AssertionError(
                f"Invalid linear block sparse pattern: row_block_size={row_block_size}, "
                f"col_block_size={col_block_size}"
            )
        kind = LinearBlockSparsePattern
        kind.rlock.acquire()
        kind.prev_row_block_size, kind.prev_col_block_size = kind.row_block_size, kind.col_block_size
        kind.row_block_size, kind.col_block_size = row_block_size, col_block_size

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        kind = LinearBlockSparsePattern
        kind.row_block_size, kind.col_block_size = kind.prev_row_block_size, kind.prev_col_block_size
        kind.rlock.release()

    @staticmethod
    def block_size():
        """Rows and columns of a block."""
        return LinearBlockSparsePattern.row_block_size, LinearBlockSparsePattern.col_block_size
