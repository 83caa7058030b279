#include "cuda/cupti.h"

#if __has_include(<cupti_activity.h>)
#include <cupti.h>

#include <chrono>
#include <cstdlib>

#include "cuda/cupti_records.h"
#include "cuda/library.h"

namespace rushlight::cuda {
namespace {

struct Cupti {
  Library library{"CUPTI", {"cu13", "cuda_cupti"}, {"libcupti.so.13"}, "nvidia-cuda-cupti"};
  Entry<decltype(cuptiActivityRegisterCallbacks)> set_callbacks{library, "cuptiActivityRegisterCallbacks"};
  Entry<decltype(cuptiActivityEnable)> enable{library, "cuptiActivityEnable"};
  Entry<decltype(cuptiActivityDisable)> disable{library, "cuptiActivityDisable"};
  Entry<decltype(cuptiActivityFlushAll)> flush{library, "cuptiActivityFlushAll"};
  Entry<decltype(cuptiActivityGetNextRecord)> next{library, "cuptiActivityGetNextRecord"};
  Entry<decltype(cuptiActivityPushExternalCorrelationId)> push{library,
                                                               "cuptiActivityPushExternalCorrelationId"};
  Entry<decltype(cuptiActivityPopExternalCorrelationId)> pop{library,
                                                             "cuptiActivityPopExternalCorrelationId"};
  Entry<decltype(cuptiGetTimestamp)> time{library, "cuptiGetTimestamp"};
};

Cupti& api() {
  static Cupti one;
  return one;
}

CuptiRecords& records() {
  static auto* one = new CuptiRecords;  // CUPTI's thread may outlive the program's objects
  return *one;
}

// Calls are recorded too: without them CUPTI does not tell which operator asked for a kernel.
constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,    CUPTI_ACTIVITY_KIND_MEMCPY,  CUPTI_ACTIVITY_KIND_MEMSET};
constexpr auto kCause = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  constexpr size_t kSize = size_t{4} << 20;
  *buffer = static_cast<uint8_t*>(std::malloc(kSize));
  *size = *buffer ? kSize : 0;
  *most_records = 0;
}

void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t filled) {
  CUpti_Activity* record = nullptr;
  while (filled > 0 && api().next(buffer, filled, &record) == CUPTI_SUCCESS) records().add(record);
  std::free(buffer);
}

int64_t clock_shift() {
  uint64_t theirs = 0;
  api().time(&theirs);
  const auto ours = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(ours).count() - static_cast<int64_t>(theirs);
}

}  // namespace

bool cupti_start() {
  if (!api().library.found() || api().set_callbacks(give_buffer, take_buffer) != CUPTI_SUCCESS) return false;
  records().begin(clock_shift());
  for (CUpti_ActivityKind kind : kKinds)
    if (api().enable(kind) != CUPTI_SUCCESS) {
      for (CUpti_ActivityKind begun : kKinds) api().disable(begun);
      return false;
    }
  return true;
}

std::vector<DeviceActivity> cupti_stop() {
  for (CUpti_ActivityKind kind : kKinds) api().disable(kind);
  api().flush(1);
  return records().finish();
}

void cupti_push(uint64_t cause) { api().push(kCause, cause); }
void cupti_pop() {
  uint64_t last = 0;
  api().pop(kCause, &last);
}

}  // namespace rushlight::cuda

#else  // a toolkit without CUPTI: profiles show the host

namespace rushlight::cuda {

bool cupti_start() { return false; }
std::vector<DeviceActivity> cupti_stop() { return {}; }
void cupti_push(uint64_t) {}
void cupti_pop() {}

}  // namespace rushlight::cuda
#endif
