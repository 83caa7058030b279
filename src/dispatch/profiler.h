// The profiler's recorder: what ran, on which thread, when, inside of what. Those who have something to tell
// open an event and close it; src/python hands the events out.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/device_driver.h"
#include "dispatch/op.h"

namespace rushlight {

// In dispatch_state.always while this thread is recorded; above the flags that tensors have. Operators that
// the program starts from a recorded thread are recorded, those of other threads when these join the session.
inline constexpr uint32_t kProfiled = 1u << 31;

inline bool is_profiled() { return dispatch_state.always & kProfiled; }

// What an operator was given or returned in one place: a tensor, a list of them, or another value.
struct ProfiledOperand {
  struct Shape {
    DType dtype;
    std::vector<int64_t> sizes, strides;
    // Which tensor it was and where its memory lay: addresses, which a later one may get again.
    uintptr_t tensor = 0, storage = 0;
    int64_t offset = 0;
    Device device;
  };
  bool is_list = false;
  std::vector<Shape> tensors;
  OwnedValue value;
};
ProfiledOperand profiled_operand(const Value& value);
ProfiledOperand profiled_operand(const Tensor& t);
ProfiledOperand profiled_operand(TensorList list);

struct ProfilerEvent {
  // Call: a Python function; Builtin: one of Python's that is written in C.
  enum class Kind : uint8_t { Operator, Node, Engine, Range, Module, Call, Builtin };
  std::string_view name;  // lives as long as the session, or longer
  const Op* op = nullptr;
  Kind kind = Kind::Operator;
  int32_t line = 0;             // of a call from Python: where its caller was
  int64_t start = 0, end = -1;  // nanoseconds of the steady clock
  int64_t parent = -1;          // index of the event around it, on the same thread
  int64_t sequence = -1;        // the same for an operator and the node it recorded; a module's number
  int64_t forward_thread = 0;   // of a node: the thread that recorded it
  int64_t bytes = 0;            // allocated less freed while it ran
  std::vector<ProfiledOperand> inputs;
  std::vector<ProfiledOperand> outputs;
  std::string keywords;            // JSON: what the program says of a range by name
  std::vector<std::string> stack;  // Python's, innermost first
};

// A block of CPU memory that some thread was given (bytes > 0) or gave back.
struct MemoryEvent {
  int64_t time, thread;
  uintptr_t address;
  int64_t bytes;
};

struct ProfilerOptions {
  bool shapes = false, memory = false, stack = false;
  bool devices = false;  // what they do, where there are any
  bool threads = false;  // those whose Python calls are recorded join
};

// One recording. A thread's events lie in a log of its own, which only it writes.
class ProfilerSession {
 public:
  struct Log {
    int64_t thread = 0;
    std::deque<ProfilerEvent> events;
    int64_t open = -1;  // the innermost event that has not ended
    // Threads that joined may still run when the session ends: what they then do is not recorded.
    std::mutex mutex;
    bool closed = false;
  };
  explicit ProfilerSession(const ProfilerOptions& options);

  const ProfilerOptions options;
  const uint64_t number;               // no two sessions have the same
  const int64_t started, wall_offset;  // steady clock; what to add to it for nanoseconds since 1970
  Log& log_of_this_thread();
  std::string_view keep(std::string_view name);
  // After the end: an event of which `end` is negative was open then, and its thread may be writing to it all
  // but name, kind, start, parent and stack.
  const std::deque<Log>& logs() const { return logs_; }
  void close();

  // Of all devices; filled when the session ends. A cause is the thread and the place in its log of an event.
  std::vector<DeviceActivity> activities;
  DeviceDriver* observed = nullptr;  // null: devices are not

  const int64_t allocated_before;  // bytes that were live when the session began
  int64_t allocated() const { return allocated_.load(std::memory_order_relaxed); }
  void record_memory(void* address, int64_t bytes);
  const std::deque<MemoryEvent>& memory() const { return memory_; }

 private:
  std::mutex mutex_;
  std::deque<Log> logs_;
  std::unordered_set<std::string> names_;
  std::atomic<int64_t> allocated_;
  std::deque<MemoryEvent> memory_;  // of all threads, in the order of time
};

// One session at a time in a process. Starting makes this thread a recorded one.
void start_profiler(const ProfilerOptions& options);
std::shared_ptr<ProfilerSession> stop_profiler();
std::shared_ptr<ProfilerSession> running_profiler();
// Switches this thread's recording while a session runs.
void set_thread_profiled(bool on);
// Records this thread too until the session of that number ends; nothing if it has.
void join_profiler(uint64_t session);

// An event that lasts as long as this object. Does nothing when no session runs.
class ProfilerScope {
 public:
  // `lasting_name` is kept as it is, other names are copied into the session.
  static ProfilerScope lasting(ProfilerEvent::Kind kind, std::string_view name) {
    return ProfilerScope(kind, name, false);
  }
  ProfilerScope(ProfilerEvent::Kind kind, std::string_view name) : ProfilerScope(kind, name, true) {}
  ProfilerScope(ProfilerScope&& o) noexcept;
  ProfilerScope(const ProfilerScope&) = delete;
  ~ProfilerScope() { close(); }

  void close() noexcept;
  ProfilerEvent* event() const { return event_; }
  // Of a function that was already running: it is as old as the session.
  void begin_with_session() {
    if (event_) event_->start = session_->started;
  }
  bool wants_shapes() const { return event_ && session_->options.shapes; }

 private:
  ProfilerScope(ProfilerEvent::Kind kind, std::string_view name, bool copy);
  std::shared_ptr<ProfilerSession> session_;
  ProfilerSession::Log* log_ = nullptr;
  ProfilerEvent* event_ = nullptr;
  bool is_cause_ = false;
};

// Fills what a Python program adds: the frames that are running, innermost first. Set by src/python.
extern void (*read_python_stack)(std::vector<std::string>& frames);

}  // namespace rushlight
