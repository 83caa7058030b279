"""Copies between devices, at their older place."""

from rushlight.cuda.comm import *  # noqa: F403
