"""An observer that keeps a histogram, and cuts off tails where that rounds the bulk of numbers better."""

import ctypes
import warnings
from bisect import bisect_left, bisect_right

import rushlight

from .. import utils
from ._base import UniformQuantizationObserverBase

# Share of the numbers that one step of the search may cut off a tail.
_STEP = 1e-5


def _to_float(number):
    """A number as float32 holds it: sums of counts are compared in that precision."""
    return ctypes.c_float(number).value


class HistogramObserver(UniformQuantizationObserverBase):
    """Counts numbers in bins. Their range is what makes the squared error of rounding least."""

    histogram: rushlight.Tensor
    min_val: rushlight.Tensor
    max_val: rushlight.Tensor

    def __init__(
        self,
        bins=2048,
        dtype=None,
        qscheme=None,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=rushlight.finfo(rushlight.float32).eps,
        is_dynamic=False,
        **kwargs,
    ):
        qscheme = rushlight.per_tensor_affine if qscheme is None else qscheme
        if not utils.is_per_tensor(qscheme):
            raise NotImplementedError(
                "HistogramObserver's qscheme only support torch.per_tensor_symmetric \
                    and torch.per_tensor_affine."
            )
        if is_dynamic:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(
            dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs
        )
        made = dict(factory_kwargs or {})
        self.bins = bins
        self.register_buffer("histogram", rushlight.zeros(bins, **made))
        self.register_buffer("min_val", rushlight.tensor(float("inf"), **made))
        self.register_buffer("max_val", rushlight.tensor(float("-inf"), **made))
        self.dst_nbins = 2 ** rushlight.iinfo(utils.to_underlying_dtype(self.dtype)).bits
        self.upsample_rate = 16

    # ---- the range ----

    def _get_norm(self, delta_begin, delta_end, density):
        """The squared error of numbers spread evenly from one distance to another."""
        return density * (delta_end * delta_end * delta_end - delta_begin * delta_begin * delta_begin) / 3

    def _compute_quantization_error(self, next_start_bin, next_end_bin):
        """The squared error if these bins are the range: each lies in one level, or spreads over several."""
        width = (self.max_val.item() - self.min_val.item()) / self.bins
        level = width * (next_end_bin - next_start_bin + 1) / self.dst_nbins
        if level == 0.0:
            return 0.0
        bins = rushlight.arange(self.bins, device=self.histogram.device)
        begin = (bins - next_start_bin) * width
        end = begin + width
        first = rushlight.clamp(rushlight.div(begin, level, rounding_mode="floor"), 0, self.dst_nbins - 1)
        last = rushlight.clamp(rushlight.div(end, level, rounding_mode="floor"), 0, self.dst_nbins - 1)
        density = self.histogram / width
        half = rushlight.full_like(begin, level / 2)
        from_first = self._get_norm(begin - (first + 0.5) * level, half, density)
        between = (last - first - 1) * self._get_norm(-half, half, density)
        into_last = self._get_norm(-half, end - (last * level + level / 2), density)
        return (from_first + between + into_last).sum().item()

    def _non_linear_param_search(self):
        """The range with the least error. Each step gives up the bins of the tail that has more of them."""
        if self.histogram.size()[0] != self.bins:
            raise AssertionError("bins mismatch")
        width = (self.max_val - self.min_val) / self.bins
        total = rushlight.sum(self.histogram).item()
        sums = rushlight.cumsum(self.histogram, dim=0).tolist()
        below, above = 0.0, 1.0
        start, end = 0, self.bins - 1
        least = float("inf")
        while below < above:
            next_below, next_above = below + _STEP, above - _STEP
            low_sum = _to_float(_to_float(next_below) * total)
            high_sum = _to_float(_to_float(next_above) * total)
            left = min(max(start, bisect_left(sums, low_sum)), end)
            right = max(min(end, bisect_right(sums, high_sum) - 1), start)
            next_start, next_end = start, end
            if left - start > end - right:
                next_start, below = left, next_below
            else:
                next_end, above = right, next_above
            if (next_start, next_end) == (start, end):
                continue
            error = self._compute_quantization_error(next_start, next_end)
            if error > least:
                break
            least, start, end = error, next_start, next_end
        return self.min_val + width * start, self.min_val + width * (end + 1)

    # ---- counting ----

    def _upscale_histogram(self, histogram, orig_min, orig_max, update_min, update_max):
        """A histogram in the bins of another range. Each bin is split, and each part goes where its
        middle lies."""
        parts = self.bins * self.upsample_rate
        counts = histogram.repeat_interleave(self.upsample_rate) / self.upsample_rate
        half = 0.5 * ((orig_max - orig_min) / parts)
        edges = rushlight.linspace(orig_min.item(), orig_max.item(), parts + 1, device=orig_min.device)
        middles = edges[:-1] + half
        bounds = rushlight.linspace(
            update_min.item(), update_max.item(), self.bins + 1, device=orig_min.device
        )
        where = rushlight.bucketize(middles, bounds, right=True) - 1
        where[where >= self.bins] = self.bins - 1
        return rushlight.bincount(where, weights=counts, minlength=self.bins)

    def _combine_histograms(self, orig_hist, orig_min, orig_max, update_hist, update_min, update_max):
        """The sum of two histograms; the second one's range holds the first one's."""
        if update_min == orig_min and update_max == orig_max:
            return orig_hist + update_hist
        if orig_min == orig_max:
            total = rushlight.sum(orig_hist)
            point = rushlight.histc(orig_min, bins=self.bins, min=update_min.item(), max=update_max.item())
            return point * total + update_hist
        return update_hist + self._upscale_histogram(orig_hist, orig_min, orig_max, update_min, update_max)

    def reset_histogram(self, x, min_val, max_val):
        """Begin again with these numbers."""
        self._keep_range(min_val, max_val)
        self._keep_counts(rushlight.histc(x, self.bins, min=min_val.item(), max=max_val.item()))

    def _keep_range(self, low, high):
        self.min_val.resize_(low.shape).copy_(low)
        self.max_val.resize_(high.shape).copy_(high)

    def _keep_counts(self, counts):
        self.histogram.detach_().resize_(counts.shape)
        self.histogram.copy_(counts)

    def forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach()
        low, high = rushlight.aminmax(x)
        if low == -float("inf") or high == float("inf"):
            warnings.warn("torch.inf detected in input tensor, ignoring input", stacklevel=2)
            x = x[x.abs() != float("inf")]
            if x.numel() == 0:
                return x_orig
            low, high = rushlight.aminmax(x)
        if self.min_val == float("inf") and self.max_val == float("-inf"):
            self.reset_histogram(x, low, high)
            return x_orig
        new_low, new_high = rushlight.min(self.min_val, low), rushlight.max(self.max_val, high)
        counts = rushlight.histc(x, self.bins, min=new_low.item(), max=new_high.item())
        counts = self._combine_histograms(
            self.histogram, self.min_val, self.max_val, counts, new_low, new_high
        )
        self._keep_counts(counts)
        self._keep_range(new_low, new_high)
        return x_orig

    def calculate_qparams(self):
        if self.min_val == float("inf") and self.max_val == float("-inf"):
            warnings.warn(
                "must run observer before calling calculate_qparams.\
                                    Returning default scale and zero point ",
                stacklevel=2,
            )
            device = self.min_val.device
            return rushlight.tensor([1.0], device=device), rushlight.tensor([0], device=device)
        if self.bins != len(self.histogram):
            raise AssertionError(
                "The number of bins in histogram should be equal to the number of bins supplied "
                "while making this "
                "observer"
            )
        return self._calculate_qparams(*self._non_linear_param_search())

    # ---- state ----

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "min_val"] = self.min_val
        destination[prefix + "max_val"] = self.max_val

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, *rest):
        version = local_metadata.get("version")
        if version is None or version < 3:
            # Older files hold vectors of one.
            for name in ("min_val", "max_val"):
                if prefix + name in state_dict and state_dict[prefix + name].shape == (1,):
                    state_dict[prefix + name] = state_dict[prefix + name].reshape(())
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing, *rest)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}"
