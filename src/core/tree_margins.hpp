// The margins that tables of trees give to the same rows: to each table its own, the sum over its trees.
//
// Many rows at once: values are put between the thresholds of all trees, once for all tables where these have few
// enough, and then every inner node of a tree is decided for a tile of rows together, from the leaves up. No step
// depends on the data. Few rows, or tables with more leaves or thresholds than a byte can count, walk from node to
// node. Either way a margin is the bias and then the trees in the order of their roots, in double: the same bits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "trees.hpp"
#include "vector.hpp"

namespace ilhash {

class TreeMargins {
 public:
  // A table, and which columns of the rows its features are: all in their order if there are none.
  struct Source {
    TreeTable table;
    std::vector<int32_t> columns;
  };

  // Rows will have so many features. Tables must be without fault, and their columns within the rows.
  TreeMargins(const std::vector<Source>& sources, size_t n_features);

  ~TreeMargins();

  size_t size() const;  // tables
  size_t n_features() const;

  // out[i, t] = the margin of row i in table t.
  void operator()(Rows<const float> x, Rows<float> out) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The margins of one table.
void tree_margins(const TreeTable& table, Rows<const float> x, float* out);

}  // namespace ilhash
