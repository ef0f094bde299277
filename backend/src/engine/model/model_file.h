// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ct2triton {

// In the order of their numbers in the file.
enum class ElementType : uint8_t { kFloat32, kInt8, kInt16, kInt32, kFloat16, kBfloat16 };

size_t ElementBytes(ElementType type);
const char* ElementName(ElementType type);  // "float32"
bool IsFloat(ElementType type);             // of 32 or 16 bits

// Position, type and shape of a variable.
struct Variable {
  ElementType type;
  std::vector<int64_t> shape;  // empty: a scalar
  uint64_t offset;
  uint64_t bytes;

  int64_t elements() const { return static_cast<int64_t>(bytes / ElementBytes(type)); }
  // Size of the last dimension, and the number of such rows: a weight is [outputs, inputs].
  int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  int64_t rows() const { return columns() == 0 ? 0 : elements() / columns(); }
};

// The model.bin of a directory in CTranslate2's binary format, version 4 or later, with an
// encoder-decoder Transformer. The constructor reads and checks the list of variables; data is read
// on demand into the caller's memory, by any threads at once. The file is not mapped, because
// reading a truncated mapped file ends the process.
class ModelFile {
 public:
  // Throws Error: kUnavailable for a file that cannot be read, kInvalidArgument for one that is
  // damaged or cut off, kUnsupported for another format or another kind of model.
  explicit ModelFile(const std::string& directory);
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  // Throws Error(kUnsupported) for formats that decode loops do not read. They read binary version
  // 6 with specifications from revision 5 on.
  void RequireCurrentFormat() const;

  // By name; aliases share one variable.
  using Variables = std::map<std::string, std::shared_ptr<const Variable>>;
  const Variables& variables() const { return variables_; }
  bool Has(const std::string& name) const { return Find(name) != nullptr; }
  const Variable* Find(const std::string& name) const;  // null: not found
  const Variable& Get(const std::string& name) const;   // throws Error(kUnsupported)

  // Reads bytes of a variable; `from`: offset in the variable. Throws Error(kUnavailable) if the
  // file was truncated.
  void Read(const Variable& variable, uint64_t from, uint64_t bytes, void* to) const;

  // A variable of floats, converted to float32; empty if there is no such variable. Throws
  // Error(kUnsupported) for other element types.
  std::vector<float> Floats(const std::string& name) const;
  std::vector<float> Floats(const Variable& variable, int64_t first, int64_t count) const;

  // A number in the model, of any type; `otherwise` if there is none. Throws Error(kUnsupported) if
  // the variable is not a scalar.
  double Attribute(const std::string& name, double otherwise) const;

  // Throws Error(kUnavailable) if the file was written to since it was opened, because the data
  // read may be of two models.
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

  // Reads all bytes, or throws.
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
  std::string spec_;       // name of the file's specification
  uint32_t revision_ = 0;  // of the specification
  Variables variables_;
};

// The float32 values of narrower floats.
void WidenFloats(ElementType type, const std::byte* from, int64_t count, float* to);

}  // namespace ct2triton
