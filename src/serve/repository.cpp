#include "serve/repository.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>

#include "serve/log.h"

namespace rushlight::serve {

namespace {

std::shared_ptr<generation::TextService> read_texts(const std::string& path, const Options& options) {
  generation::TextLimits limits;
  limits.max_queued = options.queue;
  limits.max_running = options.max_texts;
  limits.max_tokens = options.max_tokens;
  return generation::TextService::load(path, limits);
}

}  // namespace

ServedModel::ServedModel(const ModelSource& source, const Options& options)
    : queue(options, counters), options_(options), source_(source) {
  read();
}

void ServedModel::read() {
  const host::FileStamp stamp = host::file_stamp(source_.path);
  {
    std::lock_guard lock(mutex_);
    taken_ = seen_ = stamp;
  }
  const auto start = Clock::now();
  runtime::Model model = runtime::Model::load(source_.path);
  std::shared_ptr<const LoadedModel> tensors;
  std::shared_ptr<generation::TextService> texts;
  if (model.text("generate.json"))
    texts = read_texts(source_.path, options_);
  else
    tensors = std::make_shared<const LoadedModel>(std::move(model));
  std::shared_ptr<const ChatTemplate> chat;
  std::string chat_problem;
  if (texts) try {
      chat = ChatTemplate::of(model);
    } catch (const Error& e) {
      chat_problem = e.what();
      log::write(log::line("warning", "chat_template").add("model", name()).add("message", e.what()));
    }
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  log::write(log::line("info", "loaded").add("model", name()).add("path", path()).add("ms", ms));
  std::lock_guard lock(mutex_);
  if (texts_) former_.push_back(texts_);
  tensors_ = std::move(tensors), texts_ = std::move(texts);
  chat_ = std::move(chat), chat_problem_ = std::move(chat_problem);
  problem_.clear();
}

void ServedModel::look() {
  {
    std::unique_lock lock(mutex_);
    auto idle = [](const auto& texts) {
      const auto stats = texts->stats();
      return texts.use_count() == 1 && !stats.queued && !stats.running;
    };
    const auto ended = std::partition(former_.begin(), former_.end(), std::not_fn(idle));
    const std::vector<std::shared_ptr<generation::TextService>> gone(std::make_move_iterator(ended),
                                                                     std::make_move_iterator(former_.end()));
    former_.erase(ended, former_.end());
    lock.unlock();
  }
  const host::FileStamp now = host::file_stamp(source_.path);
  {
    std::lock_guard lock(mutex_);
    // A file that is still being written looks different at each look.
    const bool settled = now == seen_;
    seen_ = now;
    if (!settled || now == taken_ || now.size < 0) return;
  }
  try {
    read();
    counters.reloads.fetch_add(1, std::memory_order_relaxed);
  } catch (const std::exception& e) {
    log::write(log::line("error", "reload").add("model", name()).add("message", e.what()));
    std::lock_guard lock(mutex_);
    problem_ = e.what();
  }
}

std::shared_ptr<const LoadedModel> ServedModel::tensors() const {
  std::lock_guard lock(mutex_);
  return tensors_;
}
std::shared_ptr<generation::TextService> ServedModel::texts() const {
  std::lock_guard lock(mutex_);
  return texts_;
}
std::shared_ptr<const ChatTemplate> ServedModel::chat_template() const {
  std::lock_guard lock(mutex_);
  RL_CHECK_VALUE(chat_problem_.empty(), chat_problem_);
  return chat_;
}
std::string ServedModel::problem() const {
  std::lock_guard lock(mutex_);
  return problem_;
}

Repository::Repository(const Options& options) : options_(options) {
  for (const ModelSource& source : options.models)
    models_.push_back(std::make_unique<ServedModel>(source, options));
  if (options.reload > 0) watcher_ = std::thread([this] { watch(); });
}

Repository::~Repository() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (watcher_.joinable()) watcher_.join();
}

void Repository::watch() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::duration<double>(options_.reload), [&] { return ending_; })) {
    lock.unlock();
    for (auto& model : models_) model->look();
    lock.lock();
  }
}

ServedModel* Repository::find(std::string_view name) const {
  for (const auto& model : models_)
    if (model->name() == name) return model.get();
  return nullptr;
}

}  // namespace rushlight::serve
