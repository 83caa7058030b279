// Pixels and channels in another order, and tensors brought to one shape: compositions of views and copies.
#include "ops/copy.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

std::vector<Tensor> broadcast_tensors_body(const Call&, TensorList tensors) {
  Dims shape;
  for (const Tensor& t : tensors) shape = broadcast_shapes(shape, t.sizes());
  std::vector<Tensor> views;
  views.reserve(tensors.size());
  // One of the whole shape is given back itself, as programs that look for its gradient expect.
  for (const Tensor& t : tensors) views.push_back(t.sizes() == IntList(shape) ? t : expand(t, shape, false));
  return views;
}

// With at least so many dimensions; new ones where NumPy puts them.
Tensor at_least_1d(const Call&, const Tensor& t) { return t.dim() == 0 ? reshape(t, IntList{1}) : t; }
Tensor at_least_2d(const Call&, const Tensor& t) {
  return t.dim() == 0 ? reshape(t, IntList{1, 1}) : t.dim() == 1 ? unsqueeze(t, 0) : t;
}
Tensor at_least_3d(const Call&, const Tensor& t) {
  if (t.dim() == 0) return reshape(t, IntList{1, 1, 1});
  return t.dim() == 1 ? unsqueeze(unsqueeze(t, 0), -1) : t.dim() == 2 ? unsqueeze(t, -1) : t;
}
template <auto One>
std::vector<Tensor> for_each(const Call& call, TensorList tensors) {
  std::vector<Tensor> results;
  results.reserve(tensors.size());
  for (const Tensor& t : tensors) results.push_back(One(call, t));
  return results;
}

std::vector<Tensor> meshgrid_body(const Call&, TensorList tensors, std::string_view indexing) {
  RL_CHECK(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  RL_CHECK(indexing == "ij" || indexing == "xy",
           "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: ", indexing);
  Dims shape, along;
  for (const Tensor& t : tensors) {
    RL_CHECK(t.dim() <= 1, "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: ", t.dim(),
             "D");
    RL_CHECK(t.dtype() == tensors[0].dtype(), "meshgrid expects all tensors to have the same dtype");
    RL_CHECK(t.device() == tensors[0].device(), "meshgrid expects all tensors to have the same device");
    shape.push_back(t.numel());
    along.push_back(1);
  }
  std::vector<Tensor> grids;
  grids.reserve(tensors.size());
  for (size_t d = 0; d < tensors.size(); ++d) {
    along[d] = shape[d];
    Tensor grid = expand(reshape(tensors[d], along), shape, false);
    grids.push_back(indexing == "xy" && tensors.size() > 1 ? transpose(grid, 0, 1) : std::move(grid));
    along[d] = 1;
  }
  return grids;
}

// --- between channels and space

Tensor in_order(const Tensor& x) { return clone(x, MemoryFormat::Contiguous); }

// The axes of `lead` dimensions that stay, then the others in the given order.
Dims axes_after(int64_t lead, std::initializer_list<int64_t> order) {
  Dims axes;
  for (int64_t d = 0; d < lead; ++d) axes.push_back(d);
  for (int64_t d : order) axes.push_back(lead + d);
  return axes;
}

Dims leading(const Tensor& x, std::initializer_list<int64_t> rest) {
  Dims sizes;
  for (int64_t d = 0; d < x.dim() - 3; ++d) sizes.push_back(x.size(d));
  for (int64_t n : rest) sizes.push_back(n);
  return sizes;
}

// Images whose channels come last stay so.
Tensor laid_out_as(const Tensor& self, const Tensor& result) {
  const bool last =
      self.dim() == 4 && !self.is_contiguous() && self.is_contiguous(MemoryFormat::ChannelsLast);
  return last ? contiguous(result, MemoryFormat::ChannelsLast) : result;
}

Tensor pixel_shuffle_body(const Call&, const Tensor& self, int64_t r) {
  RL_CHECK(self.dim() >= 3, "pixel_shuffle expects input to have at least 3 dimensions, but got input with ",
           self.dim(), " dimension(s)");
  RL_CHECK(r > 0, "pixel_shuffle expects a positive upscale_factor, but got ", r);
  const int64_t c = self.size(-3), h = self.size(-2), w = self.size(-1), lead = self.dim() - 3;
  const int64_t square = r <= int64_t{1} << 31 ? r * r : 0;  // 0 stands for more than there can be channels
  RL_CHECK(square != 0 && c % square == 0,
           "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
           "upscale_factor, but input.size(-3)=",
           c, " is not divisible by ", square != 0 ? str(square) : str(r, " * ", r));
  const int64_t left = c / square;
  const Tensor x =
      permute(reshape(self, leading(self, {left, r, r, h, w})), axes_after(lead, {0, 3, 1, 4, 2}));
  return laid_out_as(self, view(in_order(x), leading(self, {left, h * r, w * r})));
}

Tensor pixel_unshuffle_body(const Call&, const Tensor& self, int64_t r) {
  RL_CHECK(self.dim() >= 3,
           "pixel_unshuffle expects input to have at least 3 dimensions, but got input with ", self.dim(),
           " dimension(s)");
  RL_CHECK(r > 0, "pixel_unshuffle expects a positive downscale_factor, but got ", r);
  const int64_t c = self.size(-3), h = self.size(-2), w = self.size(-1), lead = self.dim() - 3;
  RL_CHECK(h % r == 0,
           "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=", h,
           " is not divisible by ", r);
  RL_CHECK(w % r == 0,
           "pixel_unshuffle expects width to be divisible by downscale_factor, but input.size(-1)=", w,
           " is not divisible by ", r);
  if (self.numel() == 0) return clone(self, std::nullopt);  // of its own shape, as in PyTorch
  const Tensor x =
      permute(reshape(self, leading(self, {c, h / r, r, w / r, r})), axes_after(lead, {0, 2, 4, 1, 3}));
  const Tensor result = view(in_order(x), leading(self, {c * r * r, h / r, w / r}));
  return laid_out_as(self, result);
}

Tensor channel_shuffle_body(const Call&, const Tensor& self, int64_t groups) {
  RL_CHECK(self.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ",
           self.sizes());
  RL_CHECK(groups > 0, "Number of groups to divide channels in must be positive. Value of groups:", groups);
  const int64_t c = self.size(1);
  RL_CHECK(c % groups == 0, "Number of channels must be divisible by groups. Got ", c, " channels and ",
           groups, " groups.");
  Dims sizes{self.size(0), groups, c / groups};
  for (int64_t d = 2; d < self.dim(); ++d) sizes.push_back(self.size(d));
  return laid_out_as(self, reshape(transpose(reshape(self, sizes), 1, 2), self.sizes()));
}

}  // namespace

void register_rearranging_operators(Table& t) {
  t.composite("broadcast_tensors(Tensor[] tensors) -> Tensor[]", broadcast_tensors_body)
      .variadic()
      .doc("Views of all tensors, expanded to their common shape.")
      .function_only();
  const auto at_least = [&](const char* one, auto body, const char* all, auto each, const char* doc) {
    t.composite(one, body).doc(doc).function_only();
    t.composite(all, each).doc(doc).function_only();
  };
  at_least("atleast_1d(Tensor self) -> Tensor", at_least_1d,
           "atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]", for_each<at_least_1d>,
           "The tensors with at least one dimension.");
  at_least("atleast_2d(Tensor self) -> Tensor", at_least_2d,
           "atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]", for_each<at_least_2d>,
           "The tensors with at least two dimensions; new ones go in front.");
  at_least("atleast_3d(Tensor self) -> Tensor", at_least_3d,
           "atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]", for_each<at_least_3d>,
           "The tensors with at least three dimensions, placed as NumPy places them.");
  t.composite("meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", meshgrid_body)
      .variadic()
      .doc("Coordinates of the grid spanned by 0-dim or 1-dim tensors, one tensor for each axis.")
      .function_only();
  t.composite("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", pixel_shuffle_body)
      .doc("Moves channels into space: [..., C r^2, H, W] to [..., C, H r, W r].")
      .function_only()
      .one_node();
  t.composite("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", pixel_unshuffle_body)
      .doc("Moves space into channels: [..., C, H r, W r] to [..., C r^2, H, W].")
      .function_only()
      .one_node();
  t.composite("channel_shuffle(Tensor self, int groups) -> Tensor", channel_shuffle_body)
      .doc("The channels of each group dealt out over all groups.")
      .function_only()
      .one_node();
}

}  // namespace rushlight
