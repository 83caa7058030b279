// What a system says of processors. Asked by processor.cpp alone.
#pragma once

namespace rushlight::host {

bool system_has_dot_products();  // of ARM64; false on others
bool system_has_checksums();
/// Asks for the tiles of AMX; false where the processor or the system has none.
bool system_gives_tiles();

}  // namespace rushlight::host
