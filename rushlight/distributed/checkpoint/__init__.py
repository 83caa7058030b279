"""Checkpoints written and read by all ranks together, and state dicts that are the same however a model is
wrapped."""

from . import state_dict
from .filesystem import CheckpointException, FileSystemReader, FileSystemWriter
from .planner import DefaultLoadPlanner, DefaultSavePlanner
from .state_dict_loader import load
from .state_dict_saver import save
