// SPDX-License-Identifier: Apache-2.0
//
// An experiment: the products of a decoder step on one thread, in float32 by CTranslate2, in
// float32 and bfloat16 by packed kernels that are written here, and in int8 by the backend's own.
// Prints milliseconds of a step, then how far the results are from CTranslate2's in float32; there,
// its own are those of each row alone.
//
//     float_products [WIDTH LAYERS FEED_FORWARD VOCABULARY]     (each but LAYERS a multiple of 32)
#include <immintrin.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "ctranslate2_api.h"
#include "engine/compute/cpu/products/kernel_choice.h"
#include "engine/compute/cpu/products/packed_linear.h"
#include "step_products.h"

namespace ctranslate2 {

// What the library's Dense layer calls for float32: c = a * b, with b transposed.
template <Device kDevice>
struct primitives {
  template <typename In, typename Out>
  static void gemm(bool a_is_packed, bool b_is_packed, bool transpose_a, bool transpose_b, long m,
                   long n, long k, float alpha, const In* a, long lda, const In* b, long ldb,
                   float beta, Out* c, long ldc, const Out* a_shift_compensation);
};

}  // namespace ctranslate2

namespace ct2triton {
namespace {

using products::PageMemory;

constexpr int64_t kPanelOutputs = 32;
constexpr int64_t kGroupBytes = 128;  // weights of one group of inputs: two registers
constexpr int64_t kCacheLine = 64;

// As products/kernel_avx512vnni.cc has it for bytes: 32 outputs of up to 12 rows in 24 registers.
// A type is what an input becomes, how many of them are multiplied by one instruction, and how.
struct Float32 {
  using Code = float;
  static constexpr int64_t kGroup = 1;
  static Code Round(float x) { return x; }
  static void Convert(const float* from, int64_t count, Code* to) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof *to);
  }
  __attribute__((target("avx512f"))) static void Add(__m512* sum, __m512i codes, __m512i weights) {
    *sum = _mm512_fmadd_ps(_mm512_castsi512_ps(codes), _mm512_castsi512_ps(weights), *sum);
  }
};

struct Bfloat16 {
  using Code = uint16_t;
  static constexpr int64_t kGroup = 2;
  // To nearest, ties to even; the numbers here are finite.
  static Code Round(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return static_cast<Code>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
  static void Convert(const float* from, int64_t count, Code* to) {
    for (int64_t i = 0; i < count; ++i) to[i] = Round(from[i]);
  }
  __attribute__((target("avx512f,avx512bf16"))) static void Add(__m512* sum, __m512i codes,
                                                                __m512i weights) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(*sum) : "v"(codes), "v"(weights));
  }
};

// A layer's weights in panels: [outputs / 32][inputs / group][32][group].
template <typename Type>
class Panels {
 public:
  using Code = typename Type::Code;
  static constexpr int kRows = 12;

  Panels(const float* weight, int64_t outputs, int64_t inputs)
      : outputs_(outputs),
        groups_(inputs / Type::kGroup),
        weights_(static_cast<size_t>(outputs * inputs) * sizeof(Code)) {
    auto* code = reinterpret_cast<Code*>(weights_.data());
    for (int64_t panel = 0; panel < outputs; panel += kPanelOutputs) {
      for (int64_t input = 0; input < inputs; input += Type::kGroup) {
        for (int64_t i = 0; i < kPanelOutputs * Type::kGroup; ++i) {
          const int64_t output = panel + i / Type::kGroup;
          *code++ = Type::Round(weight[output * inputs + input + i % Type::kGroup]);
        }
      }
    }
  }

  void Apply(const Code* codes, int64_t rows, float* out) const {
    const int64_t tiles = (rows + kRows - 1) / kRows;
    for (int64_t output = 0; output < outputs_; output += kPanelOutputs) {
      const std::byte* panel = weights_.data() + output / kPanelOutputs * groups_ * kGroupBytes;
      const bool fetches = tiles > 1 && output + kPanelOutputs < outputs_;
      int64_t first = 0;
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t count = (rows - first + tiles - tile - 1) / (tiles - tile);
        const std::byte* soon = nullptr;
        if (fetches && tile < kGroupBytes / kCacheLine) {
          soon = panel + groups_ * (kGroupBytes + tile * kCacheLine);
        }
        Tile<kRows>(count, codes + first * groups_ * Type::kGroup, panel, soon,
                    out + first * outputs_ + output);
        first += count;
      }
    }
  }

 private:
  template <int kCount>
  void Tile(int64_t count, const Code* rows, const std::byte* panel, const std::byte* soon,
            float* out) const {
    if constexpr (kCount > 0) {
      if (count != kCount) return Tile<kCount - 1>(count, rows, panel, soon, out);
      if (soon == nullptr) return Sums<kCount, false>(rows, panel, soon, out);
      Sums<kCount, true>(rows, panel, soon, out);
    }
  }

  template <int kCount, bool kFetch>
  __attribute__((target("avx512f,avx512bf16"), flatten)) void Sums(const Code* rows,
                                                                   const std::byte* panel,
                                                                   const std::byte* soon,
                                                                   float* out) const {
    __m512 low[kCount];
    __m512 high[kCount];
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) low[i] = high[i] = _mm512_setzero_ps();
    for (int64_t group = 0; group < groups_; ++group) {
      if (kFetch) _mm_prefetch(soon + group * kCacheLine, _MM_HINT_T1);
      const __m512i low_weights = _mm512_load_si512(panel + group * kGroupBytes);
      const __m512i high_weights = _mm512_load_si512(panel + group * kGroupBytes + kCacheLine);
#pragma GCC unroll 16
      for (int i = 0; i < kCount; ++i) {
        int32_t bits;
        std::memcpy(&bits, rows + (i * groups_ + group) * Type::kGroup, sizeof bits);
        const __m512i codes = _mm512_set1_epi32(bits);
        Type::Add(&low[i], codes, low_weights);
        Type::Add(&high[i], codes, high_weights);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) {
      _mm512_storeu_ps(out + i * outputs_, low[i]);
      _mm512_storeu_ps(out + i * outputs_ + 16, high[i]);
    }
  }

  const int64_t outputs_;
  const int64_t groups_;
  PageMemory weights_;
};

struct Layer {
  Layer(int64_t layer_outputs, int64_t layer_inputs, const std::vector<float>& random)
      : outputs(layer_outputs),
        inputs(layer_inputs),
        plain(random.begin(), random.begin() + outputs * inputs),
        float32(plain.data(), outputs, inputs),
        bfloat16(plain.data(), outputs, inputs) {
    std::vector<int8_t> bytes(plain.size());
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<int8_t>(std::lrintf(plain[i] * 127.0F));
    }
    const std::vector<float> scale(static_cast<size_t>(outputs), 127.0F);
    int8.push_back(products::PackedLinear(
        {products::WeightType::kInt8, bytes.data(), scale.data(), nullptr, outputs, inputs},
        products::DefaultKernel(products::WeightType::kInt8)));
  }

  const int64_t outputs;
  const int64_t inputs;
  const std::vector<float> plain;  // in [-1, 1)
  const Panels<Float32> float32;
  const Panels<Bfloat16> bfloat16;
  std::vector<products::PackedLinear> int8;  // one
};
using Layers = std::vector<std::unique_ptr<Layer>>;

// Computes one layer of some rows. It holds what the rows are converted to.
using Product = std::function<void(const Layer& layer, const float* in, int64_t rows, float* out)>;

void LibraryProduct(const Layer& layer, const float* in, int64_t rows, float* out) {
  ctranslate2::primitives<ctranslate2::Device::CPU>::gemm<float, float>(
      false, false, false, true, rows, layer.outputs, layer.inputs, 1.0F, in, layer.inputs,
      layer.plain.data(), layer.inputs, 0.0F, out, layer.outputs, nullptr);
}

void Float32Product(const Layer& layer, const float* in, int64_t rows, float* out) {
  layer.float32.Apply(in, rows, out);
}

void Bfloat16Product(const Layer& layer, const float* in, int64_t rows, float* out) {
  static std::vector<uint16_t> codes;
  codes.resize(static_cast<size_t>(rows * layer.inputs));
  Bfloat16::Convert(in, rows * layer.inputs, codes.data());
  layer.bfloat16.Apply(codes.data(), rows, out);
}

void Int8Product(const Layer& layer, const float* in, int64_t rows, float* out) {
  static products::QuantizedRows quantized;
  const auto& packed = layer.int8.front();
  quantized.Assign(packed.kernel(), products::Rounding::kOnce, in, rows, packed.inputs());
  packed.Apply(quantized, out);
}

struct Way {
  const char* name;
  Product product;
};

const std::vector<Way> kWays = {{"float32, CTranslate2", LibraryProduct},
                                {"float32, packed", Float32Product},
                                {"bfloat16, packed", Bfloat16Product},
                                {"int8, packed", Int8Product}};

// Every layer reads the same rows: what a layer gives is not what the next one would get.
class Rows {
 public:
  Rows(const Layers& layers, int64_t count) : count_(count) {
    int64_t outputs = 0;
    int64_t inputs = 0;
    for (const auto& layer : layers) {
      outputs = std::max(outputs, layer->outputs);
      inputs = std::max(inputs, layer->inputs);
    }
    std::mt19937 random(static_cast<unsigned>(count));
    std::normal_distribution<float> normal;
    in_.resize(static_cast<size_t>(count * inputs));
    for (float& value : in_) value = normal(random);
    out_.resize(static_cast<size_t>(count * outputs));
  }
  void Run(const Layer& layer, const Product& product) {
    product(layer, in_.data(), count_, out_.data());
  }
  void RunEachAlone(const Layer& layer, const Product& product) {
    for (int64_t row = 0; row < count_; ++row) {
      product(layer, in_.data() + row * layer.inputs, 1, out_.data() + row * layer.outputs);
    }
  }
  float out(int64_t i) const { return out_[static_cast<size_t>(i)]; }
  int64_t count() const { return count_; }

 private:
  const int64_t count_;
  std::vector<float> in_;
  std::vector<float> out_;
};

void PrintTimes(const Layers& layers, int64_t count, double weights) {
  Rows rows(layers, count);
  std::vector<double> turns[4];
  // The ways take turns, so that all of them see the same neighbours on the machine.
  for (int turn = 0; turn < 7; ++turn) {
    for (size_t way = 0; way < kWays.size(); ++way) {
      turns[way].push_back(Time_ms(count < 24 ? 8 : 3, [&] {
        for (const auto& layer : layers) rows.Run(*layer, kWays[way].product);
      }));
    }
  }
  std::printf("| %lld |", static_cast<long long>(count));
  for (auto& times : turns) {
    std::sort(times.begin(), times.end());
    const double ms = times[times.size() / 2];
    std::printf(" %.2f, %.0f |", ms, static_cast<double>(count) * weights / ms / 1e6);
  }
  std::printf("\n");
  std::fflush(stdout);
}

// What differs from CTranslate2's float32: first its own, asked for each row alone.
void PrintDifferences(const Layer& layer, int64_t count, const Layers& layers) {
  Rows library(layers, count);
  Rows other(layers, count);
  library.Run(layer, kWays[0].product);
  std::printf("| %lld x %lld, %lld rows |", static_cast<long long>(layer.outputs),
              static_cast<long long>(layer.inputs), static_cast<long long>(count));
  for (const Way& way : kWays) {
    if (&way == &kWays[0]) {
      other.RunEachAlone(layer, way.product);
    } else {
      other.Run(layer, way.product);
    }
    double differing = 0;
    double squares = 0;
    double error = 0;
    const int64_t values = count * layer.outputs;
    for (int64_t i = 0; i < values; ++i) {
      const double expected = library.out(i);
      differing += expected != other.out(i);
      squares += expected * expected;
      error += (expected - other.out(i)) * (expected - other.out(i));
    }
    std::printf(" %.0f %%, %.1e |", 100 * differing / static_cast<double>(values),
                std::sqrt(error / squares));
  }
  std::printf("\n");
}

void PrintHead(const char* first) {
  std::string rule = "|---:|";
  std::printf("| %s |", first);
  for (const Way& way : kWays) std::printf(" %s |", way.name), rule += "---:|";
  std::printf("\n%s\n", rule.c_str());
}

}  // namespace
}  // namespace ct2triton

int main(int count, char** arguments) {
  using namespace ct2triton;
  const auto shapes = StepShapes(count, arguments);
  if (!__builtin_cpu_supports("avx512bf16")) {
    std::fprintf(stderr, "this processor has no AVX-512 BF16\n");
    return 1;
  }
  for (const auto& [outputs, inputs] : shapes) {
    if (outputs % kPanelOutputs == 0) continue;  // inputs are some layer's outputs
    std::fprintf(stderr, "a layer has %ld outputs; the kernels here take multiples of %ld\n",
                 static_cast<long>(outputs), static_cast<long>(kPanelOutputs));
    return 1;
  }
  ctranslate2::set_num_threads(1);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<size_t>(Weights(shapes)));
  for (float& value : values) value = uniform(random);
  Layers layers;
  for (const auto& [outputs, inputs] : shapes) {
    layers.push_back(std::make_unique<Layer>(outputs, inputs, values));
  }
  PrintHead("rows: ms of a step, 1e9 multiply-adds/s");
  for (const int64_t rows : {1, 4, 8, 24, 48, 96}) {
    PrintTimes(layers, rows, static_cast<double>(values.size()));
  }
  std::printf("\n");
  PrintHead("layer: values that differ, root mean square of the difference");
  for (const size_t layer : {size_t{0}, size_t{5}, layers.size() - 1}) {
    for (const int64_t rows : {1, 4, 8, 24, 48}) PrintDifferences(*layers[layer], rows, layers);
  }
  return 0;
}
