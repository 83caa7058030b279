#if __has_include(<cupti_activity.h>)
#include "cuda/cupti_records.h"

#include <algorithm>

#include "core/host/library.h"

namespace rushlight::cuda {
namespace {

const char* copy_name(uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "Memcpy HtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "Memcpy DtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "Memcpy DtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "Memcpy PtoP";
    default:
      return "Memcpy";
  }
}

}  // namespace

void CuptiRecords::begin(int64_t shift) {
  const std::lock_guard lock(mutex_);
  shift_ = shift;
  pending_.clear(), causes_.clear();
}

void CuptiRecords::keep(DeviceActivity::Kind kind, std::string name, uint32_t device, uint32_t stream,
                        uint64_t start, uint64_t end, uint64_t bytes, uint32_t correlation) {
  Pending p;
  p.correlation = correlation;
  p.activity.kind = kind, p.activity.name = std::move(name);
  p.activity.device = static_cast<int>(device), p.activity.stream = stream;
  p.activity.start = static_cast<int64_t>(start) + shift_;
  p.activity.end = static_cast<int64_t>(end) + shift_;
  p.activity.bytes = static_cast<int64_t>(bytes);
  pending_.push_back(std::move(p));
}

void CuptiRecords::add(const CUpti_Activity* record) {
  const std::lock_guard lock(mutex_);
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL: {
      const auto* r = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      return keep(DeviceActivity::Kind::Kernel, r->name ? host::demangled(r->name) : "kernel", r->deviceId,
                  r->streamId, r->start, r->end, 0, r->correlationId);
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto* r = reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
      return keep(DeviceActivity::Kind::Copy, copy_name(r->copyKind), r->deviceId, r->streamId, r->start,
                  r->end, r->bytes, r->correlationId);
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto* r = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
      return keep(DeviceActivity::Kind::Fill, "Memset", r->deviceId, r->streamId, r->start, r->end, r->bytes,
                  r->correlationId);
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto* r = reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
      causes_[r->correlationId] = r->externalId;
      return;
    }
    default:
      return;
  }
}

std::vector<DeviceActivity> CuptiRecords::finish() {
  const std::lock_guard lock(mutex_);
  std::vector<DeviceActivity> all;
  for (Pending& p : pending_) {
    if (const auto cause = causes_.find(p.correlation); cause != causes_.end())
      p.activity.cause = cause->second;
    all.push_back(std::move(p.activity));
  }
  pending_.clear(), causes_.clear();
  std::ranges::stable_sort(all, {}, &DeviceActivity::start);
  return all;
}

}  // namespace rushlight::cuda
#endif
