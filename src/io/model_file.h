// Models in one file: methods, which are graphs as text, the constants that they share, which are read where
// they lie, and the state that they write to.
//
//   header     magic, version, number of sections, size of the file, checksum of header and table
//   table      for each section: name, offset, size, checksum
//   methods    a line for each method: "prefill"; its graph is the section graph.0, graph.1, ...
//   graph.0    the text of jit/text.h
//   index      a line for each constant: "conv1.weight" float32 [64, 3, 7, 7] 4096
//   state      a line for each tensor: "seen" int64 [] 128, or `zeros` in place of the offset
//   weights    elements in C order, each tensor's starting at a multiple of 64 bytes
//   @NAME      a text that goes with the model, such as @tokenizer.json
//
// Numbers are little-endian. Sections of other names are passed over. Version 1 has one method, its graph in
// the section `graph`, and no state; models that need no more are written so.
#pragma once
#include <map>

#include "io/mapped_file.h"
#include "jit/graph.h"

namespace rushlight::io {

inline constexpr uint32_t kModelVersion = 2;
inline constexpr std::string_view kOnlyMethod = "forward";  // of a file of version 1

struct Method {
  std::string name;
  jit::Graph graph;
};

// What a session begins with.
struct StateTensor {
  std::string name;
  DType dtype = DType::Float32;
  Dims sizes;
  Tensor initial;  // undefined: zeros

  size_t nbytes() const;
  Tensor make() const;  // a new tensor
  void reset(const Tensor& t) const;
};

struct ModelFile {
  std::vector<Method> methods;  // at least one
  jit::Constants constants;
  std::vector<StateTensor> state;
  std::map<std::string, std::string_view> texts;  // by name, without the @; they live as long as `file`
  Ref<MappedFile> file;

  // The constants that a method reads.
  jit::Constants constants_of(const Method& method) const;
  // Which of `state` a method's graph names, in its order.
  std::vector<size_t> state_of(const Method& method) const;
};

// A file that is damaged, cut short or of another version is one RuntimeError that says so.
ModelFile read_model(const std::string& path);
// Of bytes that begin at a multiple of 64; `name` is what messages call them.
ModelFile read_model(Ref<MappedFile> file, const std::string& name);

// A method and the constants that its graph reads; equal ones of several methods are written once.
struct WrittenMethod {
  std::string name;
  jit::Graph graph;
  jit::Constants constants;
};
struct WrittenModel {
  std::vector<WrittenMethod> methods;
  std::vector<std::pair<std::string, Tensor>> state;  // with what sessions begin with
  std::map<std::string, std::string> texts;
};

// A file is there as a whole or not at all.
void write_model(const std::string& path, const WrittenModel& model);
void write_model(const std::string& path, const jit::Graph& graph, const jit::Constants& constants);

}  // namespace rushlight::io
