// SPDX-License-Identifier: Apache-2.0
#include "engine/model/model_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <set>
#include <system_error>
#include <tuple>

#include "config/parse_value.h"
#include "error.h"

namespace ct2triton {
namespace {

constexpr uint32_t kOldestVersion = 4;  // the first that stores the type of a variable
constexpr uint32_t kCurrentVersion = 6;
// CTranslate2 uses variables of these revisions unchanged; it renames some of older revisions.
constexpr uint32_t kOldestRevision = 5;
constexpr uint32_t kNewestRevision = 7;
constexpr const char* kSpec = "TransformerSpec";
const std::set<std::string> kOldSpecs = {"", "TransformerBase", "TransformerBig"};
constexpr size_t kMostDimensions = 8;

struct TypeInfo {
  const char* name;
  size_t bytes;
};
constexpr std::array<TypeInfo, 6> kTypes = {
    {{"float32", 4}, {"int8", 1}, {"int16", 2}, {"int32", 4}, {"float16", 2}, {"bfloat16", 2}}};

const TypeInfo& InfoOf(ElementType type) { return kTypes[static_cast<size_t>(type)]; }

[[noreturn]] void Unsupported(const std::string& what) {
  throw Error(ErrorCode::kUnsupported, "the decode loop cannot read model.bin: " + what);
}

std::string TextOf(int error) { return std::error_code(error, std::generic_category()).message(); }

float BitsAsFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// IEEE's half precision. The factor moves its exponents to where those of float32 are; the largest
// one, of infinity and what is no number, stays the largest.
float HalfAsFloat(uint16_t half) {
  const uint32_t magnitude = static_cast<uint32_t>(half & 0x7FFF) << 13;
  const float scaled = BitsAsFloat(magnitude) * 0x1p112F;
  uint32_t bits;
  std::memcpy(&bits, &scaled, sizeof bits);
  if (magnitude >= 0x0F800000) bits = magnitude | 0x7F800000;
  return BitsAsFloat(bits | static_cast<uint32_t>(half & 0x8000) << 16);
}

template <typename T>
T Load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

double NumberAt(ElementType type, const std::byte* at) {
  switch (type) {
    case ElementType::kInt8:
      return Load<int8_t>(at);
    case ElementType::kInt16:
      return Load<int16_t>(at);
    case ElementType::kInt32:
      return Load<int32_t>(at);
    default:
      float value;
      WidenFloats(type, at, 1, &value);
      return value;
  }
}

}  // namespace

size_t ElementBytes(ElementType type) { return InfoOf(type).bytes; }
const char* ElementName(ElementType type) { return InfoOf(type).name; }

bool IsFloat(ElementType type) {
  return type == ElementType::kFloat32 || type == ElementType::kFloat16 ||
         type == ElementType::kBfloat16;
}

void WidenFloats(ElementType type, const std::byte* from, int64_t count, float* to) {
  if (count == 0) return;  // `to` may be null then
  if (type == ElementType::kFloat32) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  const bool half = type == ElementType::kFloat16;
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = Load<uint16_t>(from + 2 * i);
    to[i] = half ? HalfAsFloat(bits) : BitsAsFloat(static_cast<uint32_t>(bits) << 16);
  }
}

ModelFile::Descriptor::Descriptor(const std::string& path)
    : number(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {  // a pipe does not block
  if (number >= 0) return;
  if (errno == ENOMEM) throw std::bad_alloc();
  throw Error(ErrorCode::kUnavailable, path + " cannot be opened: " + TextOf(errno));
}

ModelFile::Descriptor::~Descriptor() { close(number); }

bool ModelFile::Descriptor::Stamp::operator==(const Stamp& other) const {
  return std::tie(bytes, seconds, nanoseconds) ==
         std::tie(other.bytes, other.seconds, other.nanoseconds);
}

ModelFile::Descriptor::Stamp ModelFile::Descriptor::Now() const {
  struct stat info {};
  if (fstat(number, &info) != 0) {
    throw Error(ErrorCode::kUnavailable, "model.bin cannot be read: " + TextOf(errno));
  }
  return {info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

// Reads the list of variables, which is interleaved with their data, in small pieces of the file.
class ModelFile::Cursor {
 public:
  explicit Cursor(const ModelFile& file)
      : file_(file), size_(static_cast<uint64_t>(file.opened_.bytes)) {}

  uint64_t position() const { return position_; }

  template <typename T>
  T Number() {  // least significant byte first, as in memory
    T value;
    Take(&value, sizeof value);
    return value;
  }

  // Stored with its length first, which includes a zero at the end.
  std::string Text() {
    std::string text(Number<uint16_t>(), '\0');
    Take(text.data(), text.size());
    if (!text.empty() && text.back() == '\0') {
      text.pop_back();
      if (text.find('\0') == std::string::npos) return text;
    }
    file_.Damaged("a name before byte " + std::to_string(position_) + " does not end with a zero");
  }

  void Skip(uint64_t bytes) {
    Require(bytes);
    position_ += bytes;
  }

 private:
  void Require(uint64_t bytes) const {
    if (bytes <= size_ - position_) return;
    file_.Damaged("it has " + std::to_string(size_) + " bytes and ends too early: " +
                  std::to_string(bytes) + " are expected from byte " + std::to_string(position_));
  }

  void Take(void* to, size_t bytes) {
    Require(bytes);
    const bool held = position_ >= start_ && position_ + bytes <= start_ + held_;
    if (!held) {
      start_ = position_;
      held_ = std::min<uint64_t>(std::max(bytes, kAhead), size_ - position_);
      buffer_.resize(held_);
      file_.ReadAt(start_, held_, buffer_.data());
    }
    if (bytes != 0) std::memcpy(to, buffer_.data() + (position_ - start_), bytes);
    position_ += bytes;
  }

  static constexpr size_t kAhead = 4096;

  const ModelFile& file_;
  const uint64_t size_;
  uint64_t position_ = 0;
  uint64_t start_ = 0;  // offset of the buffer's content in the file
  uint64_t held_ = 0;
  std::vector<std::byte> buffer_;
};

ModelFile::ModelFile(const std::string& directory)
    : path_(directory + "/model.bin"), file_(path_), opened_(file_.Now()) {
  Cursor cursor(*this);
  version_ = cursor.Number<uint32_t>();
  if (version_ < kOldestVersion || version_ > kCurrentVersion) {
    Foreign("its binary version is " + std::to_string(version_) + ", known are " +
            std::to_string(kOldestVersion) + " to " + std::to_string(kCurrentVersion));
  }
  spec_ = cursor.Text();
  if (spec_ != kSpec && kOldSpecs.count(spec_) == 0) {
    Foreign("it holds a " + Quote(spec_) + ", not a " + kSpec);
  }
  revision_ = cursor.Number<uint32_t>();
  for (auto left = cursor.Number<uint32_t>(); left > 0; --left) ReadVariable(&cursor);
  for (auto left = cursor.Number<uint32_t>(); left > 0; --left) ReadAlias(&cursor);
}

// Names appear in messages, and the converter writes only such characters.
std::string ModelFile::ReadName(Cursor* cursor) const {
  std::string name = cursor->Text();
  for (const char character : name) {
    if (character <= ' ' || character > '~') {
      Damaged("it has a variable " + Quote(name) + ", whose name is not of printable ASCII");
    }
  }
  return name;
}

void ModelFile::ReadVariable(Cursor* cursor) {
  const std::string name = ReadName(cursor);
  const auto rank = cursor->Number<uint8_t>();
  if (rank > kMostDimensions) {
    Damaged("its variable " + Quote(name) + " has " + std::to_string(rank) +
            " dimensions, allowed are " + std::to_string(kMostDimensions));
  }
  Variable variable{};
  for (size_t i = 0; i < rank; ++i) variable.shape.push_back(cursor->Number<uint32_t>());
  const auto type = cursor->Number<uint8_t>();
  if (type >= kTypes.size()) {
    Foreign("its variable " + Quote(name) + " has elements of type " + std::to_string(type) +
            ", known are 0 to " + std::to_string(kTypes.size() - 1));
  }
  variable.type = static_cast<ElementType>(type);
  variable.bytes = cursor->Number<uint32_t>();
  variable.offset = cursor->position();
  // Byte count of the shape; UINT64_MAX if it overflows.
  uint64_t expected = ElementBytes(variable.type);
  for (const int64_t size : variable.shape) {
    if (__builtin_mul_overflow(expected, static_cast<uint64_t>(size), &expected)) {
      expected = UINT64_MAX;
    }
  }
  if (expected != variable.bytes) {
    Damaged("its variable " + Quote(name) + " has " + std::to_string(variable.bytes) +
            " bytes, which is not the size of its shape");
  }
  cursor->Skip(variable.bytes);
  const auto added = std::make_shared<const Variable>(std::move(variable));
  if (!variables_.emplace(name, added).second) Damaged("it has two variables " + Quote(name));
}

// An alias of a weight applies to its scale too. As in CTranslate2, an alias of an unknown variable
// is ignored.
void ModelFile::ReadAlias(Cursor* cursor) {
  const std::string alias = ReadName(cursor);
  const std::string name = ReadName(cursor);
  const auto found = variables_.find(name);
  if (found == variables_.end()) return;
  if (!variables_.emplace(alias, found->second).second) {
    Damaged("it has two variables " + Quote(alias));
  }
  const auto scale = variables_.find(name + "_scale");
  if (scale != variables_.end()) variables_.emplace(alias + "_scale", scale->second);
}

void ModelFile::RequireCurrentFormat() const {
  if (version_ != kCurrentVersion) {
    Unsupported("its binary version is " + std::to_string(version_) + ", known is " +
                std::to_string(kCurrentVersion));
  }
  if (spec_ != kSpec) Unsupported("it holds a " + Quote(spec_) + ", not a " + kSpec);
  if (revision_ < kOldestRevision || revision_ > kNewestRevision) {
    Unsupported("its specification has revision " + std::to_string(revision_) + ", known are " +
                std::to_string(kOldestRevision) + " to " + std::to_string(kNewestRevision));
  }
}

void ModelFile::Foreign(const std::string& what) const {
  throw Error(ErrorCode::kUnsupported,
              path_ + " is not an encoder-decoder model that can be read: " + what +
                  "; convert the model again");
}

void ModelFile::Damaged(const std::string& what) const {
  ThrowInvalid(path_ + " is damaged: " + what + "; copy or convert the model again");
}

const Variable* ModelFile::Find(const std::string& name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : found->second.get();
}

const Variable& ModelFile::Get(const std::string& name) const {
  if (const Variable* variable = Find(name)) return *variable;
  Unsupported("it has no variable " + name);
}

void ModelFile::ReadAt(uint64_t offset, uint64_t bytes, void* to) const {
  auto* at = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t count = pread(file_.number, at, bytes, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      throw Error(ErrorCode::kUnavailable,
                  path_ + " cannot be read from byte " + std::to_string(offset) + ": " +
                      (count == 0 ? "it ends there now; load the model again" : TextOf(errno)));
    }
    at += count;
    offset += static_cast<uint64_t>(count);
    bytes -= static_cast<uint64_t>(count);
  }
}

void ModelFile::Read(const Variable& variable, uint64_t from, uint64_t bytes, void* to) const {
  if (from > variable.bytes || bytes > variable.bytes - from) {
    throw Error(ErrorCode::kInternal, "model.bin: " + std::to_string(bytes) + " bytes from byte " +
                                          std::to_string(from) + " of a variable of " +
                                          std::to_string(variable.bytes));
  }
  ReadAt(variable.offset + from, bytes, to);
}

std::vector<float> ModelFile::Floats(const std::string& name) const {
  const Variable* variable = Find(name);
  if (variable == nullptr) return {};
  if (!IsFloat(variable->type)) {
    Unsupported("its variable " + name + " holds " + ElementName(variable->type) +
                ", where floats are known");
  }
  return Floats(*variable, 0, variable->elements());
}

std::vector<float> ModelFile::Floats(const Variable& variable, int64_t first, int64_t count) const {
  const size_t size = ElementBytes(variable.type);
  std::vector<std::byte> bytes(static_cast<size_t>(count) * size);
  Read(variable, static_cast<uint64_t>(first) * size, bytes.size(), bytes.data());
  std::vector<float> floats(static_cast<size_t>(count));
  WidenFloats(variable.type, bytes.data(), count, floats.data());
  return floats;
}

double ModelFile::Attribute(const std::string& name, double otherwise) const {
  const Variable* variable = Find(name);
  if (variable == nullptr) return otherwise;
  if (variable->elements() != 1) {
    Unsupported("its variable " + name + " has " + std::to_string(variable->elements()) +
                " elements, where a number is known");
  }
  std::array<std::byte, sizeof(float)> value{};
  Read(*variable, 0, variable->bytes, value.data());
  const double number = NumberAt(variable->type, value.data());
  constexpr double kMost = 1 << 30;
  if (!(number >= -kMost && number <= kMost)) {  // NaN fails both comparisons
    Unsupported("its variable " + name + " is " + std::to_string(number) +
                ", where a number up to 2^30 is known");
  }
  return number;
}

void ModelFile::RequireUnchanged() const {
  if (file_.Now() == opened_) return;
  throw Error(ErrorCode::kUnavailable,
              path_ + " changed while it was loaded; load the model again");
}

}  // namespace ct2triton
