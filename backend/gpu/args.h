// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels: each takes one struct by value. Kernels, host code and emulation share
// this file, so it includes nothing that NVRTC lacks. Pointers are device addresses.
#pragma once

namespace ct2triton::gpu {

enum Number : int { kFloat32, kFloat16, kBfloat16, kInt8 };

// Numbered as in CTranslate2.
enum Activation : int {
  kNoActivation = -1,
  kRelu,
  kGeluTanh,
  kSwish,
  kGelu,
  kGeluSigmoid,
  kTanh,
  kSigmoid
};

// What a matrix product does with its sums y.
enum Result : int {
  kStore,   // out = activation(y), multiplied by the old `out` if `multiply` is set
  kAdd,     // sum = y + x; x is normalized first if `norm_residual` is set
  kCache,   // the first `split` columns go to `out`, the others to the row's slot in the cache
  kLogits,  // sum = y
};

// Mean and sum of squared deviations of 16 numbers of a row. The kernel that writes a row stores
// them, so that the kernel that normalizes it reads it only once.
struct Spread {
  float mean, squares;
};

// The token chosen for a sequence, to be run in the next step; position -1: the sequence has ended.
struct Next {
  int token, position;
};

// The chosen output. output -1: the row has ended, or all logits are NaN.
struct Chosen {
  int output;
  float log_probability;
  int aligned;  // the aligned source position; alignment_weight: its attention
  float alignment_weight;
};

struct Candidate {
  int output;  // -1: no further candidate
  float log_probability;
};

// Rows of float32, [rows, width], and their spreads, [rows, width / 16].
struct Stream {
  float* x;
  Spread* spread;
};

struct Norm {
  const float* gamma;  // null: no normalization
  const float* beta;   // null: root-mean-square norm
  float epsilon;
};

// Weights [n, k] in tiles of 16 by 16 (PackedPlace() in numbers.cuh). n is a multiple of 16.
struct Matrix {
  const void* weight;
  const float* scale;  // one per output, for int8 weights; else null
  const float* bias;   // or null
  int n, k;
};

// The KV cache: keys and values of slots, in slabs of equal size. A slab holds all layers.
struct Cache {
  void* const* slabs;
  long long layer;  // offset of this layer in a slab, in elements
  int slab_shift;   // a slab has 2^slab_shift slots
  int stride;       // elements of a slot: its key, then its value
};

constexpr int kFollows = -2;  // as a position: the row takes its token from Next of its sequence

// The rows of a step, one token each. position: number of tokens before it; -1: padding.
struct Rows {
  int* token;
  int* position;
  int* sequence;
  int* slot;  // in the KV cache, for its key and value
};

struct ProductArgs {
  Matrix matrix;
  Norm norm;
  Stream in;        // input of a product with a fused norm, and residual of kAdd
  const int* rows;  // the row of `in` for each row of the product; null: the same row
  const void* x;    // [rows, k], input of a product without a norm
  void* out;        // result of kStore and kCache
  Stream sum;       // result of kAdd; kLogits writes only its x, [rows, n]
  Cache cache;
  const int* slot;
  Result result;
  Activation activation;
  int multiply, norm_residual, split;
  float scale;  // multiplies the sums
};

struct AttentionArgs {
  Cache cache;
  Rows rows;
  const int* table;   // [sequences, table_stride]: slot(t) = table[t >> shift] + t % 2^shift
  const int* count;   // [sequences]: tokens to attend to; null: those up to the row's own
  const int* prompt;  // [sequences]: StepSequence::prompt, if there is a bias
  const float* bias;  // [heads, 2 * bias_last + 1], from distance -bias_last on; or null
  const void* query;  // [rows, query_stride]
  void* out;          // [rows, heads * dim]
  float* weights;     // [rows, heads, most_tokens]; or null
  int bias_last, table_stride, shift, query_stride, most_tokens, heads, dim, lanes;
  float scale;
};

struct EmbedArgs {
  Matrix embedding;
  Norm norm;
  Rows rows;
  const float* position;  // [positions, width]; or null
  const int* slots;       // [sequences, slots_stride]; null: the host sets the rows' slots
  const int* prompt;      // [sequences], if the embeddings of a prompt are zero; else null
  const Next* next;       // [sequences]
  Stream out;
  int slots_stride;
  float scale;
};

// Tiles of 16 rows per block of a product with many rows.
constexpr int kManyTiles = 4;
constexpr int kManyTilesFloat32 = 2;

// Shared memory of the kernels, in bytes.
constexpr unsigned ProductSharedBytes(bool float32, int tiles) {
  return tiles * (16 * 8 + 8 * (float32 ? 16 * 20 * 4 : 256 * 4));
}
constexpr unsigned AttentionSharedBytes(int tokens) { return 4 * (128 * 8 + 4 + tokens); }
constexpr unsigned kScanSharedBytes = 5168;
constexpr unsigned kChooseSharedBytes = 256;

constexpr int kMostCandidates = 32;
constexpr int kChunk = 1024;  // logits per block of Scan()

// Rules for the next output of a sequence. An output is the index of a row of the projection.
struct Rule {
  unsigned long long key;     // seed of the random numbers
  const int* ids;             // token ID of each output; null: the same number
  const int* listed;          // outputs that end a sequence, then outputs that are forbidden
  int ends, forbidden;        // their counts
  int unseen;                 // first outputs of the sequence that the penalty ignores
  int limit;                  // most outputs; 0: the host chooses the next token
  int min_length;             // least number of outputs before an end
  int candidates;             // how many to return, at least 1
  int draws;                  // 1: sampling
  int top_k;                  // 0: all
  int favored;                // output favored by `bias`, the draft's next one; -1: none
  int first_source, sources;  // source positions that an alignment may name
  float penalty, top_p, temperature, bias;
};

struct ChoiceArgs {
  Rows rows;
  const int* output_rows;  // [outputs]: the row of each
  const Rule* rules;       // [sequences]
  int* history;            // [sequences, history_stride]: outputs
  Next* next;              // [sequences]
  float* logits;           // [outputs, stride]
  float* part_value;       // [outputs, parts, kMostCandidates]
  int* part_output;
  float* part_most;      // [outputs, parts]
  float* part_total;     // sum of exponentials relative to part_most
  float* part_drawn;     // the same of logits divided by the temperature
  Chosen* chosen;        // [outputs]
  Candidate* candidate;  // [outputs, kMostCandidates]
  int stride, n, parts, history_stride;
};

struct AlignArgs {
  Rows rows;
  const int* output_rows;
  const Rule* rules;
  const float* weights;  // [rows, all_heads, stride]
  const int* heads;      // [count]: the heads to average
  Chosen* chosen;        // [outputs]
  int count, all_heads, stride;
};

// Packs a matrix into tiles, or selects rows of a packed one.
struct PackArgs {
  const void* from;  // [.., k], plain or packed (from_tiles)
  const int* rows;   // [n]: rows of `from`; null: all
  void* to;
  int from_tiles, from_kind, to_kind, n, k;
};

struct GatherArgs {
  const float* from;
  const int* rows;
  float* to;
  int n, padded;
};

}  // namespace ct2triton::gpu
