// From CUPTI's records to activities; needs its headers, and no device.
#pragma once
#include <cupti_activity.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "core/device_driver.h"

namespace rushlight::cuda {

// Records arrive in any order on any thread: which operator asked for a call is told in a record of its own.
class CuptiRecords {
 public:
  // `shift`: from CUPTI's clock to the steady one, in nanoseconds.
  void begin(int64_t shift);
  void add(const CUpti_Activity* record);
  // All that was added, in the order of time, with causes.
  std::vector<DeviceActivity> finish();

 private:
  struct Pending {
    DeviceActivity activity;
    uint32_t correlation;
  };
  void keep(DeviceActivity::Kind kind, std::string name, uint32_t device, uint32_t stream, uint64_t start,
            uint64_t end, uint64_t bytes, uint32_t correlation);

  std::mutex mutex_;
  int64_t shift_ = 0;
  std::vector<Pending> pending_;
  std::map<uint32_t, uint64_t> causes_;  // by correlation
};

}  // namespace rushlight::cuda
