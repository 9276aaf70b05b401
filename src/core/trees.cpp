#include "trees.hpp"

#include <algorithm>

namespace ilhash {

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

}  // namespace ilhash
