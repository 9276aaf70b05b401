// The inner loops of tree_margins.cpp. One source (tree_kernels.inc) is compiled once per instruction set, as those of
// vector.hpp are.
#pragma once
#include <cstddef>
#include <cstdint>

#include "vector.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace ilhash {

constexpr size_t kTreeRows = 64;     // of a tile
constexpr size_t kMostLeaves = 256;  // of a tree: the number of a leaf is a byte
constexpr size_t kMostEdges = 255;   // of a feature: so is the number of edges below a value

// An inner node of a tree: for each row of a tile, the leaf that its left child leads to where the row's bin of the
// feature is at most `edge`, or else that of its right child. Places are counted in bytes.
struct TreeStep {
  uint32_t bins;         // of the feature, from the first feature's
  uint32_t left, right;  // slots, from the first: those of leaves, and behind them those of the steps before this one
  uint32_t edge;
};

// Edges that ascend: those of column[f] of the rows stand from edges[begin[f]] to before edges[begin[f + 1]].
struct TreeEdges {
  const int32_t* column;
  const uint32_t* begin;
  size_t n_features;
  const float* edges;
};

struct TreeKernels {
  // bins[f * kTreeRows + i] = the number of edges of feature f that row i is not at or below; a tile has kTreeRows
  // rows, and behind x.n_rows there may be anything.
  void (*place)(Rows<const float> x, TreeEdges edges, uint8_t* bins);

  // totals[i] += the value of the leaf of row i. `slots` has kTreeRows bytes for each leaf, all of them its number, and
  // behind them room for as many again.
  void (*add_leaves)(const uint8_t* bins, const TreeStep* steps, size_t n_steps, const double* values, uint8_t* slots,
                     double* totals);
};

const TreeKernels& tree_kernels();  // of the instruction set that vector_level() names

}  // namespace ilhash
