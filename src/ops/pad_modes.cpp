// Padding by a tensor's own elements: mirrored, repeated, or from the other end.
#include "cpu/pad_modes.h"

#include <algorithm>

#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/pad.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

enum class Border : uint8_t { Reflect, Replicate, Circular };

constexpr const char* name_of(Border b) {
  return b == Border::Reflect ? "reflect" : b == Border::Replicate ? "replicate" : "circular";
}

Border border_named(std::string_view mode) {
  for (Border b : {Border::Reflect, Border::Replicate})
    if (mode == name_of(b)) return b;
  return Border::Circular;
}

// --- one dimension

// Where element `i` of a dimension of size n comes from, padded by `before` and `after`.
struct Sources {
  Border border;
  int64_t n, before, after;

  int64_t operator()(int64_t i) const {
    const int64_t at = i - before;
    if (border == Border::Reflect) return at < 0 ? -at : at >= n ? 2 * (n - 1) - at : at;
    if (border == Border::Replicate) return std::clamp<int64_t>(at, 0, n - 1);
    // What negative amounts crop is gone before the rest wraps around.
    const int64_t cropped = std::max<int64_t>(-before, 0), left = n - cropped - std::max<int64_t>(-after, 0);
    return ((at - cropped) % left + left) % left + cropped;
  }
  int64_t out() const { return n + before + after; }
};

Tensor positions(const Sources& source, int64_t first, int64_t last, Device device) {
  Tensor t = empty_tensor(IntList{last - first}, DType::Int64);
  for (int64_t i = first; i < last; ++i) t.data<int64_t>()[i - first] = source(i);
  return device.is_cpu() ? t : to(t, std::nullopt, device, false, false, std::nullopt);
}

cpu::PaddedAxis axis_of(const Sources& source) {
  cpu::PaddedAxis axis;
  axis.in = source.n, axis.out = source.out();
  axis.source.resize(static_cast<size_t>(axis.out));
  for (int64_t i = 0; i < axis.out; ++i) axis.source[static_cast<size_t>(i)] = source(i);
  axis.first = std::clamp<int64_t>(source.before, 0, axis.out);
  axis.last = std::clamp<int64_t>(source.before + source.n, axis.first, axis.out);
  axis.start = std::max<int64_t>(-source.before, 0);
  return axis;
}

// Most elements are copied in one piece; only those at the borders are looked up.
Tensor pad_dimension(const Tensor& input, int64_t d, const Sources& source) {
  const int64_t first = std::max<int64_t>(-source.before, 0), total = source.out();
  const int64_t last = source.n - std::max<int64_t>(-source.after, 0);
  auto border = [&](int64_t from, int64_t to) {
    return index_select(input, d, positions(source, from, to, input.device()));
  };
  if (first >= last) return border(0, total);
  std::vector<Tensor> pieces;
  if (source.before > 0) pieces.push_back(border(0, source.before));
  pieces.push_back(slice(input, d, first, last, 1));
  if (source.after > 0) pieces.push_back(border(total - source.after, total));
  return pieces.size() == 1 ? clone(pieces[0], std::nullopt) : cat(pieces, d);
}

// --- all of them

void check(const Tensor& input, IntList pad, Border border) {
  const int64_t n = input.dim(), padded = static_cast<int64_t>(pad.size()) / 2;
  RL_CHECK(pad.size() % 2 == 0, "Padding length must be divisible by 2, but got ", pad.size());
  RL_CHECK(
      n >= padded,
      "Padding length should be less than or equal to two times the input dimension but got padding length ",
      pad.size(), " and input of dimension ", n);
  if (padded < 1 || padded > 3 || (n != padded + 1 && n != padded + 2))
    RL_NOT_IMPLEMENTED("Padding size ", pad.size(), " is not supported for ", n, "D input tensor in mode '",
                       name_of(border),
                       "'. Supported combinations for non-constant padding:\n"
                       "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
                       "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
                       "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)");
  for (int64_t d = n - padded - 1; d < n; ++d)
    RL_CHECK(
        input->sizes[d] > 0, "Expected ", padded + 1, "D or ", padded + 2,
        "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: ",
        input.sizes());
  bool all_empty = true;
  for (int64_t i = 0; i < padded; ++i) {
    const int64_t d = n - 1 - i, size = input->sizes[d], before = pad[2 * i], after = pad[2 * i + 1];
    if (border == Border::Reflect)
      RL_CHECK(before < size && after < size,
               "Argument #4: Padding size should be less than the corresponding input dimension, but got: "
               "padding (",
               before, ", ", after, ") at dimension ", d, " of input ", input.sizes());
    if (border == Border::Circular)
      RL_CHECK(before <= size && after <= size &&
                   size + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0) > 0,
               "Padding value causes wrapping around more than once.");
    const int64_t out = size + before + after;
    RL_CHECK((border == Border::Replicate || (before > -size && after > -size)) && out >= 0, "input (",
             name_of(border), " pad of dimension ", d, " of size ", size, " by ", before, ", ", after,
             ") is too small: calculated output size ", out);
    all_empty = all_empty && out == 0;
  }
  RL_CHECK(!all_empty, "input of shape ", input.sizes(), " padded by ", pad,
           " is too small: nothing would be left of it");
}

// Images keep their layout; without a batch, the dimension of channels would be another one.
MemoryFormat format_of(const Tensor& t, IntList pad) {
  const bool batch = t.dim() == static_cast<int64_t>(pad.size()) / 2 + 2;
  return batch ? image_format(t) : MemoryFormat::Contiguous;
}

Sources sources_of(IntList sizes, IntList pad, Border border, int64_t d) {
  const size_t i = 2 * (sizes.size() - 1 - static_cast<size_t>(d));
  return {border, sizes[static_cast<size_t>(d)], pad[i], pad[i + 1]};
}

cpu::PaddedImages images_of(IntList sizes, IntList pad, Border border, bool channels_last) {
  cpu::PaddedImages p;
  const auto n = static_cast<int64_t>(sizes.size()), outer = n - static_cast<int64_t>(pad.size()) / 2;
  for (int64_t d = 0; d < outer; ++d) {
    const bool channels = channels_last && d == 1;
    (channels ? p.inner : p.images) *= sizes[static_cast<size_t>(d)];
  }
  for (int64_t d = outer; d < n; ++d)
    p.axes[static_cast<size_t>(3 - n + d)] = axis_of(sources_of(sizes, pad, border, d));
  return p;
}

Tensor pad_by_dimension(const Tensor& input, IntList pad, Border border) {
  Tensor result = input;
  for (int64_t d = input.dim() - static_cast<int64_t>(pad.size()) / 2; d < input.dim(); ++d) {
    const Sources source = sources_of(input.sizes(), pad, border, d);
    if (source.before || source.after) result = pad_dimension(result, d, source);
  }
  return result.is_same(input) ? clone(input, std::nullopt) : result;
}

template <Border border>
Tensor pad_kernel(const Call&, const Tensor& input, IntList pad) {
  check(input, pad, border);
  Dims sizes = input->sizes;
  for (size_t i = 0; i < pad.size(); ++i) sizes[sizes.size() - 1 - i / 2] += pad[i];
  const MemoryFormat format = format_of(input, pad);
  if (!input.is_cpu() && !input.device().is_meta()) return pad_by_dimension(input, pad, border);
  Tensor result = empty_tensor(sizes, input.dtype(), input.device(), format);
  if (result.device().is_meta() || result.numel() == 0) return result;
  const Tensor dense = contiguous(input, format);
  cpu::pad_with_mode(images_of(input.sizes(), pad, border, format != MemoryFormat::Contiguous),
                     input.itemsize(), dense.data_ptr(), result.data_ptr());
  return result;
}

Tensor pad_backward_kernel(const Call&, const Tensor& grad, IntList sizes, IntList pad,
                           std::string_view mode) {
  const Border border = border_named(mode);
  const auto dims = static_cast<int64_t>(sizes.size()), padded = static_cast<int64_t>(pad.size()) / 2;
  bool fits = pad.size() % 2 == 0 && grad.dim() == dims && padded <= dims;
  for (int64_t d = 0; fits && d < dims; ++d)
    fits = grad->sizes[d] == (d < dims - padded ? sizes[d] : sources_of(sizes, pad, border, d).out());
  RL_CHECK(fits, "_pad_with_mode_backward: a gradient of shape ", grad.sizes(),
           " does not fit an input of shape ", sizes, " padded by ", pad);
  if (grad.numel() == 0) return zeros(sizes, grad.dtype(), std::nullopt, grad.device());
  if (!grad.is_cpu() && !grad.device().is_meta()) {
    Tensor result = grad;
    const auto n = static_cast<int64_t>(sizes.size());
    for (int64_t d = n - 1; d >= n - static_cast<int64_t>(pad.size()) / 2; --d) {
      const Sources source = sources_of(sizes, pad, border, d);
      Dims unpadded = result->sizes;
      unpadded[d] = source.n;
      result = index_add(zeros(unpadded, grad.dtype(), std::nullopt, grad.device()), d,
                         positions(source, 0, source.out(), grad.device()), result);
    }
    return result;
  }
  const MemoryFormat format = format_of(grad, pad);
  Tensor result = empty_tensor(sizes, grad.dtype(), grad.device(), format);
  if (result.device().is_meta() || result.numel() == 0) return result;
  const Tensor dense = contiguous(grad, format);
  cpu::pad_with_mode_backward(images_of(sizes, pad, border, format != MemoryFormat::Contiguous), grad.dtype(),
                              dense.data_ptr(), result.data_ptr());
  return result;
}

template <Border border, class F>
OpBuilder add_record(Table& t, F& handle, const char* schema, const char* doc) {
  return t.op(handle, schema, pad_kernel<border>)
      .doc(doc)
      .family(Family::Window)
      .on_devices()
      .linear()
      .batching(Batching::Window)
      .derivative([](Grad g, Shape<0> x, Attr<1, IntList> pad) {
        return pad_with_mode_backward(g, x, pad, name_of(border));
      });
}

template <Border border, class F>
OpBuilder add_padding(Table& t, F& handle, const char* name, const char* doc, int dims) {
  return add_record<border>(
             t, handle,
             kept_schema(str("nn::", name, dims, "d(Tensor self, int[", 2 * dims, "] padding) -> Tensor")),
             doc)
      .out();
}

}  // namespace

Tensor ops::pad_with_mode(const Tensor& input, IntList pad, std::string_view mode) {
  if (mode == "circular") return pad_circular(input, pad);
  const bool reflect = mode == "reflect";
  const size_t dims = pad.size() / 2;
  if (dims < 1 || dims > 3 || pad.size() % 2)
    check(input, pad, reflect ? Border::Reflect : Border::Replicate);
  if (dims == 1) return reflect ? reflection_pad1d(input, pad) : replication_pad1d(input, pad);
  if (dims == 2) return reflect ? reflection_pad2d(input, pad) : replication_pad2d(input, pad);
  return reflect ? reflection_pad3d(input, pad) : replication_pad3d(input, pad);
}

void register_pad_mode_operators(Table& t) {
  constexpr const char* kReflect =
      "Mirrors the last dimensions at their ends, which are not repeated; padding lists amounts before and "
      "after, last dimension first. Negative amounts crop.";
  constexpr const char* kReplicate =
      "Repeats the elements at the ends of the last dimensions; padding lists amounts before and after, last "
      "dimension first. Negative amounts crop.";
  add_padding<Border::Reflect>(t, reflection_pad1d, "reflection_pad", kReflect, 1)
      .autocast(Cast::Float, Cast::None);
  add_padding<Border::Reflect>(t, reflection_pad2d, "reflection_pad", kReflect, 2)
      .autocast(Cast::Float, Cast::None);
  add_padding<Border::Reflect>(t, reflection_pad3d, "reflection_pad", kReflect, 3);
  add_padding<Border::Replicate>(t, replication_pad1d, "replication_pad", kReplicate, 1)
      .autocast(Cast::Float, Cast::None);
  add_padding<Border::Replicate>(t, replication_pad2d, "replication_pad", kReplicate, 2)
      .autocast(Cast::Float, Cast::None);
  add_padding<Border::Replicate>(t, replication_pad3d, "replication_pad", kReplicate, 3)
      .autocast(Cast::Float, Cast::None);
  add_record<Border::Circular>(
      t, pad_circular, "nn::_pad_circular(Tensor self, int[] pad) -> Tensor",
      "Continues the last dimensions from their other ends; pad lists amounts before "
      "and after, last dimension first. Negative amounts crop.")
      .family(Family::Window)
      .linear()
      .batching(Batching::Window);
  t.op(pad_with_mode_backward,
       "_pad_with_mode_backward(Tensor grad_output, int[] input_size, int[] padding, str mode) -> Tensor",
       pad_backward_kernel)
      .absent_in_pytorch()
      .on_devices()
      .doc("The adjoint of padding by mode 'reflect', 'replicate' or 'circular'.")
      .internal()
      .family(Family::Gradient)
      .linear()
      .batching(Batching::Window)
      .derivative([](Grad g, Attr<2, IntList> pad, Attr<3, std::string_view> mode) {
        return ops::pad_with_mode(g, pad, mode);
      });
}

}  // namespace rushlight
