"""`torch.ops.quantized`: embedding tables whose rows are bytes or halves of bytes."""

import rushlight as torch
from rushlight._quantized.packed import EmbeddingPackedParams, ScriptObject, held

__all__ = [
    "embedding_4bit",
    "embedding_bag_4bit",
    "embedding_bag_byte",
    "embedding_bag_prepack",
    "embedding_bag_unpack",
    "embedding_byte",
]
__capture__ = "through"  # Note [Capture marks]


def embedding_bag_prepack(weight):
    return ScriptObject(EmbeddingPackedParams(weight))


def embedding_bag_unpack(W_prepack):
    return held(W_prepack, EmbeddingPackedParams, "embedding_bag_unpack").unpack()


def _bag(bits, name):
    rows = "byte" if bits == 8 else "4bit"

    def bag(
        weight,
        indices,
        offsets=None,
        scale_grad_by_freq=False,
        mode=0,
        pruned_weights=False,
        per_sample_weights=None,
        compressed_indices_mapping=None,
        include_last_offset=False,
    ):
        packed = held(weight, EmbeddingPackedParams, name)
        if packed.bit_rate() != bits:
            raise RuntimeError(f"quantized::{name}: expected a table of {bits} bits, got {packed.bit_rate()}")
        return getattr(torch.ops.quantized, f"embedding_bag_{rows}_rowwise_offsets")(
            packed.table,
            indices,
            offsets,
            scale_grad_by_freq,
            mode,
            pruned_weights,
            per_sample_weights,
            compressed_indices_mapping,
            include_last_offset,
        )

    return bag


embedding_bag_byte, embedding_bag_4bit = _bag(8, "embedding_bag_byte"), _bag(4, "embedding_bag_4bit")


def _embedding(bag):
    def embedding(weight, indices, pruned_weights=False):
        if indices.dim() not in (1, 2):
            raise RuntimeError(f"Expecting 1D or 2D indices, got {indices.dim()}D indices")
        starts = torch.arange(indices.numel(), dtype=indices.dtype)
        found = bag(weight, indices.reshape(-1), starts, pruned_weights=pruned_weights)
        return found.reshape(*indices.shape, found.shape[-1])

    return embedding


embedding_byte, embedding_4bit = _embedding(embedding_bag_byte), _embedding(embedding_bag_4bit)
