"""State dicts of models and optimizers, the same however they are wrapped."""

from . import state_dict
