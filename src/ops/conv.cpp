#include "ops/conv.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "core/constant_memory.h"
#include "core/deferred_layout.h"
#include "core/prepared_weight.h"
#include "cpu/conv.h"
#include "cpu/conv_planes.h"
#include "cpu/depthwise.h"
#include "dispatch/table.h"
#include "ops/complex.h"
#include "ops/conv_device.h"
#include "ops/copy.h"
#include "ops/operators.h"
#include "ops/pointwise.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {

Dims ops::spread(const char* name, IntList values, int64_t n) {
  RL_CHECK(static_cast<int64_t>(values.size()) == n || values.size() == 1, "expected ", name,
           " to be a single integer value or a list of ", n,
           " values to match the convolution dimensions, but got ", name, "=", values);
  return values.size() == 1 ? Dims(n, values[0]) : values.dims();
}

namespace {

using namespace ops;

MemoryFormat format_of(const Tensor& t) {
  return t.dim() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast;
}
bool wants_channels_last(const Tensor& image, const Tensor& weight) {
  return is_channels_last(image) || (image.dim() >= 4 && is_channels_last(weight));
}
// Whether images of this convolution, plain to the user, are computed with their channels last, conversion
// deferred.
// Note [Deferred layout conversion]
// Depthwise convolutions have a kernel of their own for planes.
bool defer_layout_of(cpu::ConvShape& s, const Tensor& image, const void* weight = nullptr) {
  const bool before = has_deferred_layout(image);
  cpu::ConvShape as_it_lies = s;
  as_it_lies.channels_last |= before;
  // A model's constant filters are laid out once, and what follows joins them where channels come last.
  as_it_lies.stays_in_planes = s.stays_in_planes =
      s.spatial == 2 && !as_it_lies.channels_last && !(weight && ConstantMemory::contains(weight));
  const bool deferred = s.spatial == 2 && !s.channels_last &&
                        cpu::conv_likes_channels_last(as_it_lies, weight) && s.output_numel() &&
                        (before || !cpu::depthwise_convolves(s));
  s.channels_last |= deferred;
  s.stays_in_planes &= !deferred;
  return deferred;
}
// The operand as the kernel wants it, taken as it lies where its layout is deferred.
Tensor laid_out(const Tensor& t, bool channels_last) {
  return contiguous(channels_last ? image_of(t) : t, channels_last ? format_of(t) : MemoryFormat::Contiguous);
}
// An image in planes may stay so.
bool lies_in_planes(const cpu::ConvShape& s, const Tensor& t) {
  return s.channels_last && !has_deferred_layout(t) && t.is_contiguous() && !is_channels_last(t);
}
Tensor input_for(cpu::ConvShape& s, const Tensor& input) {
  s.input_in_planes = lies_in_planes(s, input) && cpu::reads_planes(s);
  return s.input_in_planes ? input : laid_out(input, s.channels_last);
}
struct GradientOperand {
  GradientOperand(const cpu::ConvShape& s, const Tensor& gradient, bool of_weight)
      : in_planes(lies_in_planes(s, gradient) && cpu::reads_gradient_planes(s, of_weight)),
        tensor(in_planes ? gradient : laid_out(gradient, s.channels_last)) {}
  cpu::OutputGradient get() const { return {tensor.data_ptr(), in_planes}; }
  const bool in_planes;
  const Tensor tensor;
};

// The filters in plain order, prepared: so is a copy in that order, where they lie otherwise.
class PlainFilters {
 public:
  explicit PlainFilters(const Tensor& weight) : given_(weight), plain_(plain_of(weight)) {
    if (!same_storage(plain_, weight)) copy_.emplace(plain_);
  }
  const void* data() const { return plain_.data_ptr(); }

 private:
  struct Copy final : ConstantMemory::Made {
    explicit Copy(const Tensor& weight)
        : sizes(weight.sizes().dims()),
          strides(weight.strides().dims()),
          plain(contiguous(weight, MemoryFormat::Contiguous)) {}
    size_t nbytes() const override { return static_cast<size_t>(plain.nbytes()); }
    const Dims sizes, strides;
    const Tensor plain;
  };
  static bool same_storage(const Tensor& a, const Tensor& b) { return a->storage == b->storage; }
  static Tensor plain_of(const Tensor& weight) {
    if (weight.is_contiguous()) return weight;
    const void* data = weight.data_ptr();
    if (!ConstantMemory::contains(data)) return contiguous(weight, MemoryFormat::Contiguous);
    const auto same = [&](const Copy& c) {
      return c.sizes == weight.sizes() && c.strides == weight.strides();
    };
    auto found = ConstantMemory::find<Copy>(data, same);
    if (!found) ConstantMemory::keep(data, found = std::make_shared<const Copy>(weight));
    return found->plain;
  }

  const PreparedWeight given_;
  const Tensor plain_;
  std::optional<PreparedWeight> copy_;
};
Tensor empty_image(IntList sizes, const Tensor& like, bool channels_last) {
  return empty_tensor(sizes, like.dtype(), like.device(),
                      !channels_last      ? MemoryFormat::Contiguous
                      : sizes.size() == 5 ? MemoryFormat::ChannelsLast3d
                                          : MemoryFormat::ChannelsLast);
}

Tensor plain(const Tensor& t) { return t.defined() ? contiguous(t, MemoryFormat::Contiguous) : t; }

cpu::ConvShape make_shape(DType dtype, IntList input, IntList weight, IntList output, IntList stride,
                          IntList padding, IntList dilation, int64_t groups, bool channels_last) {
  cpu::ConvShape s;
  s.dtype = dtype;
  s.spatial = static_cast<int>(input.size()) - 2;
  s.batch = input[0], s.in_channels = input[1], s.out_channels = weight[0], s.groups = groups;
  s.channels_last = channels_last;
  for (int i = 0; i < s.spatial; ++i) {
    const int at = 3 - s.spatial + i;
    s.input[at] = input[2 + i], s.output[at] = output[2 + i], s.kernel[at] = weight[2 + i];
    s.stride[at] = stride[i], s.padding[at] = padding[i], s.dilation[at] = dilation[i];
  }
  return s;
}

struct Geometry {
  Dims stride, padding, dilation, output_padding;
};

// PyTorch has no kernel for truth values, and for narrow integers only without dilation; so an image that was
// not converted to the weight's type meets NotImplementedError there, and RuntimeError otherwise.
void refuse_images_of_integers(const Tensor& input, const Tensor& weight, const Tensor& bias,
                               const Geometry& g, bool transposed) {
  if (bias.defined() && bias.dtype() != input.dtype() && !transposed) return;
  if (input.dtype() == weight.dtype() || !is_integral_or_bool(input.dtype())) return;
  const bool dilated = std::any_of(g.dilation.begin(), g.dilation.end(), [](int64_t d) { return d > 1; });
  if (is_bool(input.dtype()) || (input.dtype() != DType::Int64 && (transposed || dilated)))
    RL_NOT_IMPLEMENTED("\"convolution\" not implemented for '", legacy_name(input.dtype()), "': Input type (",
                       legacy_name(input.dtype()), ") and weight type (", legacy_name(weight.dtype()),
                       ") should be the same");
}

void check_arguments(const Tensor& input, const Tensor& weight, const Tensor& bias, const Geometry& g,
                     bool transposed, int64_t groups) {
  const int64_t n = input.dim() - 2;
  refuse_images_of_integers(input, weight, bias, g, transposed);
  RL_CHECK(input.dtype() == weight.dtype(), "Input type (", legacy_name(input.dtype()), ") and weight type (",
           legacy_name(weight.dtype()), ") should be the same");
  RL_CHECK(!bias.defined() || bias.dtype() == input.dtype(), "Input type (", legacy_name(input.dtype()),
           ") and bias type (", bias.defined() ? legacy_name(bias.dtype()) : "", ") should be the same");
  RL_CHECK(weight.dim() == input.dim(), "Expected ", weight.dim(), "-dimensional input for ", weight.dim(),
           "-dimensional weight ", weight.sizes(), ", but got ", input.dim(), "-dimensional input of size ",
           input.sizes(), " instead");
  RL_CHECK(groups > 0, "non-positive groups is not supported");
  for (int64_t i = 0; i < n; ++i) {
    RL_CHECK(g.padding[i] >= 0, "negative padding is not supported");
    RL_CHECK(g.output_padding[i] >= 0, "negative output_padding is not supported");
    RL_CHECK(g.stride[i] > 0, "non-positive stride is not supported");
    RL_CHECK(g.dilation[i] > 0, "dilation should be greater than zero");
    RL_CHECK(weight->sizes[2 + i] > 0, "Kernel size can't be zero, got weight of size ", weight.sizes());
  }
  const int64_t channels = input->sizes[1], first = weight->sizes[0], second = weight->sizes[1];
  RL_CHECK(first >= groups, "Given groups=", groups, ", expected weight to be at least ", groups,
           " at dimension 0, but got weight of size ", weight.sizes(), " instead");
  if (transposed) {
    RL_CHECK(channels == first, "Given transposed=1, weight of size ", weight.sizes(), ", expected input",
             input.sizes(), " to have ", first, " channels, but got ", channels, " channels instead");
    RL_CHECK(first % groups == 0, "Given groups=", groups, ", expected weight to be divisible by ", groups,
             " at dimension 0, but got weight of size ", weight.sizes(), " instead");
  } else {
    RL_CHECK(first % groups == 0, "Given groups=", groups, ", expected weight to be divisible by ", groups,
             " at dimension 0, but got weight of size ", weight.sizes(), " instead");
    RL_CHECK(channels == second * groups, "Given groups=", groups, ", weight of size ", weight.sizes(),
             ", expected input", input.sizes(), " to have ", second * groups, " channels, but got ", channels,
             " channels instead");
  }
  const int64_t out = transposed ? second * groups : first;
  RL_CHECK(!bias.defined() || (bias.dim() == 1 && bias->sizes[0] == out), "Given weight of size ",
           weight.sizes(), ", expected bias to be 1-dimensional with ", out,
           " elements, but got bias of size ", bias.defined() ? bias.sizes() : IntList(), " instead");
}

// "3 x 4"
std::string by(IntList sizes) {
  std::string text;
  for (const int64_t n : sizes) text += str(text.empty() ? "" : " x ", n);
  return text;
}

Dims output_sizes(const Tensor& input, const Tensor& weight, const Geometry& g) {
  Dims sizes{input->sizes[0], weight->sizes[0]}, padded, reach;
  for (int64_t i = 0; i < input.dim() - 2; ++i) {
    padded.push_back(input->sizes[2 + i] + 2 * g.padding[i]);
    reach.push_back(g.dilation[i] * (weight->sizes[2 + i] - 1) + 1);
  }
  for (size_t i = 0; i < padded.size(); ++i) {
    RL_CHECK(padded[i] >= reach[i], "Calculated padded input size per channel: (", by(padded),
             "). Kernel size: (", by(reach), "). Kernel size can't be greater than actual input size (input ",
             input.sizes(), ", weight ", weight.sizes(), ")");
    sizes.push_back((padded[i] - reach[i]) / g.stride[i] + 1);
  }
  return sizes;
}

Dims transposed_output_sizes(const Tensor& input, const Tensor& weight, const Geometry& g, int64_t groups) {
  Dims sizes{input->sizes[0], weight->sizes[1] * groups};
  for (int64_t i = 0; i < input.dim() - 2; ++i) {
    RL_CHECK(g.output_padding[i] < std::max(g.stride[i], g.dilation[i]),
             "output padding must be smaller than either stride or dilation, but got output_padding ",
             g.output_padding[i], ", stride ", g.stride[i], ", dilation ", g.dilation[i]);
    const int64_t n = (input->sizes[2 + i] - 1) * g.stride[i] - 2 * g.padding[i] +
                      g.dilation[i] * (weight->sizes[2 + i] - 1) + g.output_padding[i] + 1;
    RL_CHECK(n > 0, "Given input size per channel: ", input.sizes(),
             ". Calculated output size per channel: (", n, "). Output size is too small");
    sizes.push_back(n);
  }
  return sizes;
}

// complex32 is convolved in complex64.
bool is_narrow(const Tensor& t) { return t.dtype() == DType::Complex32; }
Tensor widened(const Tensor& t) { return t.defined() ? to_dtype(t, DType::Complex64) : t; }
Tensor narrowed(const Tensor& t) { return to_dtype(t, DType::Complex32); }

Tensor input_gradient(const Tensor& grad, const Tensor& weight, IntList input_sizes, IntList stride,
                      IntList padding, IntList dilation, int64_t groups) {
  if (is_narrow(grad))
    return narrowed(
        input_gradient(widened(grad), widened(weight), input_sizes, stride, padding, dilation, groups));
  cpu::ConvShape s = make_shape(grad.dtype(), input_sizes, weight.sizes(), grad.sizes(), stride, padding,
                                dilation, groups, wants_channels_last(grad, weight));
  if (grad.device().is_meta()) return empty_image(input_sizes, grad, s.channels_last);
  if (!grad.is_cpu()) return device_conv_input_gradient(s, grad, weight, input_sizes);
  const bool deferred = defer_layout_of(s, grad);
  const Tensor result = empty_image(input_sizes, grad, s.channels_last);
  const GradientOperand g(s, grad, false);
  const PlainFilters w(weight);
  cpu::conv_input_gradient(s, g.get(), w.data(), result.data_ptr());
  return deferred ? defer_layout(result) : result;
}

constexpr const char* kWithoutPixels =
    "Only zero batch or zero channel inputs are supported, but got input shape: ";

Tensor convolution_kernel(const Call& call, const Tensor& input, const Tensor& weight, const Tensor& bias,
                          IntList stride, IntList padding, IntList dilation, bool transposed,
                          IntList output_padding, int64_t groups) {
  RL_CHECK(input.dim() >= 3 && input.dim() <= 5,
           "convolution: expected 3-D to 5-D input (batch, channels, 1 to 3 spatial dimensions), got ",
           describe(input));
  const int64_t n = input.dim() - 2;
  const Geometry g{spread("stride", stride, n), spread("padding", padding, n),
                   spread("dilation", dilation, n), spread("output_padding", output_padding, n)};
  check_arguments(input, weight, bias, g, transposed, groups);
  const bool nothing = input->sizes[0] == 0 || input->sizes[1] == 0;
  if (transposed) {
    const Dims sizes = transposed_output_sizes(input, weight, g, groups);
    RL_CHECK(nothing || input.numel() > 0, kWithoutPixels, input.sizes());
    Tensor result = input_gradient(input, weight, sizes, g.stride, g.padding, g.dilation, groups);
    if (bias.defined()) {
      Dims column(sizes.size(), 1);
      column[1] = sizes[1];
      add.inplace(result, view(bias, column), Scalar(1));
    }
    return result;
  }
  const Dims sizes = output_sizes(input, weight, g);
  RL_CHECK(nothing || input.numel() > 0, kWithoutPixels, input.sizes());
  if (is_narrow(input))
    return narrowed(convolution_kernel(call, widened(input), widened(weight), widened(bias), stride, padding,
                                       dilation, transposed, output_padding, groups));
  cpu::ConvShape s = make_shape(input.dtype(), input.sizes(), weight.sizes(), sizes, g.stride, g.padding,
                                g.dilation, groups, wants_channels_last(input, weight));
  if (input.device().is_meta()) return empty_image(sizes, input, s.channels_last);
  if (!input.is_cpu()) return device_conv(s, input, weight, bias, sizes);
  const bool deferred = defer_layout_of(s, input, weight.data_ptr());
  const Tensor result = empty_image(sizes, input, s.channels_last);
  const Tensor x = input_for(s, input);
  const Tensor b = bias.defined() ? contiguous(bias, MemoryFormat::Contiguous) : bias;
  const PlainFilters w(weight);
  cpu::conv_forward(s, x.data_ptr(), w.data(), b.defined() ? b.data_ptr() : nullptr, result.data_ptr());
  return deferred ? defer_layout(result) : result;
}

// --- with what follows

struct Following {
  Tensor scale, shift, residual;
  double low, high;
  bool bounded() const { return low != -INFINITY || high != INFINITY; }
};

// Vectors as the loops read them; -0 is what changes no number when it is added.
Tensor channel_vector(const Tensor& t, int64_t channels, float otherwise) {
  if (t.defined()) return contiguous(t, MemoryFormat::Contiguous);
  const Tensor made = empty_tensor(IntList{channels}, DType::Float32);
  std::fill_n(made.data<float>(), channels, otherwise);
  return made;
}

// Operator by operator, where the channels do not come last.
Tensor follow(Tensor y, const Following& f) {
  const DType dtype = y.dtype();
  const auto column = [&](const Tensor& t) { return view(t, IntList{-1, 1, 1}); };
  if (f.scale.defined()) y = to_dtype(to_dtype(y, DType::Float32) * column(f.scale) + column(f.shift), dtype);
  if (f.residual.defined()) y = y + f.residual;
  return f.bounded() ? clamp(y, Scalar(f.low), Scalar(f.high)) : y;
}

void check_following(const Call& call, const Following& f, const Tensor& input, IntList sizes) {
  RL_CHECK(input.is_cpu() && (input.dtype() == DType::Float32 || input.dtype() == DType::BFloat16),
           call.op.name(), "(): expected images of float32 or bfloat16 on the CPU, but got ",
           describe(input));
  RL_CHECK(f.scale.defined() == f.shift.defined() && f.low <= f.high, call.op.name(),
           "(): a scale needs a shift, and bounds an order");
  for (const Tensor* t : {&f.scale, &f.shift})
    RL_CHECK(!t->defined() ||
                 (t->dtype() == DType::Float32 && t->is_cpu() && t->dim() == 1 && t->numel() == sizes[1]),
             call.op.name(), "(): expected ", sizes[1], " float32 numbers, but got ", describe(*t));
  RL_CHECK(!f.residual.defined() ||
               (f.residual.is_cpu() && f.residual.dtype() == input.dtype() && f.residual.sizes() == sizes),
           call.op.name(), "(): the residual must be a ", input.dtype(), " tensor of size ", sizes,
           ", but got ", f.residual.defined() ? describe(f.residual) : std::string("None"));
}

Tensor convolution_epilogue_kernel(const Call& call, const Tensor& input, const Tensor& weight,
                                   const Tensor& bias, IntList stride, IntList padding, IntList dilation,
                                   int64_t groups, const Tensor& scale, const Tensor& shift,
                                   const Tensor& residual, double low, double high) {
  RL_CHECK(input.dim() == 4, call.op.name(), "(): expected a batch of images, but got ", describe(input));
  const Geometry g{spread("stride", stride, 2), spread("padding", padding, 2),
                   spread("dilation", dilation, 2), Dims(2, 0)};
  check_arguments(input, weight, bias, g, false, groups);
  const Dims sizes = output_sizes(input, weight, g);
  const Following f{scale, shift, residual, low, high};
  check_following(call, f, input, sizes);
  cpu::ConvShape s = make_shape(input.dtype(), input.sizes(), weight.sizes(), sizes, g.stride, g.padding,
                                g.dilation, groups, wants_channels_last(input, weight));
  const bool deferred = defer_layout_of(s, input, weight.data_ptr());
  if (!s.channels_last)
    return follow(convolution(input, weight, bias, stride, padding, dilation, false, IntList{0}, groups), f);
  const Tensor result = empty_image(sizes, input, true), x = input_for(s, input), b = plain(bias),
               factors = channel_vector(scale, sizes[1], 1), terms = channel_vector(shift, sizes[1], -0.0f),
               other = residual.defined() ? laid_out(residual, true) : residual;
  cpu::EpilogueArguments after;
  after.dtype = s.dtype, after.channels = sizes[1],
  after.pixels = result.numel() / std::max<int64_t>(1, sizes[1]);
  after.x = after.y = result.data_ptr(), after.residual = other.defined() ? other.data_ptr() : nullptr;
  after.scale = factors.data<float>(), after.shift = terms.data<float>(), after.scaled = scale.defined();
  const PlainFilters w(weight);
  after.bounded = f.bounded(), after.low = static_cast<float>(low), after.high = static_cast<float>(high);
  cpu::conv_forward(s, x.data_ptr(), w.data(), b.defined() ? b.data_ptr() : nullptr, result.data_ptr(),
                    after);
  return deferred ? defer_layout(result) : result;
}

// Of the operators of gradients, which no forward operator may have asked before.
void check_gradient(const char* who, const Tensor& grad, IntList input, IntList weight, IntList stride,
                    IntList padding, IntList dilation, int64_t groups) {
  const size_t n = input.size() - 2;
  bool fits = input.size() >= 3 && input.size() <= 5 && weight.size() == input.size() &&
              grad.sizes().size() == input.size() && stride.size() == n && padding.size() == n &&
              dilation.size() == n && groups > 0;
  fits = fits && input[0] == grad->sizes[0] && weight[0] == grad->sizes[1] && weight[0] % groups == 0 &&
         weight[1] >= 0 && input[1] % groups == 0 && weight[1] == input[1] / groups;
  for (size_t i = 0; fits && i < n; ++i) {
    using Wide = __int128;
    const Wide last = (Wide{grad->sizes[2 + i]} - 1) * stride[i] + Wide{dilation[i]} * (weight[2 + i] - 1);
    fits = stride[i] > 0 && dilation[i] > 0 && padding[i] >= 0 && weight[2 + i] > 0 &&
           last < Wide{input[2 + i]} + 2 * Wide{padding[i]};
  }
  RL_CHECK(fits, who, ": a gradient of shape ", grad.sizes(), " does not fit an input of shape ", input,
           " and a weight of shape ", weight, " with stride ", stride, ", padding ", padding, ", dilation ",
           dilation, " and ", groups, " groups");
}

Tensor conv_input_gradient_kernel(const Call&, const Tensor& grad, const Tensor& weight, IntList input_sizes,
                                  IntList stride, IntList padding, IntList dilation, int64_t groups) {
  check_gradient("_conv_input_gradient", grad, input_sizes, weight.sizes(), stride, padding, dilation,
                 groups);
  RL_CHECK(grad.dtype() == weight.dtype(), "_conv_input_gradient: expected one dtype, got ", describe(grad),
           " and ", describe(weight));
  return input_gradient(grad, weight, input_sizes, stride, padding, dilation, groups);
}

Tensor conv_weight_gradient_kernel(const Call& call, const Tensor& grad, const Tensor& input,
                                   IntList weight_sizes, IntList stride, IntList padding, IntList dilation,
                                   int64_t groups) {
  check_gradient("_conv_weight_gradient", grad, input.sizes(), weight_sizes, stride, padding, dilation,
                 groups);
  RL_CHECK(grad.dtype() == input.dtype(), "_conv_weight_gradient: expected one dtype, got ", describe(grad),
           " and ", describe(input));
  if (is_narrow(grad))
    return narrowed(conv_weight_gradient_kernel(call, widened(grad), widened(input), weight_sizes, stride,
                                                padding, dilation, groups));
  cpu::ConvShape s = make_shape(grad.dtype(), input.sizes(), weight_sizes, grad.sizes(), stride, padding,
                                dilation, groups, wants_channels_last(input, grad));
  if (!grad.is_cpu() && !grad.device().is_meta())
    return device_conv_weight_gradient(s, grad, input, weight_sizes);
  const Tensor result = empty_tensor(weight_sizes, grad.dtype(), grad.device());
  if (result.device().is_meta()) return result;
  defer_layout_of(s, has_deferred_layout(input) ? input : grad);
  const GradientOperand g(s, grad, true);
  s.input_in_planes = lies_in_planes(s, input) && cpu::reads_input_planes_in_gradient(s);
  const Tensor x = s.input_in_planes ? input : laid_out(input, s.channels_last);
  cpu::conv_weight_gradient(s, g.get(), x.data_ptr(), result.data_ptr());
  return result;
}

// Sum over everything but the channels.
Tensor bias_gradient(const Tensor& grad) {
  Dims dims{0};
  for (int64_t d = 2; d < grad.dim(); ++d) dims.push_back(d);
  return sum_dim(grad, IntList(dims), false, std::nullopt);
}

// conv(x, w) of exactly `sizes`: an output padding of a stride or more leaves positions that only the adjoint
// has.
Tensor forward(const Tensor& x, const Tensor& w, IntList sizes, IntList stride, IntList padding,
               IntList dilation, int64_t groups) {
  Tensor y = convolution(x, w, Tensor(), stride, padding, dilation, false, IntList{0}, groups);
  for (int64_t d = 2; d < y.dim(); ++d)
    if (y->sizes[d] > sizes[d]) y = slice(y, d, 0, sizes[d], 1);
  return y;
}

}  // namespace

void register_conv_operators(Table& t) {
  t.op(convolution,
       "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, "
       "bool transposed, int[] output_padding, int groups) -> Tensor",
       convolution_kernel)
      .doc(
          "Convolution in any number of dimensions, plain or transposed; what conv1d to conv_transpose3d "
          "call.")
      .function_only()
      .family(Family::Window)
      .layer({.weight = 1, .bias = 2})
      .examples(kFirst)
      .on_devices()
      .autocast(Cast::None, Cast::Half)
      .derivative([](Grad g, In<0> x, In<1> w, Attr<3, IntList> stride, Attr<4, IntList> padding,
                     Attr<5, IntList> dilation, Attr<6, bool> transposed, Attr<8, int64_t> groups,
                     Needs need) {
        const int64_t n = x.dim() - 2;
        const Dims s = spread("stride", stride, n), p = spread("padding", padding, n),
                   d = spread("dilation", dilation, n);
        Grads grads{Tensor(), Tensor(), need[2] ? bias_gradient(g) : Tensor()};
        if (transposed) {
          if (need[0]) grads[0] = forward(g, conj_of(w), x.sizes(), s, p, d, groups);
          if (need[1]) grads[1] = conv_weight_gradient(conj_of(x), g, w.sizes(), s, p, d, groups);
        } else {
          if (need[0]) grads[0] = conv_input_gradient(g, conj_of(w), x.sizes(), s, p, d, groups);
          if (need[1]) grads[1] = conv_weight_gradient(g, conj_of(x), w.sizes(), s, p, d, groups);
        }
        return grads;
      });
  t.op(convolution_epilogue,
       "_convolution_epilogue(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] "
       "dilation, int groups, Tensor? scale, Tensor? shift, Tensor? residual, float low, float high) -> "
       "Tensor",
       convolution_epilogue_kernel)
      .absent_in_pytorch()
      .doc("A convolution of images with what follows it: scale and shift by channel, a sum, bounds.")
      .internal()
      .no_meta("it stands in graphs that were captured already")
      .family(Family::Window)
      .examples(kFirst | uint64_t{1} << 9)  // and the residual
      .not_differentiable("it stands in graphs that record no gradients");
  t.op(conv_input_gradient,
       "_conv_input_gradient(Tensor grad_output, Tensor weight, int[] input_sizes, int[] stride, int[] "
       "padding, int[] dilation, int groups) -> Tensor",
       conv_input_gradient_kernel)
      .absent_in_pytorch()
      .doc("Gradient of a convolution with respect to its input.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .tangent(Tangent::Product)
      .derivative([](Grad g, In<0> y, In<1> w, Attr<3, IntList> s, Attr<4, IntList> p, Attr<5, IntList> d,
                     Attr<6, int64_t> groups, Needs need) {
        return Grads{need[0] ? forward(g, conj_of(w), y.sizes(), s, p, d, groups) : Tensor(),
                     need[1] ? conv_weight_gradient(conj_of(y), g, w.sizes(), s, p, d, groups) : Tensor()};
      });
  t.op(conv_weight_gradient,
       "_conv_weight_gradient(Tensor grad_output, Tensor input, int[] weight_sizes, int[] stride, int[] "
       "padding, int[] dilation, int groups) -> Tensor",
       conv_weight_gradient_kernel)
      .absent_in_pytorch()
      .doc("Gradient of a convolution with respect to its weight.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .tangent(Tangent::Product)
      .derivative([](Grad g, In<0> y, In<1> x, Attr<3, IntList> s, Attr<4, IntList> p, Attr<5, IntList> d,
                     Attr<6, int64_t> groups, Needs need) {
        return Grads{need[0] ? forward(conj_of(x), g, y.sizes(), s, p, d, groups) : Tensor(),
                     need[1] ? conv_input_gradient(conj_of(y), g, x.sizes(), s, p, d, groups) : Tensor()};
      });
}

}  // namespace rushlight
