// Short-time Fourier transforms and their inverse.

#include "dispatch/table.h"
#include "dispatch/warning.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/fft.h"
#include "ops/operators.h"
#include "ops/pad.h"
#include "ops/reduction.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;
using OptBool = std::optional<bool>;

template <class T>
std::string optional_text(const std::optional<T>& value) {
  return value ? str(static_cast<int64_t>(*value)) : "None";
}
std::string tensor_text(const Tensor& t) { return str("torch.", legacy_name(t.dtype()), "Tensor"); }

void check_devices(const char* who, const Tensor& self, const Tensor& window) {
  RL_CHECK(!window.defined() || window.device() == self.device(), who,
           " input and window must be on the same device but got self on ", self.device(), " and window on ",
           window.device());
}

// What both transforms are told, with defaults filled in.
struct Frames {
  int64_t n_fft, hop, window_length;
  int64_t left() const { return (n_fft - window_length) / 2; }
  int64_t right() const { return n_fft - window_length - left(); }
};
Frames frames_of(int64_t n_fft, OptInt hop, OptInt window_length) {
  return {n_fft, hop.value_or(n_fft >> 2), window_length.value_or(n_fft)};
}

std::string call_text(const char* who, const std::string& input, const Frames& f, const Tensor& window) {
  return str(who, "(", input, ", n_fft=", f.n_fft, ", hop_length=", f.hop, ", win_length=", f.window_length,
             ", window=", window.defined() ? str(tensor_text(window), "{", window.sizes(), "}") : "None");
}

// The window in the middle of n_fft points; undefined where it would be ones everywhere.
Tensor centred_window(const Tensor& window, const Frames& f, const Tensor& like) {
  if (f.window_length == f.n_fft) return window;
  const Tensor narrow_window = window.defined() ? window
                                                : ones(IntList{f.window_length}, like.dtype(), std::nullopt,
                                                       like.device(), std::nullopt);
  return constant_pad_nd(narrow_window, {f.left(), f.right()}, Scalar(0));
}

// --- stft

Tensor padded_at_both_ends(const Tensor& signals, int64_t points, std::string_view mode) {
  return squeeze_dim(pad(unsqueeze(signals, 0), {points, points}, mode, std::nullopt), 0);
}

void check_stft(const Tensor& input, const Frames& f, const Tensor& window, const std::string& text) {
  const int64_t length = input.size(1);
  RL_CHECK(f.n_fft > 0 && f.n_fft <= length, text, ": expected 0 < n_fft < ", length,
           ", but got n_fft=", f.n_fft);
  RL_CHECK(f.hop > 0, text, ": expected hop_length > 0, but got hop_length=", f.hop);
  RL_CHECK(f.window_length > 0 && f.window_length <= f.n_fft, text,
           ": expected 0 < win_length <= n_fft, but got win_length=", f.window_length);
  RL_CHECK(!window.defined() || (window.dim() == 1 && window->sizes[0] == f.window_length), text,
           ": expected a 1D window tensor of size equal to win_length=", f.window_length,
           ", but got window with size ", window.defined() ? window.sizes() : IntList());
}

bool wants_complex(const Tensor& self, const Tensor& window, OptBool return_complex) {
  if (return_complex.value_or(is_complex(self.dtype()) || (window.defined() && is_complex(window.dtype()))))
    return true;
  RL_CHECK(return_complex.has_value(),
           "stft requires the return_complex parameter be given for real inputs, and will further require "
           "that return_complex=True in a future PyTorch release.");
  static OnceWarning deprecated(
      "stft with return_complex=False is deprecated. In a future pytorch release, stft will return "
      "complex tensors for all inputs, and return_complex=False will raise an error.\nNote: you can "
      "still call torch.view_as_real on the complex output to recover the old return format.");
  deprecated.show();
  return false;
}

void warn_of_no_window(const Tensor& window) {
  static OnceWarning no_window(
      "A window was not provided. A rectangular window will be applied,which is known to cause "
      "spectral leakage. Other windows such as torch.hann_window or torch.hamming_window are "
      "recommended to reduce spectral leakage.To suppress this warning and use a rectangular window, "
      "explicitly set `window=torch.ones(n_fft, device=<device>)`.");
  if (!window.defined()) no_window.show();
}

Tensor stft_body(const Call&, const Tensor& self, int64_t n_fft, OptInt hop_length, OptInt win_length,
                 const Tensor& window, bool center, std::string_view pad_mode, bool normalized,
                 OptBool onesided, OptBool return_complex, OptBool align_to_window) {
  check_devices("stft", self, window);
  warn_of_no_window(window);
  RL_CHECK(!center || !align_to_window, "stft align_to_window should only be set when center = false");
  const Frames f = frames_of(n_fft, hop_length, win_length);
  const bool complex_out = wants_complex(self, window, return_complex);
  const std::string text =
      str(call_text("stft", str(tensor_text(self), self.sizes()), f, window),
          ", normalized=", static_cast<int64_t>(normalized), ", onesided=", optional_text(onesided),
          ", return_complex=", optional_text(return_complex),
          ", align_to_window=", optional_text(align_to_window), ") ");
  RL_CHECK(is_floating(self.dtype()) || is_complex(self.dtype()), text,
           ": expected a tensor of floating point or complex values");
  RL_CHECK(self.dim() == 1 || self.dim() == 2, text, ": expected a 1D or 2D tensor");

  Tensor input = self.dim() == 1 ? unsqueeze(self, 0) : self;
  if (center) {
    RL_CHECK(n_fft > 0, text, ": expected 0 < n_fft < ", input.size(1), ", but got n_fft=", n_fft);
    input = padded_at_both_ends(input, n_fft / 2, pad_mode);
  }
  if (align_to_window.value_or(false)) {
    RL_CHECK(f.window_length > 0 && f.window_length <= n_fft, text,
             ": expected 0 < win_length <= n_fft, but got win_length=", f.window_length);
    input = constant_pad_nd(input, {f.left(), f.right()}, Scalar(0));
  }
  check_stft(input, f, window, text);
  Tensor pieces = unfold(input, 1, n_fft, f.hop);  // [batch, frames, n_fft]
  if (const Tensor w = centred_window(window, f, input); w.defined()) pieces = pieces * w;

  const bool complex_fft = is_complex(pieces.dtype()), half = onesided.value_or(!complex_fft);
  RL_CHECK(!complex_fft || !half, "Cannot have onesided output if window or input is complex");
  const Tensor spectra =
      complex_fft ? fft_c2c(pieces, {2}, normalized, true) : fft_r2c(pieces, {2}, normalized, half);
  Tensor out = transpose(spectra, 1, 2);
  if (self.dim() == 1) out = squeeze_dim(out, 0);
  return complex_out ? out : view_as_real(out);
}

// --- istft

void check_istft(const Tensor& self, const Frames& f, const Tensor& window, bool onesided,
                 const std::string& text) {
  RL_CHECK(self.numel() > 0, text, ": input tensor cannot be empty.");
  RL_CHECK(self.dim() == 2 || self.dim() == 3, text, ": expected a tensor with 3 or 4 dimensions, but got ",
           self.dim() + 1);
  const int64_t points = self.size(-2);
  RL_CHECK(!onesided || points == f.n_fft / 2 + 1, text,
           ": expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 "
           "when onesided=True, but got ",
           points);
  RL_CHECK(onesided || points == f.n_fft, text,
           ": expected the frequency dimension (3rd to the last) of the input tensor to match n_fft when "
           "onesided=False, but got ",
           points);
  RL_CHECK(0 < f.hop && f.hop <= f.window_length, text, ": expected 0 < hop_length <= win_length");
  RL_CHECK(0 < f.window_length && f.window_length <= f.n_fft, text, ": expected 0 < win_length <= n_fft");
  RL_CHECK(!window.defined() || (window.dim() == 1 && window->sizes[0] == f.window_length), text,
           ": Invalid window shape. window has to be 1D and length of `win_length`");
}

// Frames laid over one another and added; the inverse of cutting them out.
Tensor overlap_add(const Tensor& pieces, int64_t length, const Frames& f) {
  return unfold_backward(pieces, {pieces.size(0), length}, 1, f.n_fft, f.hop);
}

Tensor inverse_frames(const Tensor& spectra, const Frames& f, bool onesided, bool normalized,
                      bool return_complex, const Tensor& window) {
  const int64_t mode = normalized ? 1 : 2;
  if (return_complex) {
    RL_CHECK(!onesided, "Cannot have onesided output if window or input is complex");
    return fft_c2c(spectra, {2}, mode, false);
  }
  RL_CHECK(!window.defined() || !is_complex(window.dtype()),
           "Complex windows are incompatible with return_complex=False");
  return fft_c2r(onesided ? spectra : narrow(spectra, 2, 0, f.n_fft / 2 + 1), {2}, mode, f.n_fft);
}

void check_envelope(const Tensor& envelope, const std::string& text) {
  if (envelope.device().is_meta() || envelope.numel() == 0) return;
  const double least = read_scalar(min(abs(envelope))).to_double();
  RL_CHECK(!(least < 1e-11), text, "window overlap add min: ", least,
           ": where no window reaches, the signal cannot be recovered");
}

Tensor istft_body(const Call&, const Tensor& self, int64_t n_fft, OptInt hop_length, OptInt win_length,
                  const Tensor& window, bool center, bool normalized, OptBool onesided, OptInt length,
                  bool return_complex) {
  check_devices("istft", self, window);
  static OnceWarning no_window(
      "A window was not provided. A rectangular window will be applied.Please provide the same window "
      "used by stft to make the inversion lossless.To suppress this warning and use a rectangular "
      "window, explicitly set `window=torch.ones(n_fft, device=<device>)`.");
  if (!window.defined()) no_window.show();
  RL_CHECK(is_complex(self.dtype()),
           "istft requires a complex-valued input tensor matching the output from stft with "
           "return_complex=True.");
  const Frames f = frames_of(n_fft, hop_length, win_length);
  const std::string text =
      str(call_text("istft", str("CPU", legacy_name(self.dtype()), "Type", self.sizes()), f, window),
          ", center=", static_cast<int64_t>(center), ", normalized=", static_cast<int64_t>(normalized),
          ", onesided=", optional_text(onesided), ", length=", optional_text(length),
          ", return_complex=", static_cast<int64_t>(return_complex), ") ");
  const bool half = onesided.value_or(self.dim() < 2 || self.size(-2) != n_fft);
  check_istft(self, f, window, half, text);
  RL_CHECK(length.value_or(0) >= 0, text, ": expected length >= 0");

  const Tensor spectra = transpose(self.dim() == 2 ? unsqueeze(self, 0) : self, 1, 2);
  const int64_t frames = spectra.size(1), whole = checked_numel({f.hop, frames - 1}) + n_fft;
  Tensor w = window.defined() ? window
                              : ones(IntList{f.window_length}, real_dtype(self.dtype()), std::nullopt,
                                     self.device(), std::nullopt);
  w = centred_window(w, f, w);
  Tensor y = overlap_add(inverse_frames(spectra, f, half, normalized, return_complex, window) * w, whole, f);
  Tensor envelope = overlap_add(expand(w * w, {1, frames, n_fft}, false), whole, f);

  const int64_t start = center ? n_fft / 2 : 0;
  const int64_t end = length ? start + *length : center ? whole - n_fft / 2 : whole;
  y = slice(y, 1, start, end, 1);
  envelope = slice(envelope, 1, start, end, 1);
  check_envelope(envelope, text);
  y = y / envelope;
  if (self.dim() == 2) y = squeeze_dim(y, 0);
  if (end <= whole) return y;
  show_warning(
      "The length of signal is shorter than the length parameter. Result is being padded with zeros in the "
      "tail. Please check your center, length, and hop_length settings.");
  return constant_pad_nd(y, {0, end - whole}, Scalar(0));
}

}  // namespace

void register_stft_operators(Table& t) {
  t.composite(
       "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
       "center=True, str pad_mode='reflect', bool normalized=False, bool? onesided=None, bool? "
       "return_complex=None, bool? align_to_window=None) -> Tensor",
       stft_body)
      .doc("Fourier transforms of short windowed pieces, hop_length apart: [batch, frequency, frame].")
      .autocast(Cast::Float, Cast::None);
  t.composite(
       "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
       "center=True, bool normalized=False, bool? onesided=None, int? length=None, bool "
       "return_complex=False) -> Tensor",
       istft_body)
      .doc("The signal whose stft is nearest to the input: pieces transformed back, overlapped and added.");
}

}  // namespace rushlight
