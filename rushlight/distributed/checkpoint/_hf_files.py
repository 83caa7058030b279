"""Checkpoints as Hugging Face lays them out: safetensors files, and an index in JSON of what lies where.

A file of parts of tensors says in its header where each begins (`DCP_SHARDING_INFO`, PyTorch's key).
"""

import json
import math
import os

from ... import empty
from ...safetensors import SafetensorError, safe_open, save_file
from .filesystem import CheckpointException

INDEX = "model.safetensors.index.json"
SUFFIX = ".safetensors"
SHARDS = "sharded"  # the folder of parts, where they are put together afterwards
_PARTS = "DCP_SHARDING_INFO"


def file_name(number, count, shard=None):
    """`model-00001-of-00002.safetensors`; of rank `shard` with a prefix."""
    prefix = "" if shard is None else f"shard-{shard:05}-"
    return f"{prefix}model-{number:05}-of-{count:05}{SUFFIX}"


def write_parts(path, parts):
    """A file of {name: (tensor, where it begins in the whole)}; how many bytes each takes."""
    offsets = {name: {"saved_offsets": list(begin)} for name, (_, begin) in parts.items()}
    tensors = {name: tensor for name, (tensor, _) in parts.items()}
    try:
        save_file(tensors, path, {_PARTS: json.dumps(offsets), "DCP_VERSION": "1.0", "format": "pt"})
    except ValueError as error:
        raise CheckpointException(f"save: {error}") from None
    return {name: tensor.numel() * tensor.element_size() for name, tensor in tensors.items()}


def open_file(path):
    """A safetensors file, opened; damage is a CheckpointException."""
    try:
        return safe_open(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointException(str(error)) from None


def files_of(folder):
    """The safetensors files of a folder, sorted by name."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX))
    except OSError as error:
        raise CheckpointException(f"no checkpoint can be read: {error}") from None
    return [os.path.join(folder, name) for name in names]


def begins(opened, path):
    """{name: where it begins in the whole} of a file's tensors."""
    said = (opened.metadata() or {}).get(_PARTS)
    ranks = {name: len(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118
    if not said:
        return {name: [0] * rank for name, rank in ranks.items()}
    try:
        found = {name: json.loads(said)[name]["saved_offsets"] for name in ranks}
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointException(f"{path}: {_PARTS} does not say where tensors begin: {error!r}") from None
    for name, begin in found.items():
        good = isinstance(begin, list) and len(begin) == ranks[name]
        if not good or not all(type(at) is int and 0 <= at < 2**62 for at in begin):
            raise CheckpointException(f"{path}: {name} of {ranks[name]} dimensions cannot begin at {begin}")
    return found


def write_index(folder, file_of, size):
    """The index: {name: file}, and bytes in all."""
    content = {"metadata": {"total_size": size}, "weight_map": dict(sorted(file_of.items()))}
    path = os.path.join(folder, INDEX)
    with open(path + ".tmp", "w") as stream:
        json.dump(content, stream, indent=2)
    os.replace(path + ".tmp", path)


# --- parts put together


def _pieces(paths):
    """{name: {where it begins: open file}} of all files."""
    found: dict = {}
    for path in paths:
        opened = open_file(path)
        for name, begin in begins(opened, path).items():
            held = found.setdefault(name, {})
            if tuple(begin) in held:
                raise CheckpointException(f"{path}: another file holds {name} at {begin} too")
            held[tuple(begin)] = opened
    return found


def _whole(name, pieces):
    """One tensor from its parts; they must fill it."""
    parts = [(begin, opened.get_tensor(name)) for begin, opened in pieces.items()]
    ends = [[at + length for at, length in zip(begin, part.shape)] for begin, part in parts]
    size = [max(lengths) for lengths in zip(*ends)]
    if len(parts) == 1 and not any(parts[0][0]):
        return parts[0][1]
    held = sum(part.numel() for _, part in parts)
    if held != math.prod(size):
        raise CheckpointException(f"{name}: its parts hold {held} elements, which is not what {size} has")
    whole = empty(size, dtype=parts[0][1].dtype)
    for begin, part in parts:
        whole[tuple(slice(at, at + length) for at, length in zip(begin, part.shape))] = part
    return whole


def put_together(folder, target, number_of, count=None):
    """Whole tensors in files of `target` from the parts in `folder`; {name: file}, and bytes in all.

    Args:
        number_of: {name: number of its file, from 1}.
        count: how many files there are, with those of others.
    """
    pieces = _pieces(files_of(folder))
    missing = sorted(set(number_of) - set(pieces))
    if missing:
        raise CheckpointException(f"{folder} holds no part of {', '.join(missing[:5])}")
    count, file_of, size = count or max(number_of.values()), {}, 0
    for number in sorted(set(number_of.values())):
        name = file_name(number, count)
        tensors = {key: _whole(key, pieces[key]) for key, its in number_of.items() if its == number}
        save_file(tensors, os.path.join(target, name), {"format": "pt"})
        file_of |= dict.fromkeys(tensors, name)
        size += sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    return file_of, size
