#include "dispatch/profiler.h"

#include <atomic>
#include <chrono>

#include "core/allocation_observer.h"
#include "core/cpu_allocator.h"
#include "core/device_backend.h"
#include "core/host/process.h"
#include "core/host/thread.h"

namespace rushlight {

void (*read_python_stack)(std::vector<std::string>& frames) = [](std::vector<std::string>&) {};

namespace {

template <class Clock>
int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}
int64_t now() { return nanoseconds<std::chrono::steady_clock>(); }

int64_t allocated_bytes() {
  const CpuMemoryStats stats = cpu_memory_stats();
  return stats.blocks.requested_bytes[AllocatorStats::kAll].current + stats.tiny_allocated_bytes;
}

std::atomic<uint64_t> session_count{0};
std::mutex running_mutex;
std::shared_ptr<ProfilerSession> running;

// Which log is this thread's, and in which session.
struct ThreadLog {
  uint64_t session = 0;
  ProfilerSession::Log* log = nullptr;
};
thread_local ThreadLog thread_log;

// The session that this thread joined; 0 where it belongs to one by starting it, or as the engine's.
thread_local uint64_t joined = 0;

int64_t thread_number() {
  static thread_local const int64_t number = host::thread_id();
  return number;
}

// The session that hears of memory. A lock of its own: any thread may be allocating while a session ends.
std::mutex memory_mutex;
ProfilerSession* memory_listener = nullptr;

void hear_of_memory(void* address, int64_t bytes) noexcept {
  const std::lock_guard guard(memory_mutex);
  if (memory_listener) memory_listener->record_memory(address, bytes);
}

void listen_to_memory(ProfilerSession* session) {
  static std::once_flag once;
  std::call_once(once, [] {
    host::around_fork([] { memory_mutex.lock(); }, [] { memory_mutex.unlock(); },
                      [] {  // a child process is not recorded
                        allocation_observer = nullptr;
                        memory_listener = nullptr;
                        memory_mutex.unlock();
                      });
  });
  const std::lock_guard guard(memory_mutex);
  memory_listener = session;
  allocation_observer = session ? hear_of_memory : nullptr;
}

}  // namespace

static ProfiledOperand::Shape shape_of(const Tensor& t) {
  if (!t.defined()) return {DType::Float32, {}, {}, 0, 0, 0, {}};
  const IntList sizes = t.sizes(), strides = t.strides();
  return {t.dtype(),
          {sizes.begin(), sizes.end()},
          {strides.begin(), strides.end()},
          reinterpret_cast<uintptr_t>(t.impl()),
          reinterpret_cast<uintptr_t>(t->storage ? t->storage->data() : nullptr),
          t.storage_offset(),
          t.device()};
}

ProfiledOperand profiled_operand(const Value& value) {
  if (value.tag() == Tag::TensorList) return profiled_operand(value.tensors());
  if (value.tag() == Tag::Tensor) return profiled_operand(value.tensor());
  if (value.tag() == Tag::Generator) return {};
  return {false, {}, OwnedValue(value)};
}

ProfiledOperand profiled_operand(const Tensor& t) {
  return t.defined() ? ProfiledOperand{false, {shape_of(t)}, {}} : ProfiledOperand();
}

ProfiledOperand profiled_operand(TensorList list) {
  ProfiledOperand operand{true, {}, {}};
  for (const Tensor& t : list) operand.tensors.push_back(shape_of(t));
  return operand;
}

ProfilerSession::ProfilerSession(const ProfilerOptions& options)
    : options(options),
      number(++session_count),
      started(now()),
      wall_offset(nanoseconds<std::chrono::system_clock>() - started),
      allocated_before(options.memory ? allocated_bytes() : 0),
      allocated_(allocated_before) {}

ProfilerSession::Log& ProfilerSession::log_of_this_thread() {
  if (thread_log.session == number) return *thread_log.log;
  const std::lock_guard guard(mutex_);
  Log& log = logs_.emplace_back();
  log.thread = thread_number();
  thread_log = {number, &log};
  return log;
}

std::string_view ProfilerSession::keep(std::string_view name) {
  const std::lock_guard guard(mutex_);
  return *names_.emplace(name).first;
}

void ProfilerSession::close() {
  const std::lock_guard guard(mutex_);
  for (Log& log : logs_) {
    const std::lock_guard log_guard(log.mutex);
    log.closed = true;
  }
}

void ProfilerSession::record_memory(void* address, int64_t bytes) {
  allocated_.fetch_add(bytes, std::memory_order_relaxed);
  memory_.push_back({now(), thread_number(), reinterpret_cast<uintptr_t>(address), bytes});
}

void start_profiler(const ProfilerOptions& options) {
  const std::lock_guard guard(running_mutex);
  RL_CHECK(!running, "profiler: another profiler is running in this process; stop it first");
  running = std::make_shared<ProfilerSession>(options);
  if (options.memory) listen_to_memory(running.get());
  joined = 0;
  if (DeviceBackend* devices = options.devices ? find_device_backend(DeviceType::CUDA) : nullptr)
    if (devices->driver().start_observing()) running->observed = &devices->driver();
  dispatch_state.always |= kProfiled;
}

std::shared_ptr<ProfilerSession> stop_profiler() {
  const std::lock_guard guard(running_mutex);
  RL_CHECK(running, "profiler: no profiler is running");
  dispatch_state.always &= ~kProfiled;
  if (running->options.memory) listen_to_memory(nullptr);
  if (running->observed) running->activities = running->observed->stop_observing();
  running->close();
  return std::exchange(running, nullptr);
}

std::shared_ptr<ProfilerSession> running_profiler() {
  const std::lock_guard guard(running_mutex);
  return running;
}

void set_thread_profiled(bool on) {
  dispatch_state.always = on ? dispatch_state.always | kProfiled : dispatch_state.always & ~kProfiled;
}

void join_profiler(uint64_t session) {
  const std::lock_guard guard(running_mutex);
  if (!running || running->number != session) return;
  joined = session;
  dispatch_state.always |= kProfiled;
}

// The session for which this thread is recorded. One that it joined and that has ended switches it off.
static std::shared_ptr<ProfilerSession> session_of_this_thread() {
  std::shared_ptr<ProfilerSession> session = running_profiler();
  if (joined != 0 && (!session || session->number != joined)) {
    joined = 0;
    set_thread_profiled(false);
    return nullptr;
  }
  return session;
}

ProfilerScope::ProfilerScope(ProfilerEvent::Kind kind, std::string_view name, bool copy)
    : session_(session_of_this_thread()) {
  if (!session_) return;
  ProfilerEvent event;
  event.name = copy ? session_->keep(name) : name;
  event.kind = kind;
  const bool is_call = kind == ProfilerEvent::Kind::Call || kind == ProfilerEvent::Kind::Builtin;
  if (session_->options.stack && !is_call) read_python_stack(event.stack);
  if (session_->options.memory) event.bytes = session_->allocated();
  log_ = &session_->log_of_this_thread();
  event.forward_thread = log_->thread;

  const std::lock_guard guard(log_->mutex);
  if (log_->closed) return;
  event.parent = log_->open;
  log_->open = static_cast<int64_t>(log_->events.size());
  event_ = &log_->events.emplace_back(std::move(event));
  // Ranges may end on another thread; operators and nodes do not.
  is_cause_ =
      session_->observed && (kind == ProfilerEvent::Kind::Operator || kind == ProfilerEvent::Kind::Node);
  if (is_cause_)
    session_->observed->push_cause(static_cast<uint64_t>(log_->thread) << 32 |
                                   static_cast<uint64_t>(log_->open));
  event_->start = now();
}

ProfilerScope::ProfilerScope(ProfilerScope&& o) noexcept
    : session_(std::move(o.session_)),
      log_(o.log_),
      event_(std::exchange(o.event_, nullptr)),
      is_cause_(o.is_cause_) {}

void ProfilerScope::close() noexcept {
  if (!event_) return;
  const int64_t end = now();
  ProfilerEvent& event = *std::exchange(event_, nullptr);
  if (is_cause_) session_->observed->pop_cause();
  const std::lock_guard guard(log_->mutex);
  if (log_->closed) return;
  if (session_->options.memory) event.bytes = session_->allocated() - event.bytes;
  event.end = end;
  // A range outlives the function that opened it, and may have ended inside of the one that closes it.
  const auto ended = [&](int64_t i) { return log_->events[static_cast<size_t>(i)].end >= 0; };
  const bool is_call = event.kind == ProfilerEvent::Kind::Call || event.kind == ProfilerEvent::Kind::Builtin;
  if (!is_call) log_->open = event.parent;
  while (log_->open >= 0 && ended(log_->open))
    log_->open = log_->events[static_cast<size_t>(log_->open)].parent;
}

}  // namespace rushlight
