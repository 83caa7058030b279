// The server's sockets: connections, TLS, limits on what comes in, deadlines, and the end.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "serve/http.h"
#include "serve/metrics.h"
#include "serve/options.h"

namespace rushlight::serve {

struct Callbacks {
  // Before the body is read: what is refused by its headers alone.
  std::function<std::optional<Reply>(const Request&)> refuse;
  std::function<void(ExchangePtr)> handle;
};

class Server {
 public:
  // Takes the port, or throws one error.
  Server(const Options& options, Counters& counters);
  ~Server();

  uint16_t port() const;
  // Work that takes longer than a glance: it runs on threads that neither read nor compute models.
  void post(std::function<void()> work);
  // Serves until a signal asks for the end, and then until what is under way is answered.
  // `ending` is called when that begins.
  void run(Callbacks callbacks, std::function<void()> ending);

  struct Shared;

 private:
  std::unique_ptr<Shared> shared_;
};

}  // namespace rushlight::serve
