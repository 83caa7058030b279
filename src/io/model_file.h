// Models in one file: a graph as text and its constants, which are read where they lie.
//
//   header    magic, version, number of sections, size of the file, checksum of header and table
//   table     for each section: name, offset, size, checksum
//   graph     the text of jit/text.h
//   index     a line for each constant: "conv1.weight" float32 [64, 3, 7, 7] 4096
//   weights   their elements in C order, each starting at a multiple of 64 bytes
//
// Numbers are little-endian. Sections of other names are passed over.
#pragma once
#include "jit/graph.h"

namespace rushlight::io {

inline constexpr uint32_t kModelVersion = 1;

struct ModelFile {
  jit::Graph graph;
  jit::Constants constants;
};

// A file that is damaged, cut short or of another version is one RuntimeError that says so.
ModelFile read_model(const std::string& path);

// A file is there as a whole or not at all.
void write_model(const std::string& path, const jit::Graph& graph, const jit::Constants& constants);

}  // namespace rushlight::io
