// SPDX-License-Identifier: Apache-2.0
#include "engine/model/model_variables.h"

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "error.h"

namespace ct2triton {
namespace {

[[noreturn]] void Refuse(const std::string& what) {
  throw Error(ErrorCode::kUnsupported, "the decode loop cannot read model.bin: " + what);
}

template <typename T>
T Read(std::istream& file) {
  T value{};  // numbers lie in the file as they do in memory, least significant byte first
  if (!file.read(reinterpret_cast<char*>(&value), sizeof(value))) Refuse("it ends too early");
  return value;
}

// Its length, which counts a zero at the end, comes first.
std::string ReadString(std::istream& file) {
  const auto length = Read<uint16_t>(file);
  std::string text(length, '\0');
  if (!file.read(text.data(), length)) Refuse("it ends too early");
  if (!text.empty()) text.pop_back();
  return text;
}

void Skip(std::istream& file, uint64_t bytes) {
  if (!file.seekg(static_cast<std::streamoff>(bytes), std::ios::cur)) Refuse("it ends too early");
}

}  // namespace

std::set<std::string> ReadVariableNames(const std::string& directory) {
  std::ifstream model_bin(std::filesystem::path(directory) / "model.bin", std::ios::binary);
  constexpr uint32_t kOldestVersion = 4;  // the first that says of which type a variable is
  constexpr uint32_t kNewestVersion = 6;
  const auto version = Read<uint32_t>(model_bin);
  if (version < kOldestVersion || version > kNewestVersion) {
    Refuse("its binary version is " + std::to_string(version) + ", known are 4 to 6");
  }
  const std::string spec = ReadString(model_bin);
  if (spec != "TransformerSpec") Refuse("it holds a " + spec + ", not a TransformerSpec");
  Read<uint32_t>(model_bin);  // revision of the specification: the names tell what is new in it
  std::set<std::string> names;
  for (auto left = Read<uint32_t>(model_bin); left > 0; --left) {
    names.insert(ReadString(model_bin));
    const auto rank = Read<uint8_t>(model_bin);
    Skip(model_bin, uint64_t{4} * rank + 1);  // sizes and type
    Skip(model_bin, Read<uint32_t>(model_bin));
  }
  for (auto left = Read<uint32_t>(model_bin); left > 0; --left) {
    names.insert(ReadString(model_bin));
    ReadString(model_bin);  // what it is another name of
  }
  return names;
}

}  // namespace ct2triton
