"""Which blocks of an attention matrix are computed, and by which rule inside of them."""

import inspect
from math import prod

import rushlight

__all__ = ["BlockMask", "and_masks", "create_block_mask", "create_mask", "noop_mask", "or_masks"]

_DEFAULT_SPARSE_BLOCK_SIZE = 128


def noop_mask(batch, head, token_q, token_kv):
    """The mask that lets every query see every key."""
    return batch.new_ones(size=(), dtype=rushlight.bool, device=batch.device)


def _sliced_mask_mod_error(batch, head, token_q, token_kv):
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask. When you slice a BlockMask using [], the mask_mod "
        "attribute is reset. You must set it from the original BlockMask's mask_mod."
    )


def over_positions(function, prefix=(), suffix=()):
    """`function` of (…, batch, head, query, key, …), mapped over those four at once."""
    for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
        function = rushlight.vmap(function, in_dims=(*prefix, *dims, *suffix), out_dims=0)
    return function


def positions(batch, heads, queries, keys, device):
    return tuple(rushlight.arange(n, device=device) for n in (batch, heads, queries, keys))


# --- lists of blocks: for each row how many there are, and which, those first


def _to_lists(dense):
    dense = dense.to(rushlight.int32)
    order = rushlight.argsort(dense, dim=-1, descending=True, stable=True)
    return dense.sum(dim=-1).to(rushlight.int32), order.to(rushlight.int32).contiguous()


def _to_dense(counts, indices, columns):
    listed = rushlight.arange(indices.size(-1), device=indices.device) < counts.unsqueeze(-1)
    # What is not listed goes to one column more, which is cut off.
    target = rushlight.where(listed, indices.long(), columns)
    dense = counts.new_zeros((*counts.shape, columns + 1))
    return dense.scatter_(-1, target, 1)[..., :columns].contiguous()


def _transposed(counts, indices):
    return _to_lists(_to_dense(counts, indices, indices.size(-1)).transpose(-2, -1))


def _cut(counts, indices, rows, columns):
    indices, counts = indices[..., :rows, :columns], counts[..., :rows]
    dense = _to_dense(counts, indices.clamp(max=columns), columns + 1)[..., :columns]
    return _to_lists(dense)


def _pair(size):
    return (size, size) if isinstance(size, int) else tuple(size)


class BlockMask:
    """A block-sparse mask for `flex_attention`.

    For every row of blocks, ``kv_indices`` lists the columns to compute with ``mask_mod``, as many as
    ``kv_num_blocks`` says; ``full_kv_*`` lists those in which everything is seen. ``q_*`` are the same
    lists by column.
    """

    _TENSOR_ATTRS = (
        "kv_num_blocks",
        "kv_indices",
        "full_kv_num_blocks",
        "full_kv_indices",
        "q_num_blocks",
        "q_indices",
        "full_q_num_blocks",
        "full_q_indices",
    )
    _CONTEXT_ATTRS = ("seq_lengths", "BLOCK_SIZE", "mask_mod")

    def __init__(
        self,
        seq_lengths,
        kv_num_blocks,
        kv_indices,
        full_kv_num_blocks=None,
        full_kv_indices=None,
        q_num_blocks=None,
        q_indices=None,
        full_q_num_blocks=None,
        full_q_indices=None,
        BLOCK_SIZE=(_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod=noop_mask,
    ):
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        if (full_q_num_blocks is None) != (full_q_indices is None):
            raise AssertionError("full_q_num_blocks and full_q_indices must be both provided or omitted")
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = tuple(seq_lengths), _pair(BLOCK_SIZE), mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks,
        kv_indices,
        full_kv_num_blocks=None,
        full_kv_indices=None,
        BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod=None,
        seq_lengths=None,
        compute_q_blocks=True,
    ):
        """A mask from the lists by row; the lists by column follow from them."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        sizes = _pair(BLOCK_SIZE)
        by_column = {}
        if compute_q_blocks:
            by_column["q_num_blocks"], by_column["q_indices"] = _transposed(kv_num_blocks, kv_indices)
            if full_kv_num_blocks is not None:
                lists = _transposed(full_kv_num_blocks, full_kv_indices)
                by_column["full_q_num_blocks"], by_column["full_q_indices"] = lists
        if seq_lengths is None:
            rows, columns = kv_indices.shape[-2:]
            seq_lengths = (rows * sizes[0], columns * sizes[1])
        return cls(
            seq_lengths=seq_lengths,
            kv_num_blocks=kv_num_blocks,
            kv_indices=kv_indices,
            full_kv_num_blocks=full_kv_num_blocks,
            full_kv_indices=full_kv_indices,
            BLOCK_SIZE=sizes,
            mask_mod=mask_mod or noop_mask,
            **by_column,
        )

    def as_tuple(self, flatten=True):
        """All parts in a fixed order."""
        sizes = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        lengths = self.seq_lengths if flatten else (self.seq_lengths,)
        return (*lengths, *(getattr(self, name) for name in self._TENSOR_ATTRS), *sizes, self.mask_mod)

    @property
    def shape(self):
        """(batch, heads, queries, keys)"""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self):
        return prod(self.shape)

    def sparsity(self):
        """How much need not be computed, in percent."""
        computed = self.kv_num_blocks.sum().item()
        if self.full_kv_num_blocks is not None:
            computed += self.full_kv_num_blocks.sum().item()
        return 100 * (1 - computed * prod(self.BLOCK_SIZE) / self.numel())

    def to_dense(self):
        """A tensor with 1 for each block that is computed."""
        dense = _to_dense(self.kv_num_blocks, self.kv_indices, self.kv_indices.size(-1))
        if self.full_kv_num_blocks is None:
            return dense
        return dense | _to_dense(self.full_kv_num_blocks, self.full_kv_indices, self.kv_indices.size(-1))

    def visible(self, queries, keys):
        """Which elements lie in blocks where `mask_mod` decides, and which in blocks that are seen whole."""
        partial, full = self._elements(self.kv_num_blocks, self.kv_indices, queries, keys), None
        if self.full_kv_num_blocks is not None:
            full = self._elements(self.full_kv_num_blocks, self.full_kv_indices, queries, keys)
        return partial, full

    def _elements(self, counts, indices, queries, keys):
        dense = _to_dense(counts, indices, indices.size(-1)).bool()
        rows = rushlight.arange(queries, device=indices.device) // self.BLOCK_SIZE[0]
        columns = rushlight.arange(keys, device=indices.device) // self.BLOCK_SIZE[1]
        return dense[..., rows, :][..., columns]

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        # Dimensions are kept: an integer selects a range of one.
        index = tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in index)

        def pick(tensor, wanted=index):
            return None if tensor is None else tensor[wanted]

        return BlockMask.from_kv_blocks(
            pick(self.kv_num_blocks),
            pick(self.kv_indices),
            pick(self.full_kv_num_blocks),
            pick(self.full_kv_indices),
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=_sliced_mask_mod_error,
            seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )

    def _adjust(self, new_q_len, new_kv_len):
        """The mask for other lengths, which its rule must make sense for."""
        rows = -(-new_q_len // self.BLOCK_SIZE[0])
        columns = -(-new_kv_len // self.BLOCK_SIZE[1])
        full = (None, None)
        if self.full_kv_num_blocks is not None:
            full = _cut(self.full_kv_num_blocks, self.full_kv_indices, rows, columns)
        return BlockMask.from_kv_blocks(
            *_cut(self.kv_num_blocks, self.kv_indices, rows, columns),
            *full,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            seq_lengths=(new_q_len, new_kv_len),
        )

    def to(self, device):
        """The mask with its lists on another device."""
        moved = {name: getattr(self, name) for name in self._TENSOR_ATTRS}
        moved = {name: None if tensor is None else tensor.to(device) for name, tensor in moved.items()}
        return BlockMask(
            seq_lengths=self.seq_lengths, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod, **moved
        )

    def _flatten(self):
        leaves = tuple(getattr(self, name) for name in self._TENSOR_ATTRS)
        return leaves, tuple(getattr(self, name) for name in self._CONTEXT_ATTRS)

    @classmethod
    def _unflatten(cls, leaves, context):
        return cls(**dict(zip(cls._TENSOR_ATTRS, leaves)), **dict(zip(cls._CONTEXT_ATTRS, context)))

    def __str__(self):
        picture = self.to_string().rstrip()
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{picture}\n)"

    def __repr__(self):
        lines = [
            f"    {name}={tensor.shape if tensor is not None else None},"
            for name in self._TENSOR_ATTRS
            for tensor in [getattr(self, name)]
        ]
        mask_name = getattr(self.mask_mod, "__name__", self.mask_mod)
        return "\n".join(
            [
                "BlockMask(",
                *lines,
                f"    BLOCK_SIZE={self.BLOCK_SIZE},",
                f"    shape={self.shape},",
                f"    sparsity={self.sparsity():.2f}%,",
                f"    mask_mod={mask_name}",
                ")",
            ]
        )

    def to_string(self, grid_size=(20, 20), limit=4):
        """A picture for each batch and head: full squares are computed, half ones in part.

        Args:
            grid_size: the most rows and columns to draw; -1 draws each block.
            limit: how many pictures to draw.
        """
        dense = self.to_dense()
        leading = list(dense.shape[:-2])
        limits = dense.shape[-2:] if grid_size == -1 else _pair(grid_size)
        texts = []
        for number in range(prod(leading)):
            if number == limit:
                texts += [
                    "...",
                    "To print out more, set BlockMask.to_string(limit=N)",
                    "You can also index (BlockMask[batch, head]) to choose a specific batch or head",
                ]
                break
            place = tuple(rushlight.unravel_index(rushlight.tensor(number), leading))
            place = tuple(int(i) for i in place)
            texts.append(f"{place}\n{_picture(dense[place], limits)}\n")
        return "\n".join(texts)


def _picture(dense, limits):
    rows, columns = dense.shape
    height, width = -(-rows // min(limits[0], rows)), -(-columns // min(limits[1], columns))
    lines = []
    for r in range(0, rows, height):
        cells = [dense[r : r + height, c : c + width].float().mean().item() for c in range(0, columns, width)]
        lines.append("".join("██" if cell == 1 else "  " if cell == 0 else "░░" for cell in cells))
    return "\n".join(lines)


def _register():
    from rushlight.utils import _pytree

    _pytree.register_pytree_node(BlockMask, BlockMask._flatten, BlockMask._unflatten)


_register()


# --- making masks


def or_masks(*mask_mods):
    """The mask that shows what any of the given ones shows."""
    _check_callable(mask_mods)

    def or_mask(b, h, q_idx, kv_idx):
        result = b.new_zeros((), dtype=rushlight.bool)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return or_mask


def and_masks(*mask_mods):
    """The mask that shows what all of the given ones show."""
    _check_callable(mask_mods)

    def and_mask(b, h, q_idx, kv_idx):
        result = b.new_ones((), dtype=rushlight.bool)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return and_mask


def _check_callable(mask_mods):
    if not all(callable(mask) for mask in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


def _changes_scores(function):
    """Whether this takes a score, and not only positions."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    count = sum(p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD for p in parameters)
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return False
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return count == 5


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """The mask as a tensor (batch, heads, queries, keys) of booleans; ``B`` or ``H`` None count as 1.

    A function that changes scores shows what it does not set to minus infinity.
    """
    places = positions(1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN, device)
    if not _changes_scores(mod_fn):
        return over_positions(mod_fn)(*places)
    scores = rushlight.zeros([len(place) for place in places], device=device)
    per_score = mod_fn
    for dims in ((0, None, None, None, 0), (0, None, None, 0, None), (0, None, 0, None, None)):
        per_score = rushlight.vmap(per_score, in_dims=dims)
    return ~rushlight.isneginf(rushlight.vmap(per_score, in_dims=(0, 0, None, None, None))(scores, *places))


def create_block_mask(
    mask_mod,
    B,
    H,
    Q_LEN,
    KV_LEN,
    device=None,
    BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
    _compile=False,
    separate_full_blocks=True,
):
    """Find out which blocks a mask leaves in part, in whole, or not at all."""
    if _changes_scores(mask_mod):
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    q_size, kv_size = _pair(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    missing = (0, -KV_LEN % kv_size, 0, -Q_LEN % q_size)
    mask = rushlight.nn.functional.pad(mask, missing)
    batch, heads, rows, columns = mask.shape
    blocks = mask.view(batch, heads, rows // q_size, q_size, columns // kv_size, kv_size)
    counts = blocks.permute(0, 1, 2, 4, 3, 5).sum(dim=(-2, -1))
    full = counts == q_size * kv_size if separate_full_blocks else counts < 0
    lists = _to_lists((counts > 0) & ~full)
    full_lists = _to_lists(full) if separate_full_blocks else (None, None)
    return BlockMask.from_kv_blocks(
        *lists,
        *full_lists,
        BLOCK_SIZE=(q_size, kv_size),
        mask_mod=mask_mod,
        seq_lengths=(Q_LEN, KV_LEN),
    )
