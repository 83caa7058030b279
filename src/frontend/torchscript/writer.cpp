#include "frontend/torchscript/writer.h"

#include "core/crc32.h"
#include "frontend/pickle.h"
#include "io/archive.h"

namespace rushlight::jit {

// Code and constants are the archive's own; what the objects hold is written anew.
std::string write_module(const std::shared_ptr<Instance>& module,
                         const std::unordered_map<std::string, std::string>& extra_files) {
  std::vector<Tensor> storages;
  const std::string pickle = frontend::write_pickle(IValue(module), storages, true);
  std::string out;
  io::ArchiveWriter writer("archive");
  const auto record = [&](const std::string& name, std::string_view data) {
    out += writer.header(name, data.size(), crc32(data.data(), data.size()));
    out += data;
  };
  record("data.pkl", pickle);
  for (size_t i = 0; i < storages.size(); ++i)
    record("data/" + std::to_string(i),
           {static_cast<const char*>(storages[i].data_ptr()), storages[i].nbytes()});
  const Program& program = *module->type->program;
  for (const auto& [name, content] : program.texts) record(name, content);
  for (const auto& [name, content] : program.kept) record(name, content);
  for (const auto& [name, content] : extra_files) record("extra/" + name, content);
  return out + writer.end();
}

}  // namespace rushlight::jit
