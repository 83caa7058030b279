"""What is to be written of a value, and to be read for one."""

from ... import Size
from ._chunks import chunk_of, is_tensor, overlap
from .filesystem import CheckpointException
from .metadata import MetadataIndex, TensorProperties
from .planner import BytesIOWriteData, LoadItemType, ReadItem, TensorWriteData, WriteItem, WriteItemType

__all__ = ["create_read_items_for_chunk_list"]


def _create_chunk_from_dtensor(tensor):
    return chunk_of(tensor)[0]


def _create_write_items(fqn, value):
    """The items for a value: none where this process holds nothing of a tensor."""
    if not is_tensor(value):
        return [WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO, bytes_io_data=BytesIOWriteData(64))]
    chunk, local = chunk_of(value)
    if chunk is None:
        return []
    properties = TensorProperties(dtype=local.dtype, requires_grad=value.requires_grad)
    kind = WriteItemType.SHARD if hasattr(value, "placements") else WriteItemType.TENSOR
    data = TensorWriteData(chunk, properties, Size(value.shape))
    return [WriteItem(MetadataIndex(fqn, chunk.offsets), kind, tensor_data=data)]


def create_read_items_for_chunk_list(fqn, checkpoint_md, local_chunks):
    """The items that fill the boxes `local_chunks` of a tensor from what was saved of it."""
    items = []
    for number, chunk in enumerate(local_chunks):
        filled = 0
        for place, piece in enumerate(checkpoint_md.chunks):
            shared = overlap(piece, chunk)
            if shared is None:
                continue
            item = ReadItem(
                LoadItemType.TENSOR,
                MetadataIndex(fqn, chunk.offsets, number),
                Size([to for _, _, to, _ in shared]),
                MetadataIndex(fqn, piece.offsets, place),
                Size([begin for _, begin, _, _ in shared]),
                Size([length for *_, length in shared]),
            )
            items.append(item)
            filled += item.lengths.numel()
        if filled < chunk.sizes.numel():
            raise CheckpointException(
                f"{fqn}: the checkpoint holds {filled} of {chunk.sizes.numel()} elements"
            )
    return items


def _create_read_items(fqn, md, value):
    """The items that fill a value from what was saved under its name."""
    if not hasattr(md, "chunks"):
        none = Size([0])
        return [ReadItem(LoadItemType.BYTE_IO, MetadataIndex(fqn), none, MetadataIndex(fqn), none, none)]
    chunk, _ = chunk_of(value)
    return [] if chunk is None else create_read_items_for_chunk_list(fqn, md, [chunk])
