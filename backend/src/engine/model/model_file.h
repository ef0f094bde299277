// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ct2triton {

// In the order of the numbers that the file has for them.
enum class ElementType : uint8_t { kFloat32, kInt8, kInt16, kInt32, kFloat16, kBfloat16 };

size_t ElementBytes(ElementType type);
const char* ElementName(ElementType type);  // "float32"
bool IsFloat(ElementType type);             // of 32 or 16 bits

// Where a variable lies in the file, and what it is.
struct Variable {
  ElementType type;
  std::vector<int64_t> shape;  // empty: a scalar
  uint64_t offset;
  uint64_t bytes;

  int64_t elements() const { return static_cast<int64_t>(bytes / ElementBytes(type)); }
  // Of the last dimension, and how often that occurs: a weight is [outputs, inputs].
  int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  int64_t rows() const { return columns() == 0 ? 0 : elements() / columns(); }
};

// The model.bin of a directory in CTranslate2's binary format, version 4 or later, that holds a
// Transformer of encoder and decoder. The list of variables is read and checked by the constructor;
// data is read on demand, into memory of the caller, by any threads at once. It is not mapped: a
// page of a mapped file that somebody truncates ends the process.
class ModelFile {
 public:
  // Throws Error: kUnavailable for a file that cannot be read, kInvalidArgument for one that is
  // damaged or cut off, kUnsupported for another format or another kind of model.
  explicit ModelFile(const std::string& directory);
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  // Throws Error(kUnsupported) where the format has more than its variables show:
  // binary version 6 and specifications from revision 5 on are what decode loops read.
  void RequireCurrentFormat() const;

  // By name; other names of a variable lead to the same one.
  using Variables = std::map<std::string, std::shared_ptr<const Variable>>;
  const Variables& variables() const { return variables_; }
  bool Has(const std::string& name) const { return Find(name) != nullptr; }
  const Variable* Find(const std::string& name) const;  // null: there is none
  const Variable& Get(const std::string& name) const;   // throws Error(kUnsupported)

  // Some bytes of a variable, `from` its first one on. Throws Error(kUnavailable) where the file
  // has become shorter.
  void Read(const Variable& variable, uint64_t from, uint64_t bytes, void* to) const;

  // A variable of floats, converted to float32 where it is narrower; nothing where there is none.
  // Throws Error(kUnsupported) for other elements.
  std::vector<float> Floats(const std::string& name) const;
  std::vector<float> Floats(const Variable& variable, int64_t first, int64_t count) const;

  // A number that the model holds, of whatever type; `otherwise` where it has none. Throws
  // Error(kUnsupported) for a variable that is no scalar.
  double Attribute(const std::string& name, double otherwise) const;

  // Throws Error(kUnavailable) where the file was written to since it was opened: what was read of
  // it may be of two models.
  void RequireUnchanged() const;

 private:
  class Cursor;
  struct Descriptor {
    explicit Descriptor(const std::string& path);
    ~Descriptor();
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    // Changes when the file is written to.
    struct Stamp {
      int64_t bytes, seconds, nanoseconds;
      bool operator==(const Stamp& other) const;
    };
    Stamp Now() const;

    int number;
  };

  // Reads it all, or throws.
  void ReadAt(uint64_t offset, uint64_t bytes, void* to) const;
  std::string ReadName(Cursor* cursor) const;
  void ReadVariable(Cursor* cursor);
  void ReadAlias(Cursor* cursor);
  [[noreturn]] void Foreign(const std::string& what) const;
  [[noreturn]] void Damaged(const std::string& what) const;

  const std::string path_;
  const Descriptor file_;
  const Descriptor::Stamp opened_;
  uint32_t version_ = 0;
  std::string spec_;       // of what the file holds
  uint32_t revision_ = 0;  // of that
  Variables variables_;
};

// The float32 values of narrower floats.
void WidenFloats(ElementType type, const std::byte* from, int64_t count, float* to);

}  // namespace ct2triton
