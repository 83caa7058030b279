// What a system says of ARM64 processors; false on others. Asked by processor.cpp alone.
#pragma once

namespace rushlight::host {

bool system_has_dot_products();
bool system_has_checksums();

}  // namespace rushlight::host
