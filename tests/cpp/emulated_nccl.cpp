// NCCL's functions for processes on emulated devices: what a rank contributes is a file in a folder that all
// ranks know by the communicator's id, kept until the last one leaves. Streams wait for the files of the
// others, as kernels of NCCL do.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/device_backend.h"
#include "core/half.h"
#include "emulated_driver.h"

namespace rushlight::emulated {
namespace {

namespace fs = std::filesystem;

enum Result { kSuccess = 0, kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6, kInProgress = 7 };
enum Operation { kSum, kProduct, kMax, kMin, kAverage };

struct UniqueId {
  char path[128];
};

struct Communicator {
  fs::path folder;
  int rank = 0, size = 0;
  uint64_t calls = 0;  // collectives so far: names their files
  std::map<std::pair<int, int>, uint64_t> messages;
  std::map<int, std::function<void(void*, size_t)>> factors;  // of premultiplied sums, by their numbers
  std::atomic<bool> aborted{false};
  std::atomic<int> error{kSuccess};

  fs::path joined(int who) const { return folder / str("joined-", who); }
  bool complete() const {
    for (int r = 0; r < size; ++r)
      if (!fs::exists(joined(r))) return false;
    return true;
  }
};
using Shared = std::shared_ptr<Communicator>;

using Bytes = std::vector<char>;

// A file that is there at once, whole.
void publish(const fs::path& path, const void* data, size_t bytes) {
  const fs::path hidden = path.string() + ".part";
  std::ofstream(hidden, std::ios::binary).write(static_cast<const char*>(data), static_cast<long>(bytes));
  fs::rename(hidden, path);
}
Bytes contents(const fs::path& path) {
  Bytes bytes(fs::file_size(path));
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<long>(bytes.size()));
  return bytes;
}

template <class F>
void visit(int dtype, F&& f) {
  switch (dtype) {
    case 0:
      return f(int8_t{});
    case 1:
      return f(uint8_t{});
    case 2:
      return f(int32_t{});
    case 3:
      return f(uint32_t{});
    case 4:
      return f(int64_t{});
    case 5:
      return f(uint64_t{});
    case 6:
      return f(Half{});
    case 7:
      return f(float{});
    case 8:
      return f(double{});
    default:
      return f(BFloat16{});
  }
}
size_t size_of(int dtype) {
  size_t size = 0;
  visit(dtype, [&](auto tag) { size = sizeof tag; });
  return size;
}

// total = total op part, for `count` elements
void combine(int dtype, int operation, void* total, const void* part, size_t count) {
  visit(dtype, [&](auto tag) {
    using T = decltype(tag);
    using C = std::conditional_t<std::is_integral_v<T>, T, double>;
    auto* to = static_cast<T*>(total);
    const auto* from = static_cast<const T*>(part);
    for (size_t i = 0; i < count; ++i) {
      const C a = static_cast<C>(to[i]), b = static_cast<C>(from[i]);
      to[i] = static_cast<T>(operation == kProduct ? a * b
                             : operation == kMax   ? std::max(a, b)
                             : operation == kMin   ? std::min(a, b)
                                                   : a + b);
    }
  });
}
void divide(int dtype, void* total, size_t count, int by) {
  visit(dtype, [&](auto tag) {
    using T = decltype(tag);
    using C = std::conditional_t<std::is_integral_v<T>, T, double>;
    for (size_t i = 0; i < count; ++i)
      static_cast<T*>(total)[i] =
          static_cast<T>(static_cast<C>(static_cast<T*>(total)[i]) / static_cast<C>(by));
  });
}

// One call: what this rank tells the others, whom it waits for, and what it does then.
struct Call {
  Shared comm;
  void* stream;
  std::function<void()> tell;
  std::vector<fs::path> awaited;
  std::function<void()> finish;
  int device = driver().current_device();  // whose default stream a null one is
};
thread_local int depth = 0;
thread_local std::vector<Call> waiting;

void give(const std::vector<Call>& calls) {
  for (const Call& c : calls) {
    const DeviceScope scope(driver(), c.device);
    if (c.tell) enqueue_when(c.stream, [] { return true; }, c.tell);
  }
  for (const Call& c : calls) {
    const DeviceScope scope(driver(), c.device);
    enqueue_when(
        c.stream,
        [comm = c.comm, awaited = c.awaited] {
          return comm->aborted ||
                 std::all_of(awaited.begin(), awaited.end(), [](auto& p) { return fs::exists(p); });
        },
        [comm = c.comm, finish = c.finish] {
          if (!comm->aborted && finish) finish();
        });
  }
}
int take(Call call) {
  waiting.push_back(std::move(call));
  if (depth == 0) give(std::exchange(waiting, {}));
  return kSuccess;
}

std::map<Communicator*, Shared>& known() {
  static auto* all = new std::map<Communicator*, Shared>;
  return *all;
}

// A collective: every rank tells `bytes`, and finishes with what all told.
int collect(Communicator* c, void* stream, const void* data, size_t bytes,
            std::function<void(const std::vector<Bytes>&)> finish, int operation = kSum) {
  if (c->aborted) return kInvalidUsage;
  if (operation > kAverage && !c->factors.contains(operation)) return kInvalidArgument;
  const auto multiply = operation > kAverage ? c->factors[operation] : nullptr;
  const Shared comm = known().at(c);
  const uint64_t number = c->calls++;
  auto path = [comm](uint64_t n, int rank) { return comm->folder / str("call-", n, "-", rank); };
  std::vector<fs::path> all;
  for (int r = 0; r < c->size; ++r) all.push_back(path(number, r));
  return take({comm, stream,
               [=] {
                 Bytes mine(static_cast<const char*>(data), static_cast<const char*>(data) + bytes);
                 if (multiply) multiply(mine.data(), bytes);
                 publish(path(number, comm->rank), mine.data(), bytes);
               },
               all,
               [=] {
                 std::vector<Bytes> told;
                 for (const auto& p : all) told.push_back(contents(p));
                 finish(told);
               }});
}

void reduce_parts(const std::vector<Bytes>& told, size_t offset, size_t count, int dtype, int operation,
                  void* to) {
  const size_t bytes = count * size_of(dtype);
  Bytes total(told[0].begin() + static_cast<long>(offset),
              told[0].begin() + static_cast<long>(offset + bytes));
  for (size_t r = 1; r < told.size(); ++r)
    combine(dtype, operation, total.data(), told[r].data() + offset, count);
  if (operation == kAverage) divide(dtype, total.data(), count, static_cast<int>(told.size()));
  std::memcpy(to, total.data(), bytes);
}

void leave(Communicator* c) {
  const Shared comm = known().at(c);
  known().erase(c);
  std::error_code ignored;
  publish(comm->folder / str("left-", comm->rank), "", 0);
  for (int r = 0; r < comm->size; ++r)
    if (!fs::exists(comm->folder / str("left-", r))) return;
  fs::remove_all(comm->folder, ignored);
}

std::atomic<int> next_error{kSuccess};

}  // namespace
}  // namespace rushlight::emulated

using namespace rushlight;
using namespace rushlight::emulated;
using Comm = Communicator*;

extern "C" {

int ncclGetVersion(int* version) {
  const char* told = std::getenv("EMULATED_NCCL_VERSION");
  *version = told ? std::atoi(told) : 22703;
  return kSuccess;
}
const char* ncclGetErrorString(int code) {
  return code == kRemoteError ? "remote process exited" : "invalid usage";
}
const char* ncclGetLastError(Comm) { return ""; }

int ncclGetUniqueId(UniqueId* id) {
  std::string name = (fs::temp_directory_path() / "emulated-nccl-XXXXXX").string();
  if (name.size() >= sizeof id->path || !mkdtemp(name.data())) return kInvalidUsage;
  std::memcpy(id->path, name.c_str(), name.size() + 1);
  return kSuccess;
}
int ncclCommInitRankConfig(Comm* out, int size, UniqueId id, int rank, void*) {
  if (rank < 0 || rank >= size) return kInvalidArgument;
  const auto comm = std::make_shared<Communicator>();
  comm->folder = id.path, comm->rank = rank, comm->size = size;
  publish(comm->joined(rank), "", 0);
  known()[comm.get()] = comm;
  *out = comm.get();
  return kInProgress;
}
int ncclCommInitAll(Comm* out, int size, const int*) {
  UniqueId id;
  ncclGetUniqueId(&id);
  for (int r = 0; r < size; ++r) ncclCommInitRankConfig(&out[r], size, id, r, nullptr);
  return kSuccess;
}
int ncclCommFinalize(Comm) { return kSuccess; }
int ncclCommDestroy(Comm c) {
  leave(c);
  return kSuccess;
}
int ncclCommAbort(Comm c) {
  c->aborted = true;
  leave(c);
  return kSuccess;
}
int ncclCommGetAsyncError(Comm c, int* error) {
  if (const int wanted = next_error.exchange(kSuccess)) c->error = wanted;
  *error = c->error ? c->error.load() : c->complete() ? kSuccess : kInProgress;
  return kSuccess;
}

int ncclGroupStart() {
  ++depth;
  return kSuccess;
}
int ncclGroupEnd() {
  if (depth == 0) return kInvalidUsage;
  if (--depth == 0) give(std::exchange(waiting, {}));
  return kSuccess;
}

int ncclAllReduce(const void* from, void* to, size_t count, int dtype, int operation, Comm c, void* stream) {
  return collect(
      c, stream, from, count * size_of(dtype),
      [=](const auto& told) { reduce_parts(told, 0, count, dtype, operation, to); }, operation);
}
int ncclRedOpCreatePreMulSum(int* operation, void* scalar, int dtype, int residence, Comm c) {
  // One in the host's memory is read now, one in the device's when the work runs.
  Bytes now;
  if (residence == 1) {
    const char* from = static_cast<const char*>(scalar);
    now.assign(from, from + size_of(dtype));
  }
  *operation = kAverage + 1;
  while (c->factors.contains(*operation)) ++*operation;
  c->factors[*operation] = [=](void* data, size_t bytes) {
    const void* factor = now.empty() ? scalar : now.data();
    const size_t size = size_of(dtype);
    for (size_t i = 0; i < bytes; i += size)
      combine(dtype, kProduct, static_cast<char*>(data) + i, factor, 1);
  };
  return kSuccess;
}
int ncclRedOpDestroy(int operation, Comm c) {
  return c->factors.erase(operation) ? kSuccess : kInvalidArgument;
}
int ncclReduce(const void* from, void* to, size_t count, int dtype, int operation, int root, Comm c,
               void* stream) {
  return collect(
      c, stream, from, count * size_of(dtype),
      [=](const auto& told) {
        if (c->rank == root) reduce_parts(told, 0, count, dtype, operation, to);
      },
      operation);
}
int ncclReduceScatter(const void* from, void* to, size_t count, int dtype, int operation, Comm c,
                      void* stream) {
  const size_t bytes = count * size_of(dtype), rank = static_cast<size_t>(c->rank);
  return collect(
      c, stream, from, bytes * static_cast<size_t>(c->size),
      [=](const auto& told) { reduce_parts(told, rank * bytes, count, dtype, operation, to); }, operation);
}
int ncclBroadcast(const void* from, void* to, size_t count, int dtype, int root, Comm c, void* stream) {
  return collect(c, stream, from, c->rank == root ? count * size_of(dtype) : 0, [=](const auto& told) {
    std::memmove(to, told[static_cast<size_t>(root)].data(), count * size_of(dtype));
  });
}
int ncclAllGather(const void* from, void* to, size_t count, int dtype, Comm c, void* stream) {
  const size_t bytes = count * size_of(dtype);
  return collect(c, stream, from, bytes, [=](const auto& told) {
    for (size_t r = 0; r < told.size(); ++r)
      std::memcpy(static_cast<char*>(to) + r * bytes, told[r].data(), bytes);
  });
}
int ncclSend(const void* from, size_t count, int dtype, int peer, Comm c, void* stream) {
  const auto key = std::make_pair(c->rank, peer);
  const fs::path path = c->folder / str("message-", c->rank, "-", peer, "-", c->messages[key]++);
  return take({known().at(c), stream, [=] { publish(path, from, count * size_of(dtype)); }, {}, {}});
}
int ncclRecv(void* to, size_t count, int dtype, int peer, Comm c, void* stream) {
  const auto key = std::make_pair(peer + c->size, c->rank);  // counted apart from what is sent to oneself
  const fs::path path = c->folder / str("message-", peer, "-", c->rank, "-", c->messages[key]++);
  return take({known().at(c), stream, nullptr, {path}, [=] {
                 const Bytes bytes = contents(path);
                 std::memcpy(to, bytes.data(), std::min(bytes.size(), count * size_of(dtype)));
                 fs::remove(path);
               }});
}

// The next question for errors is answered with this one.
void emulated_nccl_fail(int code) { next_error = code; }
}
