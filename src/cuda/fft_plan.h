// Fourier transforms as cuFFT wants them described, and the plans that are kept: everything that needs no
// device.
#pragma once
#include <array>
#include <functional>
#include <list>
#include <map>
#include <optional>

#include "device/layers.h"

namespace rushlight::cuda {

// cuFFT's numbers (cufft.h of versions 11 and 12).
namespace cufft {
constexpr int kForward = -1, kInverse = 1;
constexpr int kR2C = 0x2a, kC2R = 0x2c, kC2C = 0x29, kD2Z = 0x6a, kZ2D = 0x6c, kZ2Z = 0x69;
}  // namespace cufft

// What cufftMakePlanMany64 takes for contiguous operands: equal plans, one plan.
struct FftPlan {
  int rank = 1, type = cufft::kC2C;
  std::array<long long, 3> sizes{};  // of the longer side
  long long in_distance = 0, out_distance = 0, batch = 0;
  friend auto operator<=>(const FftPlan&, const FftPlan&) = default;
};
FftPlan fft_plan(const DeviceFft& f);

// The plans used last, each made by `make` and given back by `drop`.
template <class Handle>
class FftPlans {
 public:
  explicit FftPlans(size_t most, std::function<void(Handle)> drop) : most_(most), drop_(std::move(drop)) {}

  template <class F>
  Handle of(const FftPlan& plan, F&& make) {
    if (const auto found = places_.find(plan); found != places_.end()) {
      used_.splice(used_.begin(), used_, found->second);
      return used_.front().second;
    }
    const Handle handle = make();
    used_.emplace_front(plan, handle);
    places_[plan] = used_.begin();
    if (used_.size() > most_) {
      drop_(used_.back().second);
      places_.erase(used_.back().first);
      used_.pop_back();
    }
    return handle;
  }
  size_t size() const { return used_.size(); }

 private:
  using Entry = std::pair<FftPlan, Handle>;
  size_t most_;
  std::function<void(Handle)> drop_;
  std::list<Entry> used_;  // newest first
  std::map<FftPlan, typename std::list<Entry>::iterator> places_;
};

}  // namespace rushlight::cuda
