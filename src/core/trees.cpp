#include "trees.hpp"

#include <algorithm>

namespace ilhash {
namespace {

struct Node {
  double threshold;
  int32_t feature;
  int32_t child[2];  // left, right
};

}  // namespace

const char* fault_of(const TreeTable& table, size_t n_features) {
  const size_t size = table.size();
  if (table.threshold.size() != size || table.left.size() != size || table.right.size() != size ||
      table.value.size() != size)
    return "the columns of a table of trees must have the same length";
  if (size > INT32_MAX) return "a table of trees must have fewer than 2^31 nodes";
  const auto inside = [size](int32_t n) { return n >= 0 && static_cast<size_t>(n) < size; };
  if (!std::all_of(table.roots.begin(), table.roots.end(), inside)) return "a root must be a node of the table";
  for (size_t n = 0; n < size; ++n) {
    const int32_t own = static_cast<int32_t>(n), left = table.left[n], right = table.right[n];
    if (left == own && right == own) continue;
    if (table.feature[n] < 0 || static_cast<size_t>(table.feature[n]) >= n_features)
      return "a feature of a tree is out of range";
    if (left <= own || right <= own || !inside(left) || !inside(right))
      return "the children of a node must stand behind it in the table";
  }
  return nullptr;
}

// Children stand behind their parents, so from the back each node comes after its children.
std::vector<int32_t> heights_of(const TreeTable& table) {
  std::vector<int32_t> height(table.size(), 0);
  for (size_t n = table.size(); n-- > 0;)
    if (table.left[n] != static_cast<int32_t>(n))
      height[n] = 1 + std::max(height[static_cast<size_t>(table.left[n])], height[static_cast<size_t>(table.right[n])]);
  return height;
}

// A leaf leads to itself, so all rows may take as many steps as the longest way needs: no branch depends on the data,
// and the walks of several rows overlap.
void tree_margins(const TreeTable& table, Rows<const float> x, float* out) {
  constexpr size_t kAtOnce = 16;
  const std::vector<int32_t> height = heights_of(table);
  std::vector<Node> nodes(table.size());
  for (size_t n = 0; n < nodes.size(); ++n) {
    const bool leaf = table.left[n] == static_cast<int32_t>(n);
    nodes[n] = {table.threshold[n], leaf ? 0 : table.feature[n], {table.left[n], table.right[n]}};
  }
  for (size_t first = 0; first < x.n_rows; first += kAtOnce) {
    const size_t n = std::min(kAtOnce, x.n_rows - first);
    double total[kAtOnce];
    int32_t at[kAtOnce];
    std::fill_n(total, n, table.bias);
    for (const int32_t root : table.roots) {
      std::fill_n(at, n, root);
      for (int32_t step = height[static_cast<size_t>(root)]; step > 0; --step)
        for (size_t i = 0; i < n; ++i) {
          const Node& node = nodes[static_cast<size_t>(at[i])];
          const float value = x.data[(first + i) * x.row_stride + static_cast<size_t>(node.feature)];
          at[i] = node.child[!(static_cast<double>(value) <= node.threshold)];
        }
      for (size_t i = 0; i < n; ++i) total[i] += table.value[static_cast<size_t>(at[i])];
    }
    for (size_t i = 0; i < n; ++i) out[first + i] = static_cast<float>(total[i]);
  }
}

}  // namespace ilhash
