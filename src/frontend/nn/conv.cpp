#include "rushlight/nn/conv.h"

#include <algorithm>
#include <ostream>

#include "rushlight/nn/functional.h"
#include "rushlight/nn/init.h"

namespace rushlight::nn {

namespace {

template <size_t D>
bool all_equal(const ExpandingArray<D>& a, int64_t value) {
  return std::ranges::all_of(*a, [&](int64_t v) { return v == value; });
}

template <class Options>
void check_channels(const Options& o) {
  RL_CHECK(o.in_channels() > 0 && o.groups() > 0 && o.out_channels() > 0,
           "in_channels, groups and out_channels must be a positive integer.");
  RL_CHECK(o.in_channels() % o.groups() == 0, "in_channels must be divisible by groups");
  RL_CHECK(o.out_channels() % o.groups() == 0, "out_channels must be divisible by groups");
}

// A weight of (first, second / groups, *kernel) and a bias for each channel that comes out.
template <class Module>
void register_parameters(Module& module, int64_t first, int64_t second) {
  const auto& o = module.options;
  std::vector<int64_t> sizes = {first, second / o.groups()};
  sizes.insert(sizes.end(), o.kernel_size()->begin(), o.kernel_size()->end());
  module.weight = module.register_parameter("weight", rushlight::empty(sizes));
  module.bias =
      module.register_parameter("bias", o.bias() ? rushlight::empty(o.out_channels()) : Tensor{}, o.bias());
  module.reset_parameters();
}

// What both kinds print behind the channels.
template <class Options, class Padding>
void print_common(std::ostream& out, const char* name, const Options& o, const Padding& padding) {
  out << "torch::nn::" << name << "(" << o.in_channels() << ", " << o.out_channels()
      << ", kernel_size=" << o.kernel_size() << ", stride=" << o.stride() << padding;
  if (!all_equal(o.dilation(), 1)) out << ", dilation=" << o.dilation();
  if (o.groups() != 1) out << ", groups=" << o.groups();
  if (!o.bias()) out << ", bias=" << std::boolalpha << false;
  if (!(o.padding_mode() == kZeros)) out << ", padding_mode=" << o.padding_mode().enumerator();
  out << ")";
}
template <class T>
std::string printed(const char* name, const T& value) {
  std::string text = str(", ", name, "=");
  if (value.size() == 1) return text + str((*value)[0]);
  return text + to_string(IntList(*value));
}

template <size_t D, class... Rest>
Tensor convolve(const Tensor& x, Rest&&... rest) {
  if constexpr (D == 1)
    return functional::conv1d(x, std::forward<Rest>(rest)...);
  else if constexpr (D == 2)
    return functional::conv2d(x, std::forward<Rest>(rest)...);
  else
    return functional::conv3d(x, std::forward<Rest>(rest)...);
}

}  // namespace

// --- convolutions
template <size_t D, class Derived>
ConvNdImpl<D, Derived>::ConvNdImpl(ConvOptions<D> o) : options(std::move(o)) {
  ConvNdImpl::reset();
}
template <size_t D, class Derived>
void ConvNdImpl<D, Derived>::reset() {
  check_channels(options);
  const Mode* padding = std::get_if<Mode>(&options.padding());
  RL_CHECK_VALUE(!padding || *padding != kSame || all_equal(options.stride(), 1),
                 "padding='same' is not supported for strided convolutions");
  register_parameters(*this, options.out_channels(), options.in_channels());
}
template <size_t D, class Derived>
void ConvNdImpl<D, Derived>::reset_parameters() {
  init::detail::default_weights(weight, bias);
}
template <size_t D, class Derived>
void ConvNdImpl<D, Derived>::pretty_print(std::ostream& stream) const {
  static constexpr const char* names[] = {"Conv1d", "Conv2d", "Conv3d"};
  std::string padding;
  if (const Mode* mode = std::get_if<Mode>(&options.padding()))
    padding = str(", padding='", mode->name(), "'");
  else if (const auto& p = std::get<ExpandingArray<D>>(options.padding()); !all_equal(p, 0))
    padding = printed("padding", p);
  print_common(stream, names[D - 1], options, padding);
}
template <size_t D, class Derived>
Tensor ConvNdImpl<D, Derived>::forward(const Tensor& input) {
  const ConvOptions<D>& o = options;
  if (const Mode* mode = std::get_if<Mode>(&o.padding()); mode && o.padding_mode() == kZeros)
    return convolve<D>(input, weight, bias, *o.stride(), mode->name(), *o.dilation(), o.groups());
  if (o.padding_mode() == kZeros)
    return convolve<D>(input, weight, bias, *o.stride(), *std::get<ExpandingArray<D>>(o.padding()),
                       *o.dilation(), o.groups());
  // Other paddings are laid around the input first, the last dimension first in the list.
  std::vector<int64_t> around;
  for (size_t d = D; d-- > 0;) {
    const int64_t reach = (*o.dilation())[d] * ((*o.kernel_size())[d] - 1);
    if (const auto* p = std::get_if<ExpandingArray<D>>(&o.padding()))
      around.insert(around.end(), {(**p)[d], (**p)[d]});
    else if (std::get<Mode>(o.padding()) == kSame)
      around.insert(around.end(), {reach / 2, reach - reach / 2});
    else
      around.insert(around.end(), {0, 0});
  }
  const Tensor padded = functional::pad(input, around, o.padding_mode().name());
  return convolve<D>(padded, weight, bias, *o.stride(), IntArrayRef(0), *o.dilation(), o.groups());
}

// --- their transposes
template <size_t D, class Derived>
ConvTransposeNdImpl<D, Derived>::ConvTransposeNdImpl(ConvTransposeOptions<D> o) : options(std::move(o)) {
  ConvTransposeNdImpl::reset();
}
template <size_t D, class Derived>
void ConvTransposeNdImpl<D, Derived>::reset() {
  check_channels(options);
  register_parameters(*this, options.in_channels(), options.out_channels());
}
template <size_t D, class Derived>
void ConvTransposeNdImpl<D, Derived>::reset_parameters() {
  init::detail::default_weights(weight, bias);
}
template <size_t D, class Derived>
void ConvTransposeNdImpl<D, Derived>::pretty_print(std::ostream& stream) const {
  static constexpr const char* names[] = {"ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"};
  std::string padding;
  if (!all_equal(options.padding(), 0)) padding = printed("padding", options.padding());
  if (!all_equal(options.output_padding(), 0)) padding += printed("output_padding", options.output_padding());
  print_common(stream, names[D - 1], options, padding);
}
template <size_t D, class Derived>
Tensor ConvTransposeNdImpl<D, Derived>::forward(const Tensor& input, const std::optional<IntArrayRef>& size) {
  RL_CHECK(options.padding_mode() == kZeros, "Only \"zeros\" padding mode is supported for ConvTranspose", D,
           "d");
  ExpandingArray<D> extra = options.output_padding();
  if (size) {
    RL_CHECK(size->size() == D || size->size() == D + 2, "output_size must have ", D, " or ", D + 2,
             " elements (got ", size->size(), ")");
    const size_t skip = size->size() - D, lead = static_cast<size_t>(input.dim()) - D;
    for (size_t d = 0; d < D; ++d) {
      const int64_t smallest = (input.sizes()[lead + d] - 1) * (*options.stride())[d] -
                               2 * (*options.padding())[d] +
                               (*options.dilation())[d] * ((*options.kernel_size())[d] - 1) + 1;
      (*extra)[d] = (*size)[skip + d] - smallest;
      RL_CHECK(0 <= (*extra)[d] && (*extra)[d] < (*options.stride())[d], "requested an output size of ",
               (*size)[skip + d], ", but valid sizes range from ", smallest, " to ",
               smallest + (*options.stride())[d] - 1);
    }
  }
  auto run = [&](auto function) {
    return function(input, weight, bias, *options.stride(), *options.padding(), *extra, options.groups(),
                    *options.dilation());
  };
  if constexpr (D == 1)
    return run([](auto&&... a) { return functional::conv_transpose1d(a...); });
  else if constexpr (D == 2)
    return run([](auto&&... a) { return functional::conv_transpose2d(a...); });
  else
    return run([](auto&&... a) { return functional::conv_transpose3d(a...); });
}

template class ConvNdImpl<1, Conv1dImpl>;
template class ConvNdImpl<2, Conv2dImpl>;
template class ConvNdImpl<3, Conv3dImpl>;
template class ConvTransposeNdImpl<1, ConvTranspose1dImpl>;
template class ConvTransposeNdImpl<2, ConvTranspose2dImpl>;
template class ConvTransposeNdImpl<3, ConvTranspose3dImpl>;

}  // namespace rushlight::nn
