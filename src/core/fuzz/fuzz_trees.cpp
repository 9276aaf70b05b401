// Tables of trees: those without fault give the margins of a walk from node to node.
#include <cmath>

#include "input.hpp"

using namespace ilhash;
using namespace ilhash::fuzz;

namespace {

TreeTable table_of(Input& in) {
  TreeTable table;
  const auto n = static_cast<int32_t>(in.below(40));
  for (int32_t node = 0; node < n; ++node) {
    const bool leaf = node + 1 >= n || in.flag();
    const auto behind = [&] { return node + 1 + static_cast<int32_t>(in.below(static_cast<size_t>(n - node - 1))); };
    table.left.push_back(leaf ? node : behind());
    table.right.push_back(leaf ? node : behind());
    table.feature.push_back(static_cast<int32_t>(in.below(4)));
    table.threshold.push_back(in.flag() ? in.take<double>() : in.take<int8_t>());
    table.value.push_back(in.flag() ? in.take<double>() : in.take<int8_t>());
  }
  for (size_t trees = n ? in.below(5) : 0; trees > 0; --trees)
    table.roots.push_back(static_cast<int32_t>(in.below(static_cast<size_t>(n))));
  in.spoil(table.left);
  in.spoil(table.right);
  in.spoil(table.feature);
  in.spoil(table.threshold);
  in.spoil(table.value);
  in.spoil(table.roots);
  table.bias = in.take<float>();
  return table;
}

float walked(const TreeTable& table, const float* x) {
  double total = table.bias;
  for (const int32_t root : table.roots) {
    auto node = static_cast<size_t>(root);
    while (table.left[node] != static_cast<int32_t>(node)) {
      const double value = static_cast<double>(x[table.feature[node]]);
      node = static_cast<size_t>((value <= table.threshold[node] ? table.left : table.right)[node]);
    }
    total += table.value[node];
  }
  return static_cast<float>(total);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in(data, size);
  return unless_refused([&] {
    const TreeTable table = table_of(in);
    const size_t n_features = 1 + in.below(5), n_rows = in.below(40), stride = n_features + in.below(3);
    require_no_fault(fault_of(table, n_features));
    const std::vector<float> x = in.many<float>(n_rows ? (n_rows - 1) * stride + n_features : 0);
    std::vector<float> margins(n_rows);
    tree_margins(table, {x.data(), stride, n_rows, n_features}, margins.data());
    for (size_t i = 0; i < n_rows; ++i) {
      const float twin = walked(table, x.data() + i * stride);
      expect(margins[i] == twin || (std::isnan(margins[i]) && std::isnan(twin)), "margins are those of a walk");
    }
    std::vector<float> many;  // so often that they are computed in blocks
    for (size_t i = 0; n_rows > 0 && i < 600; ++i)
      many.insert(many.end(), x.begin() + static_cast<std::ptrdiff_t>(i % n_rows * stride),
                  x.begin() + static_cast<std::ptrdiff_t>(i % n_rows * stride + n_features));
    std::vector<float> again(many.size() / n_features);
    tree_margins(table, {many.data(), n_features, again.size(), n_features}, again.data());
    for (size_t i = 0; i < again.size(); ++i)
      expect(again[i] == margins[i % n_rows] || std::isnan(again[i]), "blocks give the margins of a walk");
    const size_t max_depth = in.below(6);
    check_trees(table, n_features, max_depth);
    for (const int32_t root : table.roots)
      expect(static_cast<size_t>(heights_of(table)[static_cast<size_t>(root)]) <= max_depth, "no tree is deeper");
  });
}
