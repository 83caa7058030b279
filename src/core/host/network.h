// What sockets are asked beside reading and writing.
#pragma once
#include <cstdint>
#include <string>

namespace rushlight::host {

/// This host's name where it resolves, else 127.0.0.1: hosts whose name does not resolve have at least
/// themselves.
std::string own_host();
/// Whether the other side closed a connection, be there bytes left to read or not.
bool peer_is_gone(intptr_t socket);

}  // namespace rushlight::host
