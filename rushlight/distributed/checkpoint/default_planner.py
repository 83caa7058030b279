"""The planners under the name that PyTorch gives their module."""

from .planner import DefaultLoadPlanner, DefaultSavePlanner, _EmptyStateDictLoadPlanner

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner", "_EmptyStateDictLoadPlanner"]
