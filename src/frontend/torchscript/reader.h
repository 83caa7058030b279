// TorchScript archives: what torch.jit.save of PyTorch writes.
#pragma once
#include <memory>
#include <optional>

#include "frontend/torchscript/program.h"
#include "io/archive.h"

namespace rushlight::jit {

// The module of an archive. Nothing of it is executed on the way, but for __setstate__ of its own classes,
// which reaches operators alone. `device` is where its tensors go; otherwise where the archive says.
std::shared_ptr<Instance> read_module(const io::Archive& archive, const std::string& name,
                                      const std::optional<Device>& device);
// A record, unpacked where it is compressed.
std::string read_record(const io::Archive& archive, const std::string& name);

}  // namespace rushlight::jit
