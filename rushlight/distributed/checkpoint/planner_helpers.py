"""What a spread tensor says of its chunk."""

from ._chunks import chunk_of

__all__: list = []


def _create_chunk_from_dtensor(tensor):
    return chunk_of(tensor)[0]
