"""Finding what is wrong with a training program. Beyond PyTorch; each tool is one switch, and free when off.

==============================  =====================================================================
`find_nonfinite`                the first operator that makes a NaN or an infinity, forward or backward
`strict_broadcasting`           shapes that differ raise instead of being broadcast
`track_inplace`                 which line wrote to which tensor
`check_training`                silent mistakes of training loops, as warnings
`unused_parameters`             parameters that a loss does not depend on
`audit`                         dtypes, devices and gradients of a model's tensors
`who_holds`                     what keeps a tensor, or the graph behind it, in memory
`find_leaks`                    tensors that outlive a block, by the line that made them
==============================  =====================================================================

Elsewhere: `autograd.detect_anomaly` names the forward line of a backward error, and
`use_deterministic_algorithms` the operator whose result may differ from run to run.
"""

from rushlight.debug._leaks import find_leaks, who_holds
from rushlight.debug._models import audit, unused_parameters
from rushlight.debug._training import check_training
from rushlight.debug._watch import find_nonfinite, strict_broadcasting, track_inplace

__all__ = [
    "audit",
    "check_training",
    "find_leaks",
    "find_nonfinite",
    "strict_broadcasting",
    "track_inplace",
    "unused_parameters",
    "who_holds",
]
