// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/processor.h"

#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "error.h"

namespace ct2triton {
namespace {

constexpr Instructions kAll[] = {Instructions::kPlain,      Instructions::kAvx2,
                                 Instructions::kAvxVnni,    Instructions::kAvx512,
                                 Instructions::kAvx512Vnni, Instructions::kAmx};

#if defined(__x86_64__)

bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

// Bit 4 of EAX of leaf 7, subleaf 1. Not every compiler has a name for it.
bool HasAvxVnni() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return HasAvx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1U << 4)) != 0;
}

bool HasAvx512() { return HasAvx2() && __builtin_cpu_supports("avx512f"); }

bool HasAvx512Vnni() {
  return HasAvx512() && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}

// Bits 24 and 25 of EDX of leaf 7, and the system's permission.
bool MayUseAmx() {
  constexpr unsigned kTilesAndInt8 = 3U << 24;
  constexpr long kAskForState = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return HasAvx512Vnni() && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
         (d & kTilesAndInt8) == kTilesAndInt8 &&
         syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
}

// Once, so that all layers of a model have the same kernel.
bool HasAmx() {
  static const bool has = MayUseAmx();
  return has;
}

#else

bool HasAvx2() { return false; }
bool HasAvxVnni() { return false; }
bool HasAvx512() { return false; }
bool HasAvx512Vnni() { return false; }
bool HasAmx() { return false; }

#endif

[[noreturn]] void Refuse(ErrorCode code, const std::string& value) {
  std::string runs;
  for (const auto instructions : kAll) {
    if (!ProcessorRuns(instructions)) continue;
    runs += (runs.empty() ? "" : ", ") + std::string(InstructionsName(instructions));
  }
  throw Error(code, "environment variable CT2_TRITON_KERNELS is \"" + value +
                        "\"; this processor runs " + runs);
}

}  // namespace

const char* InstructionsName(Instructions instructions) {
  switch (instructions) {
    case Instructions::kPlain:
      break;
    case Instructions::kAvx2:
      return "avx2";
    case Instructions::kAvxVnni:
      return "avxvnni";
    case Instructions::kAvx512:
      return "avx512";
    case Instructions::kAvx512Vnni:
      return "avx512vnni";
    case Instructions::kAmx:
      return "amx";
  }
  return "plain";
}

bool ProcessorRuns(Instructions instructions) {
  switch (instructions) {
    case Instructions::kPlain:
      break;
    case Instructions::kAvx2:
      return HasAvx2();
    case Instructions::kAvxVnni:
      return HasAvxVnni();
    case Instructions::kAvx512:
      return HasAvx512();
    case Instructions::kAvx512Vnni:
      return HasAvx512Vnni();
    case Instructions::kAmx:
      return HasAmx();
  }
  return true;
}

Instructions MostInstructions() {
  const char* value = std::getenv("CT2_TRITON_KERNELS");
  if (value == nullptr || *value == '\0') return Instructions::kAmx;
  for (const auto instructions : kAll) {
    if (InstructionsName(instructions) != std::string(value)) continue;
    if (!ProcessorRuns(instructions)) Refuse(ErrorCode::kUnsupported, value);
    return instructions;
  }
  Refuse(ErrorCode::kInvalidArgument, value);
}

}  // namespace ct2triton
