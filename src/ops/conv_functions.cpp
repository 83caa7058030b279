// The convolutions of nn.functional: of one image or of many, padded by number or by name.
#include "dispatch/table.h"
#include "ops/conv.h"
#include "ops/operators.h"
#include "ops/pad.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

// Adds the batch dimension that an unbatched input lacks, and takes it away again.
template <class F>
Tensor batched(const char* kind, const Tensor& input, const Tensor& weight, int64_t n, F&& f) {
  RL_CHECK(weight.dim() >= 3, "weight should have at least three dimensions (", kind, n, "d got ",
           describe(weight), ")");
  RL_CHECK(weight.dim() == n + 2, kind, n, "d: expected ", n + 2, "-D weight, got ", describe(weight));
  RL_CHECK(input.dim() == n + 1 || input.dim() == n + 2, "Expected ", n + 1, "D (unbatched) or ", n + 2,
           "D (batched) input to ", kind, n, "d, but got input of size: ", input.sizes());
  // Of images without channels nothing is computed, not even for as many channels as there are filters.
  const auto run = [&](const Tensor& x) { return x->sizes[1] == 0 ? narrow(f(x), 1, 0, 0) : f(x); };
  if (input.dim() == n + 2) return run(input);
  return squeeze_dim(run(unsqueeze(input, 0)), 0);
}

template <int N>
Tensor conv_body(const Call&, const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                 IntList padding, IntList dilation, int64_t groups) {
  return batched("conv", input, weight, N, [&](const Tensor& x) {
    return convolution(x, weight, bias, stride, padding, dilation, false, IntList{0}, groups);
  });
}

// padding='same' or 'valid'.
template <int N>
Tensor conv_padding_body(const Call&, const Tensor& input, const Tensor& weight, const Tensor& bias,
                         IntList stride, std::string_view padding, IntList dilation, int64_t groups) {
  RL_CHECK(padding == "same" || padding == "valid", "Invalid padding string: '", padding, "'");
  return batched("conv", input, weight, N, [&](const Tensor& x) {
    if (padding == "valid")
      return convolution(x, weight, bias, stride, IntList{0}, dilation, false, IntList{0}, groups);
    for (int64_t s : stride) RL_CHECK(s == 1, "padding='same' is not supported for strided convolutions");
    const Dims step = spread("dilation", dilation, N);
    Dims before(N), extra(N);
    bool uneven = false;
    for (int i = 0; i < N; ++i) {
      const int64_t total = step[i] * (weight->sizes[2 + i] - 1);
      before[i] = total / 2;
      extra[i] = total % 2;
      uneven |= extra[i] != 0;
    }
    if (!uneven) return convolution(x, weight, bias, stride, before, dilation, false, IntList{0}, groups);
    // The odd pixel goes at the end, of the image: what is cut from a larger result would not lie in order.
    Dims at_end;
    for (int i = N; i-- > 0;) at_end.push_back(0), at_end.push_back(extra[i]);
    return convolution(constant_pad_nd(x, at_end, Scalar(int64_t{0})), weight, bias, stride, before, dilation,
                       false, IntList{0}, groups);
  });
}

template <int N>
Tensor conv_transpose_body(const Call&, const Tensor& input, const Tensor& weight, const Tensor& bias,
                           IntList stride, IntList padding, IntList output_padding, int64_t groups,
                           IntList dilation) {
  return batched("conv_transpose", input, weight, N, [&](const Tensor& x) {
    return convolution(x, weight, bias, stride, padding, dilation, true, output_padding, groups);
  });
}

template <int N>
void register_conv(Table& t, const char* conv, const char* conv_padding, const char* transposed) {
  t.composite(conv, conv_body<N>)
      .doc(
          "Convolution over the last dimensions. Shapes: input [batch?, in, ...], weight [out, in / groups, "
          "...].")
      .autocast(Cast::Half);
  t.composite(conv_padding, conv_padding_body<N>)
      .doc("As the form before, padded by name: 'valid' not at all, 'same' so that the size stays.")
      .autocast(Cast::Half);
  t.composite(transposed, conv_transpose_body<N>)
      .doc("Transposed convolution. Shapes: input [batch?, in, ...], weight [in, out / groups, ...].")
      .overload(N == 1 ? nullptr : "input")
      .autocast(Cast::Half);
}

}  // namespace

void register_conv_functions(Table& t) {
  register_conv<1>(t,
                   "nn::conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] "
                   "padding=0, int[1] dilation=1, int groups=1) -> Tensor",
                   "nn::conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, str "
                   "padding='valid', int[1] dilation=1, int groups=1) -> Tensor",
                   "nn::conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, "
                   "int[1] padding=0, int[1] output_padding=0, int groups=1, int[1] dilation=1) -> Tensor");
  register_conv<2>(t,
                   "nn::conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] "
                   "padding=0, int[2] dilation=1, int groups=1) -> Tensor",
                   "nn::conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, str "
                   "padding='valid', int[2] dilation=1, int groups=1) -> Tensor",
                   "nn::conv_transpose2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, "
                   "int[2] padding=0, int[2] output_padding=0, int groups=1, int[2] dilation=1) -> Tensor");
  register_conv<3>(t,
                   "nn::conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] "
                   "padding=0, int[3] dilation=1, int groups=1) -> Tensor",
                   "nn::conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, str "
                   "padding='valid', int[3] dilation=1, int groups=1) -> Tensor",
                   "nn::conv_transpose3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, "
                   "int[3] padding=0, int[3] output_padding=0, int groups=1, int[3] dilation=1) -> Tensor");
}

}  // namespace rushlight
