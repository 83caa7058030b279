"""Parts of tensors in safetensors files, put together after they were written."""

from . import _hf_files

__all__ = ["consolidate_safetensors_files", "consolidate_safetensors_files_on_every_rank"]


def consolidate_safetensors_files(input_dir, output_dir, fqn_to_index_mapping, num_threads=1):
    """Whole tensors, in files of `output_dir`, and an index, from the parts in `input_dir`.

    Args:
        fqn_to_index_mapping: the number, from 1, of the file of each name.

    Raises CheckpointException where parts are missing or do not fit together.
    """
    _hf_files.write_index(output_dir, *_hf_files.put_together(input_dir, output_dir, fqn_to_index_mapping))


def consolidate_safetensors_files_on_every_rank(
    input_dir, output_dir, fqn_to_index_mapping, num_threads=1, process_group=None
):
    """The same, the files shared among the ranks; returns when all are written, the index by the first."""
    from ... import distributed as dist

    if not dist.is_initialized():
        consolidate_safetensors_files(input_dir, output_dir, fqn_to_index_mapping, num_threads)
        return
    rank, size = dist.get_rank(process_group), dist.get_world_size(process_group)
    count = max(fqn_to_index_mapping.values())
    mine = {name: number for name, number in fqn_to_index_mapping.items() if number % size == rank}
    total = _hf_files.put_together(input_dir, output_dir, mine, count)[1] if mine else 0
    totals = [0] * size
    dist.all_gather_object(totals, total, group=process_group)
    if rank == 0:
        files = {name: _hf_files.file_name(n, count) for name, n in fqn_to_index_mapping.items()}
        _hf_files.write_index(output_dir, files, sum(totals))
    dist.barrier(process_group)
