// The models that are served, each in its newest version: a file that changes is read again.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/host/file.h"
#include "rushlight/text_service.h"
#include "serve/chat_template.h"
#include "serve/metrics.h"
#include "serve/model_queue.h"
#include "serve/options.h"

namespace rushlight::serve {

class ServedModel {
 public:
  ServedModel(const ModelSource& source, const Options& options);

  const std::string& name() const { return source_.name; }
  const std::string& path() const { return source_.path; }
  // One of them is null: a language model answers in texts, others in tensors. What is under way keeps its
  // own.
  std::shared_ptr<const LoadedModel> tensors() const;
  std::shared_ptr<generation::TextService> texts() const;
  // Null where the model has none; a ValueError where it has one that is not covered.
  std::shared_ptr<const ChatTemplate> chat_template() const;
  std::string problem() const;  // of the last reload; empty if it went well

  ModelCounters counters;
  ModelQueue queue;

  // Looks whether the file changed, and takes it if it is whole.
  void look();
  void read();  // throws

 private:
  const Options& options_;
  ModelSource source_;
  mutable std::mutex mutex_;
  std::shared_ptr<const LoadedModel> tensors_;
  std::shared_ptr<generation::TextService> texts_;
  // Of files that were replaced: they end when their texts have ended, and never on a thread of their own.
  std::vector<std::shared_ptr<generation::TextService>> former_;
  std::shared_ptr<const ChatTemplate> chat_;
  std::string problem_, chat_problem_;
  host::FileStamp taken_, seen_;
};

class Repository {
 public:
  explicit Repository(const Options& options);  // reads all, or throws the first error
  ~Repository();

  ServedModel* find(std::string_view name) const;
  const std::vector<std::unique_ptr<ServedModel>>& models() const { return models_; }

 private:
  void watch();

  const Options& options_;
  std::vector<std::unique_ptr<ServedModel>> models_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread watcher_;
};

}  // namespace rushlight::serve
