#include "distributed/gloo/group.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <limits>
#include <numeric>

#include "core/host/network.h"

namespace rushlight::distributed {

namespace {

std::shared_ptr<gloo::transport::Device> make_device(const Endpoint& endpoint) {
  gloo::transport::tcp::attr attr;
  attr.iface = endpoint.interface;
  if (endpoint.interface.empty()) attr.hostname = endpoint.host.empty() ? host::own_host() : endpoint.host;
  return gloo::transport::tcp::CreateDevice(attr);
}

template <class Options>
void apply(Options& call, CallOptions options) {
  call.setTag(options.tag);
  call.setTimeout(options.timeout);
}

// Gloo types its buffers by element; bytes do where nothing is computed.
std::unique_ptr<gloo::transport::UnboundBuffer> buffer(const std::shared_ptr<gloo::Context>& context,
                                                       void* data, size_t bytes) {
  return context->createUnboundBuffer(data, bytes);
}

// The buffers of reductions say how many bytes an element has only through their type.
template <class Options>
void set_output(Options& call, void* data, size_t count, size_t element_size) {
  switch (element_size) {
    case 1:
      return call.setOutput(static_cast<uint8_t*>(data), count);
    case 2:
      return call.setOutput(static_cast<uint16_t*>(data), count);
    case 4:
      return call.setOutput(static_cast<uint32_t*>(data), count);
    default:
      return call.setOutput(static_cast<uint64_t*>(data), count);
  }
}

}  // namespace

void Message::wait_sent(Milliseconds timeout) { buffer_->waitSend(timeout); }

int Message::wait_received(Milliseconds timeout) {
  int source = -1;
  buffer_->waitRecv(&source, timeout);
  return source;
}

Group::Group(gloo::rendezvous::Store& store, int rank, int size, const Endpoint& endpoint,
             Milliseconds timeout) {
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->setTimeout(timeout);
  auto device = make_device(endpoint);
  context->connectFullMesh(store, device);
  context_ = std::move(context);
}

void Group::allreduce(void* data, size_t count, const Reduction& reduction, CallOptions options) {
  gloo::AllreduceOptions call(context_);
  apply(call, options);
  set_output(call, data, count, reduction.element_size);
  call.setReduceFunction(reduction.function);
  gloo::allreduce(call);
}

void Group::reduce(void* data, size_t count, const Reduction& reduction, int root, CallOptions options) {
  gloo::ReduceOptions call(context_);
  apply(call, options);
  // Gloo computes in the output of every rank: the others get one that nobody looks at.
  std::vector<char> scratch;
  if (context_->rank != root) {
    const auto* bytes = static_cast<const char*>(data);
    scratch.assign(bytes, bytes + count * reduction.element_size);
    data = scratch.data();
  }
  set_output(call, data, count, reduction.element_size);
  call.setReduceFunction(reduction.function);
  call.setRoot(root);
  gloo::reduce(call);
}

void Group::broadcast(void* data, size_t bytes, int root, CallOptions options) {
  gloo::BroadcastOptions call(context_);
  apply(call, options);
  call.setOutput(static_cast<char*>(data), bytes);
  call.setRoot(root);
  gloo::broadcast(call);
}

void Group::allgather(void* input, void* output, size_t bytes, CallOptions options) {
  gloo::AllgatherOptions call(context_);
  apply(call, options);
  call.setInput(static_cast<char*>(input), bytes);
  call.setOutput(static_cast<char*>(output), bytes * static_cast<size_t>(context_->size));
  gloo::allgather(call);
}

void Group::gather(void* input, void* output, size_t bytes, int root, CallOptions options) {
  gloo::GatherOptions call(context_);
  apply(call, options);
  call.setInput(static_cast<char*>(input), bytes);
  if (context_->rank == root)
    call.setOutput(static_cast<char*>(output), bytes * static_cast<size_t>(context_->size));
  call.setRoot(root);
  gloo::gather(call);
}

void Group::scatter(void* input, void* output, size_t bytes, int root, CallOptions options) {
  gloo::ScatterOptions call(context_);
  apply(call, options);
  if (context_->rank == root) {
    std::vector<char*> parts;
    for (int r = 0; r < context_->size; ++r)
      parts.push_back(static_cast<char*>(input) + static_cast<size_t>(r) * bytes);
    call.setInputs(parts, bytes);
  }
  call.setOutput(static_cast<char*>(output), bytes);
  call.setRoot(root);
  gloo::scatter(call);
}

void Group::alltoall(void* input, std::vector<int64_t> input_bytes, void* output,
                     std::vector<int64_t> output_bytes, CallOptions options) {
  gloo::AlltoallvOptions call(context_);
  apply(call, options);
  call.setInput(static_cast<char*>(input), std::move(input_bytes));
  call.setOutput(static_cast<char*>(output), std::move(output_bytes));
  gloo::alltoallv(call);
}

void Group::barrier(CallOptions options) {
  gloo::BarrierOptions call(context_);
  apply(call, options);
  gloo::barrier(call);
}

std::unique_ptr<Message> Group::send(void* data, size_t bytes, int destination, uint64_t slot) {
  auto message = buffer(context_, data, bytes);
  message->send(destination, slot);
  return std::make_unique<Message>(std::move(message));
}

std::unique_ptr<Message> Group::receive(void* data, size_t bytes, int source, uint64_t slot) {
  auto message = buffer(context_, data, bytes);
  if (source >= 0) {
    message->recv(source, slot);
  } else {
    std::vector<int> all;
    for (int r = 0; r < context_->size; ++r)
      if (r != context_->rank) all.push_back(r);
    message->recv(all, slot);
  }
  return std::make_unique<Message>(std::move(message));
}

}  // namespace rushlight::distributed
