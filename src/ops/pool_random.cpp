// Max pooling over windows spaced at random (Graham, "Fractional Max-Pooling", 2014), and max pooling undone:
// compositions, and a kernel for the CPU.
#include <tuple>

#include "cpu/fractional_max_pool.h"
#include "dispatch/table.h"
#include "ops/arithmetic.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/join.h"
#include "ops/plain.h"
#include "ops/pointwise.h"
#include "ops/pool.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/unordered.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

Dims joined(IntList lead, IntList rest) {
  Dims all = lead.dims();
  for (int64_t n : rest) all.push_back(n);
  return all;
}

// --- max pooling undone

std::string by_x(IntList sizes) {
  std::string text;
  for (int64_t n : sizes) text += (text.empty() ? "" : "x") + std::to_string(n);
  return text;
}

void check_unpool(const char* who, const Tensor& self, const Tensor& indices, IntList size, int64_t n) {
  RL_CHECK(indices.dtype() == DType::Int64,
           "elements in indices should be type int64 but got: ", indices.dtype());
  RL_CHECK(static_cast<int64_t>(size.size()) == n, "There should be exactly ", n,
           " elements in output_size, but got ", size.size(), " elements.");
  RL_CHECK(self.dim() == n + 1 || self.dim() == n + 2, who, ": Expected input to have ", n + 1, " or ", n + 2,
           " dimensions, but got a tensor of shape ", self.sizes());
  RL_CHECK(self.sizes() == indices.sizes(),
           "Expected shape of indices to be same as that of the input tensor (", self.sizes(),
           ") but got indices tensor with shape: ", indices.sizes());
  for (int64_t extent : size) RL_CHECK(extent >= 0, who, ": output_size must not be negative, got ", size);
  if (indices.device().is_meta() || indices.numel() == 0) return;
  if (indices->flags & kWrapped) return;  // values that differ by the example: the scatter refuses them
  const auto [low, high] = aminmax(indices, std::nullopt, false);
  const auto least = read_scalar(low).to<int64_t>(), most = read_scalar(high).to<int64_t>();
  const bool beyond = most >= checked_numel(size);
  RL_CHECK(!beyond && least >= 0, "Found an invalid max index: ", beyond ? most : least,
           " (output volumes are of size ", by_x(size));
}

Tensor unpooled(const char* who, const Tensor& self, const Tensor& indices, IntList size, int64_t n) {
  check_unpool(who, self, indices, size, n);
  const IntList lead = self.sizes().slice(0, self.dim() - n);
  const Tensor zeros = new_zeros(self, joined(lead, IntList{checked_numel(size)}), {}, {}, {}, {});
  const Tensor flat = scatter_src(zeros, -1, flatten(indices, -n, -1), flatten(self, -n, -1));
  const Tensor result = view(flat, joined(lead, size));
  const bool channels_last =
      self.dim() == 4 && !self.is_contiguous() && self.is_contiguous(MemoryFormat::ChannelsLast);
  return channels_last ? contiguous(result, MemoryFormat::ChannelsLast) : result;
}

Tensor max_unpool2d_body(const Call&, const Tensor& self, const Tensor& indices, IntList output_size) {
  check_ordered("max_unpooling2d_forward_out");
  return unpooled("max_unpool2d", self, indices, output_size, 2);
}
Tensor max_unpool3d_body(const Call&, const Tensor& self, const Tensor& indices, IntList output_size,
                         IntList stride, IntList) {
  check_ordered("max_unpooling3d_forward_out");
  for (int64_t step : stride)
    RL_CHECK(step > 0, "strides should be greater than zero, but got stride: ", stride);
  return unpooled("max_unpool3d", self, indices, output_size, 3);
}

// --- windows spaced at random

// Where the windows begin along one dimension, [batch, channels, out]: steps that end at the border.
Tensor window_starts(const Tensor& sample, int64_t size, int64_t out, int64_t kernel) {
  const auto last = size - kernel;
  const Tensor border = unsqueeze(full_like(sample, Scalar(last), DType::Int64, {}, {}, {}, {}), -1);
  if (out <= 1) return narrow(border, -1, 0, out);
  const Scalar alpha(static_cast<double>(last) / static_cast<double>(out - 1));
  const Tensor steps = arange(Scalar(int64_t{0}), Scalar(out - 1), Scalar(int64_t{1}), sample.dtype(), {},
                              sample.device(), {});
  const Tensor shift = unsqueeze(floor(sample * alpha), -1);
  const Tensor starts = floor((steps + unsqueeze(sample, -1)) * alpha) - shift;
  return cat({to_dtype(starts, DType::Int64), border}, -1);
}

void check_windows(const std::string& who, const Tensor& self, IntList kernel, IntList output,
                   const Tensor& samples, int64_t n) {
  constexpr const char* kSides[] = {"time", "height", "width"};
  RL_CHECK(static_cast<int64_t>(kernel.size()) == n, who,
           ": kernel_size must either be a single Int or tuple of Ints");
  RL_CHECK(static_cast<int64_t>(output.size()) == n, who,
           ": output_size must either be a single Int or tuple of Ints");
  bool full = self.dim() == n + 1 || self.dim() == n + 2;
  for (int64_t d = self.dim() - n - 1; full && d < self.dim(); ++d) full = self.size(d) > 0;
  RL_CHECK(full, who, "(): Expected input to have non-zero size for non-batch dimensions, but got",
           self.sizes(), ".");
  for (int64_t d = 0; d < n; ++d) {
    const int64_t k = kernel[d], size = self.size(d - n);
    RL_CHECK(k > 0 && output[d] >= 0, who, "(): kernel_size and output_size must be positive, got ", kernel,
             " and ", output);
    RL_CHECK(output[d] <= size && k - 1 <= size - output[d], who, "(): pool ", kSides[3 - n + d], " ", k,
             " too large relative to input ", kSides[3 - n + d], " ", size);
  }
  RL_CHECK(samples.dim() == 3, "Expect _random_samples to have 3 dimensions, got ", samples.dim());
  const int64_t batch = self.dim() == n + 2 ? self.size(0) : 1;
  RL_CHECK(samples.size(0) >= batch, "Expect _random_samples.size(0) no less then input batch size.");
  RL_CHECK(samples.size(1) == self.size(-n - 1),
           "Expect _random_samples.size(1) equals to input channel size.");
  RL_CHECK(samples.size(2) == n, "Expect _random_samples.size(2) equals to ", n, "; got ", samples.size(2),
           ".");
}

// The same along each dimension.
std::vector<Tensor> all_window_starts(const Tensor& x, IntList kernel, IntList output,
                                      const Tensor& samples) {
  const auto n = static_cast<int64_t>(kernel.size());
  std::vector<Tensor> starts;
  for (int64_t d = 0; d < n;
       ++d)  // samples of images come with the last dimension first, of volumes in order
    starts.push_back(
        window_starts(select(samples, -1, n == 2 ? 1 - d : d), x.size(2 + d), output[d], kernel[d]));
  return starts;
}

// All of them in a row of each plane, [batch, channels, windows]; written at once where nobody listens.
Tensor joined_window_starts(const Tensor& x, IntList kernel, IntList output, const Tensor& samples) {
  if (!is_plain(samples) || !is_floating(samples.dtype()))
    return cat(all_window_starts(x, kernel, output, samples), -1);
  const auto n = static_cast<int64_t>(kernel.size());
  int64_t windows = 0;
  for (int64_t count : output) windows += count;
  const Tensor given = contiguous(samples),
               starts = empty_tensor(Dims{x.size(0), x.size(1), windows}, DType::Int64, x.device());
  visit_dtype(FloatTypes{}, samples.dtype(), "fractional_max_pool", [&]<class T>(T) {
    const T* sample = given.data<T>();
    auto* start = starts.data<int64_t>();
    for (int64_t plane = 0; plane < x.size(0) * x.size(1); ++plane, sample += n)
      for (int64_t d = 0; d < n; start += output[d], ++d)
        cpu::random_starts(sample[n == 2 ? 1 - d : d], x.size(2 + d) - kernel[d], output[d], start);
  });
  return starts;
}

// The flat positions of all windows' elements: [batch, channels, *out, elements of a window].
Tensor window_positions(const Tensor& x, IntList kernel, IntList output, const std::vector<Tensor>& starts) {
  const auto n = static_cast<int64_t>(kernel.size());
  Dims shape(static_cast<size_t>(2 + 2 * n), 1);
  shape[0] = x.size(0), shape[1] = x.size(1);
  Tensor at;
  for (int64_t d = 0; d < n; ++d) {
    const Tensor inside =
        arange(Scalar(int64_t{0}), Scalar(kernel[d]), Scalar(int64_t{1}), DType::Int64, {}, x.device(), {});
    Dims along = shape;
    along[static_cast<size_t>(2 + d)] = output[d], along[static_cast<size_t>(2 + n + d)] = kernel[d];
    const Tensor here = view(unsqueeze(starts[static_cast<size_t>(d)], -1) + inside, along);
    at = at.defined() ? at * Scalar(x.size(2 + d)) + here : here;
  }
  return flatten(at, 2 + n, -1);
}

std::tuple<Tensor, Tensor> fractional_max_pool_kernel(const Call&, const Tensor& self, const Tensor& starts,
                                                      IntList kernel, IntList output) {
  const auto n = static_cast<size_t>(output.size());
  const Dims sizes = joined(self.sizes().slice(0, 2), output);
  const Tensor values = empty_tensor(sizes, self.dtype(), self.device()),
               indices = empty_tensor(sizes, DType::Int64, self.device());
  if (!self.is_cpu() || values.numel() == 0) return {values, indices};
  const Tensor x = contiguous(self);
  const Tensor rows = contiguous(starts);
  cpu::FractionalWindows w;
  w.planes = x.size(0) * x.size(1);
  w.dims = static_cast<int>(n);
  w.starts = rows.data<int64_t>();
  for (size_t d = 0; d < n; ++d)
    w.in[3 - n + d] = x->sizes[2 + d], w.out[3 - n + d] = output[d], w.kernel[3 - n + d] = kernel[d];
  RL_ASSERT(rows.numel() == w.planes * w.starts_of_plane());
  RL_CHECK_INDEX(w.within(), "fractional_max_pool", n, "d(): _random_samples must be from 0 to below 1");
  cpu::fractional_max_pool(w, x.dtype(), x.data_ptr(), values.data_ptr(), indices.data<int64_t>());
  return {values, indices};
}

template <int N>
std::tuple<Tensor, Tensor> fractional_body(const Call&, const Tensor& self, IntList kernel, IntList output,
                                           const Tensor& samples) {
  check_windows("fractional_max_pool" + std::to_string(N) + "d", self, kernel, output, samples, N);
  const bool batched = self.dim() == N + 2;
  const Tensor x = batched ? self : unsqueeze(self, 0);
  const Tensor drawn = narrow(samples, 0, 0, x.size(0));
  Tensor values, indices;
  if (x.is_cpu() && is_floating(x.dtype())) {
    const Tensor starts = joined_window_starts(x, kernel, output, drawn);
    std::tie(values, indices) = fractional_max_pool(x, starts, kernel, output);
  } else {
    const Tensor at = window_positions(x, kernel, output, all_window_starts(x, kernel, output, drawn));
    Tensor best;
    std::tie(values, best) =
        max_dim(view(gather(flatten(x, 2, -1), -1, flatten(at, 2, -1), false), at.sizes()), -1, false);
    indices = squeeze_dim(gather(at, -1, unsqueeze(best, -1), false), -1);
  }
  if (batched) return {values, indices};
  return {squeeze_dim(values, 0), squeeze_dim(indices, 0)};
}

}  // namespace

void register_random_pool_operators(Table& t) {
  t.composite(max_unpool2d, "nn::max_unpool2d(Tensor self, Tensor indices, int[2] output_size) -> Tensor",
              max_unpool2d_body)
      .doc("The values of max_pool2d put back at their indices, zero elsewhere.")
      .autocast(Cast::Float, Cast::None)
      .one_node();
  t.composite(max_unpool3d,
              "nn::max_unpool3d(Tensor self, Tensor indices, int[3] output_size, int[3] stride, int[3] "
              "padding) -> Tensor",
              max_unpool3d_body)
      .doc("The values of max_pool3d put back at their indices, zero elsewhere.")
      .autocast(Cast::Float, Cast::None)
      .one_node();
  t.composite(fractional_max_pool2d,
              "nn::fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor "
              "random_samples) -> (Tensor output, Tensor indices)",
              fractional_body<2>)
      .doc("Maxima over windows of images spaced at random, and where they stood.")
      .autocast(Cast::Float, Cast::None)
      .one_node();
  t.composite(fractional_max_pool3d,
              "nn::fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor "
              "random_samples) -> (Tensor output, Tensor indices)",
              fractional_body<3>)
      .doc("Maxima over windows of volumes spaced at random, and where they stood.")
      .autocast(Cast::Float, Cast::None)
      .one_node();
  t.op(fractional_max_pool,
       "_fractional_max_pool(Tensor self, Tensor starts, int[] kernel_size, int[] output_size) -> (Tensor, "
       "Tensor)",
       fractional_max_pool_kernel)
      .absent_in_pytorch()
      .internal()
      .doc(
          "Maxima over windows that begin where `starts` says, [batch, channels, windows], and where they "
          "stood.")
      .family(Family::Window)
      .derivative([](Grad g, Out<1> indices, Shape<0> x, Attr<3, IntList> output) {
        return Grads{max_pool_backward(g, indices, x, static_cast<int64_t>(output->size())), Tensor()};
      });
}

}  // namespace rushlight
