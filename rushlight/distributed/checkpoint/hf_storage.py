"""Where a spread state lies as safetensors files; `save` and `load` of spread states are not here yet."""

from dataclasses import dataclass

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]


@dataclass
class HuggingFaceStorageReader:
    """A folder of safetensors files to read."""

    path: str
    thread_count: int = 1


@dataclass
class HuggingFaceStorageWriter:
    """A folder of safetensors files to write, and which file each name goes to."""

    path: str
    fqn_to_index_mapping: dict | None = None
    thread_count: int = 1
    save_distributed: bool = False
    enable_consolidation: bool = False
    thread_count_consolidation: int = 1
