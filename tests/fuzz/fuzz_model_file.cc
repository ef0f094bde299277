// SPDX-License-Identifier: Apache-2.0
//
// A model.bin of any bytes: it is read or refused with a sentence, and what it says of its
// variables can be read.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/compute/cpu/pack_weights.h"
#include "engine/model/model_file.h"
#include "fuzz.h"

namespace {

namespace fs = std::filesystem;
using namespace ct2triton;
using fuzz::Require;

const fs::path& Folder() {
  static const fs::path folder = [] {
    const fs::path path =
        fs::temp_directory_path() / ("fuzz_model_file-" + std::to_string(getpid()));
    fs::create_directories(path);
    std::atexit([] { fs::remove_all(Folder()); });
    return path;
  }();
  return folder;
}

void Use(const ModelFile& file, const std::string& name, const Variable& variable) {
  std::vector<std::byte> data(variable.bytes);
  file.Read(variable, 0, variable.bytes, data.data());
  Require(variable.rows() * variable.columns() == variable.elements(), "elements in no row");
  fuzz::Accepted([&] { file.Attribute(name, 0); });
  fuzz::Accepted([&] { file.Floats(name); });
  const std::string last = "/weight";
  if (name.size() < last.size() || name.compare(name.size() - last.size(), last.size(), last) != 0)
    return;
  const std::string scope = name.substr(0, name.size() - last.size());
  for (const auto type : {ElementType::kInt8, ElementType::kFloat32}) {
    fuzz::Accepted([&] {
      const auto packed = PackWeights(file, scope, type, nullptr, /*threads=*/1);
      Require(packed->outputs() * packed->inputs() == variable.elements(), "another size");
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  std::ofstream(Folder() / "model.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  fuzz::Accepted([] {
    const ModelFile file(Folder());
    for (const auto& [name, variable] : file.variables()) Use(file, name, *variable);
    file.RequireUnchanged();
  });
  return 0;
}
