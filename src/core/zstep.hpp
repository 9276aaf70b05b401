// The z-step of one bit: lower E(z) over z in {-1,+1}^N by exact min-cuts on one block of points after another.
#pragma once
#include <cstdint>
#include <vector>

#include "graph.hpp"

namespace ilhash {

struct ZStepOptions {
  uint64_t seed = 0;
  bool shuffle_blocks = true;  // a new random order of the blocks in each sweep, otherwise 0, 1, 2, ...
  uint32_t max_sweeps = 1000;
  const double* field = nullptr;  // u: the unary term of E, one value per point, or none
  // Whole numbers above 0 in place of a graph's weights of 1, by arc; for graphs that came with blocks, and no field.
  const int32_t* attract_weight = nullptr;
  const int32_t* repel_weight = nullptr;
};

struct ZStepResult {
  std::vector<double> energies;  // at the start, then after each sweep; never increasing
  uint32_t n_blocks = 0;
  bool converged = false;  // the last sweep changed nothing
};

// E(z) = -sum_{n,m} w_nm z_n z_m - 2 sum_n u_n z_n over ordered pairs, from z as given to z as found.
// `block` must hold no repelling arc inside any block.
ZStepResult alternate(const SignedGraph& graph, const std::vector<uint32_t>& block, const ZStepOptions& options,
                      int8_t* z);

}  // namespace ilhash
