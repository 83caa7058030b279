"""Checkpoints written and read by all ranks together, and state dicts that are the same however a model is
wrapped."""

from . import state_dict
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import CheckpointException, FileSystemReader, FileSystemWriter
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from .optimizer import load_sharded_optimizer_state_dict
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem
from .state_dict_loader import load, load_state_dict
from .state_dict_saver import AsyncCheckpointerType, async_save, save, save_state_dict
from .storage import StorageReader, StorageWriter
