// Times of the calendar. (The C library's own functions share one result among threads.)
#pragma once
#include <ctime>

namespace rushlight::host {

std::tm utc_time(std::time_t time);
std::tm local_time(std::time_t time);

}  // namespace rushlight::host
