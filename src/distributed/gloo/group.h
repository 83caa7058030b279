// One process group on Gloo: collectives on raw memory, blocking, each with a tag of its own and a time
// limit.
#pragma once
#include <gloo/context.h>
#include <gloo/rendezvous/store.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "distributed/gloo/reduce.h"

namespace rushlight::distributed {

using Milliseconds = std::chrono::milliseconds;

// What tells one call from others that run at the same time, and how long it may take.
struct CallOptions {
  uint32_t tag;
  Milliseconds timeout;
};

// The address on which a rank is reached: of a host name or address, or of a network interface; else of this
// host's own name.
struct Endpoint {
  std::string host, interface;
};

// A message under way. The memory must live until it was waited for.
class Message {
 public:
  explicit Message(std::unique_ptr<gloo::transport::UnboundBuffer> buffer) : buffer_(std::move(buffer)) {}
  void wait_sent(Milliseconds timeout);
  int wait_received(Milliseconds timeout);  // the rank that sent it

 private:
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
};

class Group {
 public:
  // Connects every pair of ranks; `store` is asked only meanwhile.
  Group(gloo::rendezvous::Store& store, int rank, int size, const Endpoint& endpoint, Milliseconds timeout);

  void allreduce(void* data, size_t count, const Reduction& reduction, CallOptions options);
  // Only the root's `data` holds the result; the others' is left as it was.
  void reduce(void* data, size_t count, const Reduction& reduction, int root, CallOptions options);
  void broadcast(void* data, size_t bytes, int root, CallOptions options);
  void allgather(void* input, void* output, size_t bytes, CallOptions options);
  void gather(void* input, void* output, size_t bytes, int root, CallOptions options);
  void scatter(void* input, void* output, size_t bytes, int root, CallOptions options);
  void alltoall(void* input, std::vector<int64_t> input_bytes, void* output,
                std::vector<int64_t> output_bytes, CallOptions options);
  void barrier(CallOptions options);

  std::unique_ptr<Message> send(void* data, size_t bytes, int destination, uint64_t slot);
  std::unique_ptr<Message> receive(void* data, size_t bytes, int source, uint64_t slot);  // -1: any source

 private:
  std::shared_ptr<gloo::Context> context_;
};

}  // namespace rushlight::distributed
