#include "frontend/torchscript/writer.h"

#include "frontend/pickle.h"

namespace rushlight::jit {

// Code and constants are the archive's own; what the objects hold is written anew.
std::string write_module(const std::shared_ptr<Instance>& module,
                         const std::unordered_map<std::string, std::string>& extra_files) {
  std::string out;
  io::ArchiveWriter writer("archive");
  frontend::write_values(writer, out, IValue(module), true);
  const Program& program = *module->type->program;
  for (const auto& [name, content] : program.texts) writer.append(out, name, content);
  for (const auto& [name, content] : program.kept) writer.append(out, name, content);
  for (const auto& [name, content] : extra_files) writer.append(out, "extra/" + name, content);
  return out + writer.end();
}

}  // namespace rushlight::jit
