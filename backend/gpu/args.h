// SPDX-License-Identifier: Apache-2.0
// What each kernel takes: one struct by value. Kernels, host and emulation share this file, so it
// includes nothing that NVRTC lacks. Pointers are addresses of the device.
#pragma once

namespace ct2triton::gpu {

enum Number : int { kFloat32, kFloat16, kBfloat16, kInt8 };

// As CTranslate2 numbers them.
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

// What a product does with its sums y.
enum Result : int {
  kStore,   // out = activation(y), times what `out` holds where `multiply` is set
  kAdd,     // sum = y + x, which is normalized first where `norm_residual` is set
  kCache,   // the first `split` columns to `out`, the others to the row's slot of the cache
  kLogits,  // sum = y
};

// Mean and sum of squared deviations of 16 numbers of a row. Who writes a row keeps them, so that
// who normalizes it needs not read it twice.
struct Spread {
  float mean, squares;
};

// What the device has chosen for a sequence: the token to be run next; position -1: it has ended.
struct Next {
  int token, position;
};

// The choice of an output. output -1: the row has ended, or no logit was a number.
struct Chosen {
  int output;
  float log_probability;
  int aligned;  // the place in the source, and its weight
  float alignment_weight;
};

struct Candidate {
  int output;  // -1: there are no more
  float log_probability;
};

// Rows of float32, [rows, width], and their spreads, [rows, width / 16].
struct Stream {
  float* x;
  Spread* spread;
};

struct Norm {
  const float* gamma;  // null: rows stay as they are
  const float* beta;   // null: a root-mean-square norm
  float epsilon;
};

// Weights of [n, k] in tiles of 16 by 16, see PackedPlace() in numbers.cuh. n is a multiple of 16.
struct Matrix {
  const void* weight;
  const float* scale;  // of each output, for int8 weights; else null
  const float* bias;   // or null
  int n, k;
};

// Keys and values of slots, in slabs of equal size. A slab holds all layers.
struct Cache {
  void* const* slabs;
  long long layer;  // elements before this layer's part
  int slab_shift;   // a slab has 2^slab_shift slots
  int stride;       // elements of a slot: its key, then its value
};

constexpr int kFollows = -2;  // a position: the row goes on with what was chosen for its sequence

// State of the rows of a step, each one token. position: tokens before it; -1: padding.
struct Rows {
  int* token;
  int* position;
  int* sequence;
  int* slot;  // where its key and value go
};

struct ProductArgs {
  Matrix matrix;
  Norm norm;
  Stream in;        // where a norm is fused, and the residual of kAdd
  const int* rows;  // of `in`, for each row of the product; null: the same
  const void* x;    // [rows, k] activations, where no norm is fused
  void* out;        // activations
  Stream sum;       // of kAdd; of kLogits its x alone, [rows, n]
  Cache cache;
  const int* slot;
  Result result;
  Activation activation;
  int multiply, norm_residual, split;
  float scale;  // of the sums
};

struct AttentionArgs {
  Cache cache;
  Rows rows;
  const int* table;   // [sequences, table_stride]: slot(t) = table[t >> shift] + t % 2^shift
  const int* count;   // of sequences: tokens to attend to; null: those up to the row's own
  const int* prompt;  // of sequences: see StepSequence::prompt; where there is a bias
  const float* bias;  // [heads, 2 * bias_last + 1]: of the key at -bias_last first; or null
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
  const int* prompt;      // of sequences, where embeddings of a prompt are zero; or null
  const Next* next;       // of sequences
  Stream out;
  int slots_stride;
  float scale;
};

// Tiles of 16 rows that a product's block has where there are many rows.
constexpr int kManyTiles = 4;
constexpr int kManyTilesFloat32 = 2;

// Bytes of shared memory that the kernels take.
constexpr unsigned ProductSharedBytes(bool float32, int tiles) {
  return tiles * (16 * 8 + 8 * (float32 ? 16 * 20 * 4 : 256 * 4));
}
constexpr unsigned AttentionSharedBytes(int tokens) { return 4 * (128 * 8 + 4 + tokens); }
constexpr unsigned kScanSharedBytes = 5168;
constexpr unsigned kChooseSharedBytes = 256;

constexpr int kMostCandidates = 32;
constexpr int kChunk = 1024;  // logits that a block scans

// How the next output of a sequence is chosen. Outputs are numbers of the projection's rows.
struct Rule {
  unsigned long long key;     // of the random numbers
  const int* ids;             // output to token id; null: the same
  const int* listed;          // ends, and then what is never chosen
  int ends, forbidden;        // counts of both
  int unseen;                 // by the penalty, of the sequence's first outputs
  int limit;                  // outputs; 0: the sequence does not go on by itself
  int min_length;             // outputs before an end may come
  int candidates;             // wanted, at least 1
  int draws;                  // 1: by random numbers
  int top_k;                  // 0: all
  int leaning;                // the draft's next output, -1: none
  int first_source, sources;  // where an alignment may point
  float penalty, top_p, temperature, bias;
};

struct ChoiceArgs {
  Rows rows;
  const int* output_rows;  // for each output, its row
  const Rule* rules;       // of sequences
  int* history;            // [sequences, history_stride]: outputs
  Next* next;              // of sequences
  float* logits;           // [outputs, stride]
  float* part_value;       // [outputs, parts, kMostCandidates]
  int* part_output;
  float* part_most;      // [outputs, parts]
  float* part_total;     // sum of exponentials relative to part_most
  float* part_drawn;     // the same, divided by the temperature before
  Chosen* chosen;        // [outputs]
  Candidate* candidate;  // [outputs, kMostCandidates]
  int stride, n, parts, history_stride;
};

struct AlignArgs {
  Rows rows;
  const int* output_rows;
  const Rule* rules;
  const float* weights;  // [rows, all_heads, stride]
  const int* heads;      // those that count
  Chosen* chosen;        // [outputs]
  int count, all_heads, stride;
};

// Makes the tiles of a matrix of rows, or chooses rows of one that has them.
struct PackArgs {
  const void* from;  // [.., k], plain or in tiles
  const int* rows;   // of `from`; null: all
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
