#include "core/host/network.h"

#include "core/host/windows/system.h"
// After winsock2.h.
#include <ws2tcpip.h>

namespace rushlight::host {

std::string own_host() {
  WSADATA started;
  if (WSAStartup(MAKEWORD(2, 2), &started) != 0) return "127.0.0.1";
  char name[256] = "";
  addrinfo* found = nullptr;
  const bool resolves =
      gethostname(name, sizeof name - 1) == 0 && getaddrinfo(name, nullptr, nullptr, &found) == 0;
  if (found) freeaddrinfo(found);
  WSACleanup();
  return resolves ? name : "127.0.0.1";
}

bool peer_is_gone(intptr_t socket) {
  WSAPOLLFD fd{static_cast<SOCKET>(socket), POLLRDNORM, 0};
  if (WSAPoll(&fd, 1, 0) <= 0) return false;
  if (fd.revents & (POLLHUP | POLLERR)) return true;
  // Bytes that wait hide the end behind them.
  char byte;
  return (fd.revents & POLLRDNORM) && recv(fd.fd, &byte, 1, MSG_PEEK) == 0;
}

}  // namespace rushlight::host
