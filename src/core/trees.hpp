// Decision trees as tables.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ilhash {

// The nodes of all trees in one table. A row goes left where x[feature] <= threshold; leaves are their own children,
// and the children of other nodes stand behind them. The margin is the bias plus the value of the leaf in each tree.
struct TreeTable {
  std::vector<int32_t> feature, left, right, roots;
  std::vector<double> threshold, value;
  double bias = 0;

  size_t size() const { return feature.size(); }
};

// What is wrong with a table for rows of n_features features, or nullptr.
const char* fault_of(const TreeTable& table, size_t n_features);

// Steps from each node to the farthest leaf below it. The table must be without fault.
std::vector<int32_t> heights_of(const TreeTable& table);

}  // namespace ilhash
