// Gradient boosted trees for a bit, on features that were put into bins once for all bits.
//
// The loss is log(1 + exp(-z h(x))). At every node the best of all splits of some features drawn at random is taken:
// that of the largest G_l^2 / (H_l + penalty) + G_r^2 / (H_r + penalty), where G and H are sums over the rows of a side
// of the loss's first and second derivative, from histograms over the bins; a leaf is worth -rate G / (H + penalty).
//
// Derivatives are whole multiples of 2^-24, so that sums are exact in any order, and all else is plain arithmetic: the
// trees are the same on every platform.
#pragma once
#include <cstddef>
#include <cstdint>

#include "trees.hpp"
#include "vector.hpp"

namespace ilhash {

// Feature j of row i is in bin[j * n_rows + i]: the number of the feature's edges that lie below its value. The edges
// of feature j, at most 255, ascend from edges[edge_begin[j]] to before edges[edge_begin[j + 1]].
struct BinnedFeatures {
  const uint8_t* bin;
  uint32_t n_rows, n_features;
  const uint32_t* edge_begin;
  const double* edges;
};

// Puts the values of rows into the bins of their features, bin[j * n_rows + i]. Values that are not numbers come first.
void place_in_bins(Rows<const float> x, const uint32_t* edge_begin, const double* edges, uint8_t* bin);

struct BoostingOptions {
  uint32_t n_trees = 100, depth = 4;
  uint32_t n_tried = 1;  // features that a node looks at; more, as long as none of them splits it
  double rate = 0.2, penalty = 1.0;
  uint64_t seed = 0;
};

// z holds -1 and +1. The bias is the first Newton step of a constant. `margins` receives those of the rows.
TreeTable boost(const BinnedFeatures& x, const int8_t* z, const BoostingOptions& options, double* margins);

}  // namespace ilhash
