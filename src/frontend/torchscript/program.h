// A TorchScript program: the texts of an archive's code, its classes and functions, found when they are
// named.
#pragma once
#include <map>
#include <memory>
#include <mutex>

#include "frontend/torchscript/parser.h"

namespace rushlight::jit {

class Program : public std::enable_shared_from_this<Program> {
 public:
  explicit Program(std::string name) : name_(std::move(name)) {}

  // What a path such as __torch__.models.Net or __torch__.models.helper names.
  struct Named {
    const ClassType* type = nullptr;
    const Function* function = nullptr;
  };
  Named find(const std::string& path);
  std::shared_ptr<const ClassType> class_at(const std::string& path);
  std::shared_ptr<Instance> make(const ClassType& type);

  std::map<std::string, std::string> texts;  // "code/__torch__/models.py": what it holds
  std::vector<IValue> constants;
  std::map<std::string, std::string> kept;  // the archive's records that are written again as they were
  const std::string& name() const { return name_; }

 private:
  const CodeFile* file_at(const std::string& prefix);
  std::string name_;  // of the archive, for errors
  std::mutex mutex_;
  std::map<std::string, CodeFile> files_;
};

}  // namespace rushlight::jit
