// SPDX-License-Identifier: Apache-2.0
#include "engine/calls/library/library_check.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <regex>

#include "ctranslate2_api.h"
#include "error.h"

namespace ct2triton {
namespace {

using ctranslate2::GenerationStepResult;
using ctranslate2::TranslationOptions;
using ctranslate2::TranslationResult;

// The layouts that the tested releases share (x86-64, C++11 std::string). offsetof is only
// conditionally supported on such types; every compiler that builds this file for Linux has it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(sizeof(TranslationOptions) == 224 && offsetof(TranslationOptions, end_token) == 72 &&
              offsetof(TranslationOptions, max_input_length) == 120 &&
              offsetof(TranslationOptions, callback) == 192);
static_assert(sizeof(TranslationResult) == 96 && offsetof(TranslationResult, logits) == 72);
static_assert(sizeof(ctranslate2::StorageView) == 72);
static_assert(sizeof(GenerationStepResult) == 160 && offsetof(GenerationStepResult, logits) == 72 &&
              offsetof(GenerationStepResult, is_last) == 152);
#pragma GCC diagnostic pop

[[noreturn]] void Refuse(const std::string& what) {
  throw Error(ErrorCode::kUnsupported,
              "the CTranslate2 library does not fit this backend: " + what +
                  "; install ctranslate2 " CT2TRITON_CT2_MIN " to " CT2TRITON_CT2_MAX);
}

// Path under which the loader knows the library: its mangled file name ends in the version.
std::string LibraryFileName() {
  Dl_info info;
  void* link_map_entry = nullptr;
  const auto* function = reinterpret_cast<const void*>(&ctranslate2::set_num_threads);
  if (dladdr1(function, &info, &link_map_entry, RTLD_DL_LINKMAP) == 0 || !link_map_entry) {
    Refuse("it cannot be located");
  }
  // The file may be reached through a link named libctranslate2.so.4: the SONAME says more.
  const auto* map = static_cast<const link_map*>(link_map_entry);
  const char* strings = nullptr;
  const ElfW(Dyn)* soname = nullptr;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_SONAME) soname = entry;
  }
  if (strings == nullptr || soname == nullptr) Refuse("it has no SONAME");
  return strings + soname->d_un.d_val;
}

std::array<int, 3> ParseVersion(const std::string& version) {
  std::array<int, 3> parts{};
  std::sscanf(version.c_str(), "%d.%d.%d", &parts[0], &parts[1], &parts[2]);
  return parts;
}

void CheckVersion() {
  const std::string version = LibraryVersion();
  const auto parts = ParseVersion(version);
  if (parts < ParseVersion(CT2TRITON_CT2_MIN) || parts > ParseVersion(CT2TRITON_CT2_MAX)) {
    Refuse("it is version " + version);
  }
}

// A symbol of the CTranslate2 library itself, not of a namesake elsewhere in the process.
void* LibrarySymbol(const char* name) {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&ctranslate2::set_num_threads), &info) == 0) {
    Refuse("it cannot be located");
  }
  void* handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  void* symbol = handle == nullptr ? nullptr : dlsym(handle, name);
  if (handle != nullptr) dlclose(handle);  // only lowers the count: the library stays
  if (symbol == nullptr) Refuse(std::string("it has no symbol ") + name);
  return symbol;
}

using OptionBytes = std::array<unsigned char, 256>;

// The bytes of `target` after the library copied all-zero options into it.
OptionBytes CopyZeroOptions(unsigned char fill) {
  using Copy = void (*)(void*, const void*);
  using Destroy = void (*)(void*);
  const auto copy =
      reinterpret_cast<Copy>(LibrarySymbol("_ZN11ctranslate218TranslationOptionsC1ERKS0_"));
  const auto destroy =
      reinterpret_cast<Destroy>(LibrarySymbol("_ZN11ctranslate218TranslationOptionsD1Ev"));
  alignas(16) static OptionBytes source, target;
  source.fill(0);
  target.fill(fill);
  copy(target.data(), source.data());
  const OptionBytes after = target;
  destroy(target.data());
  return after;
}

bool IsPadding(size_t offset) {
  // Bytes of TranslationOptions that belong to no member, or to the unused end of a short string.
  constexpr size_t kRanges[][2] = {{33, 39},   {68, 71},   {89, 103},  {105, 111},
                                   {113, 119}, {161, 167}, {185, 191}, {224, 255}};
  for (const auto& range : kRanges) {
    if (offset >= range[0] && offset <= range[1]) return true;
  }
  return false;
}

// Copies into two differently filled buffers: a byte that keeps its filling is padding, so the set
// of such bytes is a fingerprint of the struct that moves with every member.
void CheckOptionLayout() {
  const OptionBytes low = CopyZeroOptions(0x55);
  const OptionBytes high = CopyZeroOptions(0xaa);
  for (size_t i = 0; i < low.size(); ++i) {
    const bool untouched = low[i] == 0x55 && high[i] == 0xaa;
    if (untouched != IsPadding(i)) {
      Refuse("byte " + std::to_string(i) + " of its TranslationOptions has another layout");
    }
  }
}

void CheckVirtualSlot(const char* vtable, size_t slot, const char* function) {
  constexpr size_t kFirstSlot = 2;  // before it: offset to top and type information
  void* const* table = static_cast<void* const*>(LibrarySymbol(vtable));
  if (table[kFirstSlot + slot] != LibrarySymbol(function)) {
    Refuse(std::string("its virtual functions are in another order: ") + function);
  }
}

void CheckAll() {
  CheckVersion();
  CheckOptionLayout();
  CheckVirtualSlot("_ZTVN11ctranslate26models5ModelE", 0,
                   "_ZNK11ctranslate26models5Model23as_sequence_to_sequenceEv");
  // The one concrete kind of SequenceToSequenceReplica.
  CheckVirtualSlot("_ZTVN11ctranslate26models21EncoderDecoderReplicaE", 0,
                   "_ZN11ctranslate26models21EncoderDecoderReplicaD1Ev");
}

}  // namespace

std::string LibraryVersion() {
  const std::string name = LibraryFileName();
  std::smatch match;
  if (!std::regex_search(name, match, std::regex(R"((\d+\.\d+\.\d+)$)"))) {
    Refuse("its name has no version: " + name);
  }
  return match[1];
}

void CheckLibrary() {
  static std::once_flag once;  // an exception leaves it unset: the next load checks and fails again
  std::call_once(once, CheckAll);
}

}  // namespace ct2triton
