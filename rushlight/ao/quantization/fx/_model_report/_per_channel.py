"""Layers whose weights could have a scale for each channel, and have one for all."""

import rushlight
import rushlight.ao.nn.qat as nnqat
from rushlight import nn

from ...fake_quantize import FakeQuantize
from ...observer import ObserverBase
from ...qconfig import QConfig
from ._detector import DetectorBase, DetectorQConfigInfo

_LAYERS = frozenset(
    (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nnqat.Linear, nnqat.Conv1d, nnqat.Conv2d, nnqat.Conv3d)
)


def _uses_per_channel(module):
    """Whether the layer's configuration rounds its weight by channels."""
    if not isinstance(module.qconfig, QConfig):
        raise AssertionError("module.qconfig must be a QConfig")
    watcher = module.qconfig.weight.p.func()
    if isinstance(watcher, FakeQuantize):
        return bool(watcher.is_per_channel)
    if not isinstance(watcher, ObserverBase):
        raise AssertionError("module.qconfig.weight must be a FakeQuantize or ObserverBase")
    return hasattr(watcher, "ch_axis")


class PerChannelDetector(DetectorBase):
    """Looks at configurations alone: it inserts no observers."""

    BACKEND_KEY = "backend"
    PER_CHAN_SUPPORTED_KEY = "per_channel_quantization_supported"
    PER_CHAN_USED_KEY = "per_channel_quantization_used"

    DEFAULT_BACKEND_PER_CHANNEL_SUPPORTED_MODULES = {
        engine: set(_LAYERS) for engine in ("fbgemm", "qnnpack", "onednn", "x86")
    }

    def __init__(self, backend=None):
        super().__init__()
        self.backend_chosen = rushlight.backends.quantized.engine if backend is None else backend
        if self.backend_chosen not in self.DEFAULT_BACKEND_PER_CHANNEL_SUPPORTED_MODULES:
            raise ValueError(
                f"Not configured to work with {self.backend_chosen}. Try a different default backend"
            )
        self.supported_modules = self.DEFAULT_BACKEND_PER_CHANNEL_SUPPORTED_MODULES[self.backend_chosen]

    def get_detector_name(self):
        return "per_channel_detector"

    def determine_observer_insert_points(self, model):
        return {}

    def get_qconfig_info(self, model):
        recommended = {}
        for fqn, found in self._look(model).items():
            recommended[fqn] = DetectorQConfigInfo(fqn)
            recommended[fqn].is_weight_per_channel = found[self.PER_CHAN_SUPPORTED_KEY]
        return recommended

    def _look(self, model):
        return {
            fqn: {
                self.PER_CHAN_SUPPORTED_KEY: True,
                self.PER_CHAN_USED_KEY: _uses_per_channel(module),
                self.BACKEND_KEY: self.backend_chosen,
            }
            for fqn, module in model.named_modules()
            if isinstance(module, tuple(self.supported_modules))
        }

    def generate_detector_report(self, model):
        found = self._look(model)
        lines = [f"Further Optimizations for backend {self.backend_chosen}: "]
        lines += [
            f"Module {fqn} can be configured to use per_channel quantization."
            for fqn, info in found.items()
            if not info[self.PER_CHAN_USED_KEY]
        ]
        lines.append(
            "Give these modules a qconfig with a per_channel weight observer."
            if len(lines) > 1
            else "No further per_channel optimizations possible."
        )
        return "\n".join(lines), found
