"""Settings of the libraries underneath. They can be read and set; what this build lacks answers so."""

from rushlight.backends import _settings as _s
from rushlight.backends import mha

__package_capture__ = "through"  # Note [Capture marks]

(
    cudnn,
    mkldnn,
    mkl,
    openmp,
    mps,
    cpu,
    cuda,
    opt_einsum,
    nnpack,
    quantized,
    xeon,
    cusparselt,
    cudnn_rnn,
    xnnpack,
    kleidiai,
    miopen,
) = (
    _s.cudnn,
    _s.mkldnn,
    _s.mkl,
    _s.openmp,
    _s.mps,
    _s.cpu,
    _s.cuda,
    _s.opt_einsum,
    _s.nnpack,
    _s.quantized,
    _s.xeon,
    _s.cusparselt,
    _s.cudnn_rnn,
    _s.xnnpack,
    _s.kleidiai,
    _s.miopen,
)
fp32_precision = "none"
