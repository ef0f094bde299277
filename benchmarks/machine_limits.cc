// SPDX-License-Identifier: Apache-2.0
//
// What this processor can do at most: int8 products and float multiply-adds a second out of
// registers, and bytes read a second, again and again, from memory of some sizes. On one core and
// on all, as JSON. benchmarks/roofline.py compiles and runs it.
//
//     c++ -O3 -std=c++17 -pthread benchmarks/machine_limits.cc -o machine_limits
//     ./machine_limits SECONDS [BYTES...]
#include <immintrin.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kSums = 16;  // independent ones, so that none waits for the one before
constexpr int64_t kPasses = 10'000;

// Keeps a value in a register from being computed at compile time, or not at all.
template <typename T>
void Keep(T& value) {
  asm volatile("" : "+v"(value));
}

struct alignas(64) TileShapes {
  uint8_t palette = 1;
  uint8_t unused[15] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Each does kPasses * kSums instructions of its kind.
__attribute__((target("amx-tile,amx-int8"))) void Amx() {
  const TileShapes shapes;
  asm volatile("" : : "m"(shapes));  // GCC's intrinsic reads its first bytes only
  _tile_loadconfig(&shapes);
  for (int64_t pass = 0; pass < kPasses * kSums / 4; ++pass) {
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
  _tile_release();
}

__attribute__((target("avx512f,avx512vnni"))) void Vnni512() {
  __m512i sums[kSums] = {};
  __m512i weights = _mm512_set1_epi8(3);
  Keep(weights);
  for (int64_t pass = 0; pass < kPasses; ++pass) {
#pragma GCC unroll 16
    for (auto& sum : sums) asm("vpdpbusd %1, %1, %0" : "+v"(sum) : "v"(weights));
  }
#pragma GCC unroll 16
  for (auto& sum : sums) Keep(sum);
}

__attribute__((target("avx2"))) void Vnni256() {
  __m256i sums[8] = {};  // 16 registers in all
  __m256i weights = _mm256_set1_epi8(3);
  Keep(weights);
  for (int64_t pass = 0; pass < 2 * kPasses; ++pass) {
#pragma GCC unroll 16
    for (auto& sum : sums) asm("%{vex%} vpdpbusd %1, %1, %0" : "+x"(sum) : "x"(weights));
  }
#pragma GCC unroll 16
  for (auto& sum : sums) Keep(sum);
}

// A product of bytes takes three instructions.
__attribute__((target("avx2"))) void Bytes256() {
  __m256i sums[8] = {};
  __m256i weights = _mm256_set1_epi8(3);
  __m256i ones = _mm256_set1_epi16(1);
  Keep(weights);
  Keep(ones);
  for (int64_t pass = 0; pass < 2 * kPasses; ++pass) {
#pragma GCC unroll 16
    for (auto& sum : sums) {
      __m256i pairs;
      asm("vpmaddubsw %2, %2, %1\n\tvpmaddwd %3, %1, %1\n\tvpaddd %1, %0, %0"
          : "+x"(sum), "=&x"(pairs)
          : "x"(weights), "x"(ones));
    }
  }
#pragma GCC unroll 16
  for (auto& sum : sums) Keep(sum);
}

__attribute__((target("avx512f"))) void Fma512() {
  __m512 sums[kSums] = {};
  __m512 factor = _mm512_set1_ps(0.5F);
  Keep(factor);
  for (int64_t pass = 0; pass < kPasses; ++pass) {
#pragma GCC unroll 16
    for (auto& sum : sums) asm("vfmadd231ps %1, %1, %0" : "+v"(sum) : "v"(factor));
  }
#pragma GCC unroll 16
  for (auto& sum : sums) Keep(sum);
}

__attribute__((target("avx2"))) void Fma256() {
  __m256 sums[8] = {};
  __m256 factor = _mm256_set1_ps(0.5F);
  Keep(factor);
  for (int64_t pass = 0; pass < 2 * kPasses; ++pass) {
#pragma GCC unroll 16
    for (auto& sum : sums) asm("vfmadd231ps %1, %1, %0" : "+x"(sum) : "x"(factor));
  }
#pragma GCC unroll 16
  for (auto& sum : sums) Keep(sum);
}

// All sums together make a value that is not used, and that the compiler must compute.
typedef uint64_t Line __attribute__((vector_size(64)));

__attribute__((target_clones("avx512f", "avx2", "default"))) void Read(const Line* lines,
                                                                       size_t count) {
  Line sums[8] = {};
  for (size_t i = 0; i + 8 <= count; i += 8) {
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; ++k) sums[k] ^= lines[i + k];
  }
  asm volatile("" : : "m"(sums));
}

struct Work {
  std::string name;
  double each;  // products, multiply-adds or bytes of one run
  std::function<void()> run;
};

void PinTo(unsigned core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
}

// Runs a second in threads that begin together; `make` gives each thread work of its own.
double Rate(unsigned threads, double seconds, const std::function<Work()>& make) {
  std::atomic<unsigned> ready{0};
  std::vector<double> rates(threads);
  std::vector<std::thread> running;
  for (unsigned thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] {
      PinTo(thread);
      const Work work = make();
      work.run();
      ++ready;
      while (ready < threads) std::this_thread::yield();
      const auto begin = std::chrono::steady_clock::now();
      std::chrono::duration<double> taken{};
      int64_t runs = 0;
      for (; taken.count() < seconds; ++runs) {
        work.run();
        taken = std::chrono::steady_clock::now() - begin;
      }
      rates[thread] = work.each * static_cast<double>(runs) / taken.count();
    });
  }
  double sum = 0;
  for (unsigned thread = 0; thread < threads; ++thread) {
    running[thread].join();
    sum += rates[thread];
  }
  return sum;
}

// As the backend decides it: engine/compute/cpu/processor.cc.
bool HasAmx() {
  unsigned eax = 7, ebx = 0, ecx = 0, edx = 0;
  asm("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
  return (edx >> 24 & 3U) == 3 && syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}

Work Bytes() {
  constexpr double kRuns = static_cast<double>(kPasses) * kSums;
  if (HasAmx()) return {"amx", 16 * 16 * 64 * kRuns, Amx};
  if (__builtin_cpu_supports("avx512vnni")) return {"avx512vnni", 64 * kRuns, Vnni512};
  unsigned eax = 7, ebx = 0, ecx = 1, edx = 0;
  asm("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
  if (eax & 1U << 4) return {"avxvnni", 32 * kRuns, Vnni256};
  return {"avx2", 32 * kRuns, Bytes256};
}

Work Floats() {
  constexpr double kRuns = static_cast<double>(kPasses) * kSums;
  if (__builtin_cpu_supports("avx512f")) return {"avx512", 16 * kRuns, Fma512};
  return {"avx2", 8 * kRuns, Fma256};
}

Work Reading(size_t bytes) {
  const size_t huge = size_t{2} << 20;
  const size_t room = (bytes + huge - 1) / huge * huge;
  const std::shared_ptr<void> memory(std::aligned_alloc(huge, room), std::free);
  if (!memory) throw std::bad_alloc();
  madvise(memory.get(), room, MADV_HUGEPAGE);
  std::fill_n(static_cast<char*>(memory.get()), bytes, 1);
  return {std::to_string(bytes) + " bytes", static_cast<double>(bytes),
          [memory, bytes] { Read(static_cast<const Line*>(memory.get()), bytes / sizeof(Line)); }};
}

void Print(const std::string& name, unsigned cores, double seconds,
           const std::function<Work()>& make) {
  double best[2] = {};
  for (int turn = 0; turn < 3; ++turn) {
    best[0] = std::max(best[0], Rate(1, seconds, make));
    best[1] = std::max(best[1], Rate(cores, seconds, make));
  }
  std::printf("  \"%s\": {\"what\": \"%s\", \"one\": %.6g, \"all\": %.6g},\n", name.c_str(),
              make().name.c_str(), best[0], best[1]);
}

}  // namespace

int main(int count, char** arguments) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    std::fprintf(stderr, "machine_limits: this processor has no AVX2\n");
    return 1;
  }
  const double seconds = count > 1 ? std::atof(arguments[1]) : 0.2;
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  std::printf("{\n");
  Print("int8", cores, seconds, Bytes);
  Print("float", cores, seconds, Floats);
  const auto read = [&](const std::string& name, size_t bytes) {
    Print(name, cores, seconds, [bytes] { return Reading(bytes); });
  };
  read("L2", size_t{512} << 10);
  read("L3", size_t{8} << 20);
  read("memory", size_t{512} << 20);
  for (int i = 2; i < count; ++i) {
    read(arguments[i], static_cast<size_t>(std::atoll(arguments[i])));
  }
  std::printf("  \"cores\": %u\n}\n", cores);
  return 0;
}
