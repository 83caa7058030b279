// Compiled into _gloo too, which stands alone: it needs nothing but the system.
#include "core/host/network.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rushlight::host {

std::string own_host() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) == 0) {
    addrinfo* found = nullptr;
    const bool resolves = getaddrinfo(name, nullptr, nullptr, &found) == 0;
    if (found) freeaddrinfo(found);
    if (resolves) return name;
  }
  return "127.0.0.1";
}

bool peer_is_gone(intptr_t socket) {
#ifdef POLLRDHUP
  pollfd fd{static_cast<int>(socket), POLLRDHUP, 0};
  return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR));
#else
  // Bytes that wait hide the end behind them.
  char byte;
  return recv(static_cast<int>(socket), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
#endif
}

}  // namespace rushlight::host
