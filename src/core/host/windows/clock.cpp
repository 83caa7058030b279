#include "core/host/clock.h"

namespace rushlight::host {

std::tm utc_time(std::time_t time) {
  std::tm result{};
  gmtime_s(&result, &time);
  return result;
}

std::tm local_time(std::time_t time) {
  std::tm result{};
  localtime_s(&result, &time);
  return result;
}

}  // namespace rushlight::host
