// Tests of boosted trees without Python, to be run under AddressSanitizer and UBSan (`make test-core`). Arrays have
// exactly the size they must have; that the trees are the right ones is checked against a twin in
// tests/test_boosting.py.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "boosting.hpp"
#include "check.hpp"
#include "random.hpp"
#include "tree_margins.hpp"
#include "trees.hpp"

using namespace ilhash;

namespace {

float walked(const TreeTable& table, const float* x) {
  double total = table.bias;
  for (size_t node : table.roots) {
    while (table.left[node] != static_cast<int32_t>(node))
      node = static_cast<size_t>((x[table.feature[node]] <= table.threshold[node] ? table.left : table.right)[node]);
    total += table.value[node];
  }
  return static_cast<float>(total);
}

// Values are numbers of bins, edges lie between them; all 256 bins, features without edges, depths beyond the rows.
void test_boosting(uint32_t n, uint32_t d, uint32_t n_bins, const BoostingOptions& options, uint32_t plus_of_ten) {
  Random random(n * 31 + d + n_bins);
  std::vector<uint32_t> begin{0};
  std::vector<double> edges;
  std::vector<uint8_t> bin(size_t{n} * d);
  std::vector<float> x(size_t{n} * d);
  for (uint32_t j = 0; j < d; ++j) {
    const uint32_t own = j % 3 == 2 ? 1 : n_bins;
    for (uint32_t b = 0; b + 1 < own; ++b) edges.push_back(b + 0.5);
    begin.push_back(static_cast<uint32_t>(edges.size()));
    for (uint32_t i = 0; i < n; ++i) {
      bin[size_t{j} * n + i] = static_cast<uint8_t>(random.below(own));
      x[size_t{i} * d + j] = bin[size_t{j} * n + i];
    }
  }
  std::vector<int8_t> z(n);
  for (auto& bit : z) bit = random.below(10) < plus_of_ten ? 1 : -1;
  std::vector<double> margins(n);
  std::vector<uint8_t> placed(bin.size());
  place_in_bins({x.data(), d, n, d}, begin.data(), edges.data(), placed.data());
  CHECK(placed == bin);
  const BinnedFeatures binned{bin.data(), n, d, begin.data(), edges.data()};
  const TreeTable table = boost(binned, z.data(), options, margins.data());
  CHECK(table.roots.size() == options.n_trees);
  CHECK(fault_of(table, d) == nullptr);
  std::vector<float> found(n);
  tree_margins(table, {x.data(), d, n, d}, found.data());
  double before = 0, after = 0;
  for (uint32_t i = 0; i < n; ++i) {
    CHECK(found[i] == walked(table, x.data() + size_t{i} * d));
    CHECK(found[i] == static_cast<float>(margins[i]));
    before += std::log1p(std::exp(-z[i] * table.bias));
    after += std::log1p(std::exp(-z[i] * margins[i]));
  }
  CHECK(after <= before + 1e-9);
}

void test_many() {
  for (const uint32_t n : {1, 2, 15, 16, 17, 200})
    for (const uint32_t d : {1, 2, 7, 40})
      for (const uint32_t n_bins : {1, 2, 20, 256})
        for (const uint32_t depth : {1, 4, 40})
          for (const uint32_t plus_of_ten : {0, 5, 9, 10})
            test_boosting(n, d, n_bins, {8, depth, 1 + d / 2, 0.2, 0.1, n + depth}, plus_of_ten);
  test_boosting(300, 4, 64, {400, 3, 2, 1.0, 1e-3, 5}, 5);  // margins where the loss is flat
}

// A tree of random shape behind a table's last node: thresholds on, between and beyond the values of rows.
void grow_tree(TreeTable& table, uint32_t n_splits, uint32_t d, Random& random) {
  const auto new_leaf = [&] {
    const auto node = static_cast<int32_t>(table.size());
    table.feature.push_back(0);
    table.left.push_back(node);
    table.right.push_back(node);
    table.threshold.push_back(0);
    table.value.push_back(static_cast<double>(random.below(1000)) / 7 - 70);
    return node;
  };
  std::vector<int32_t> leaves{new_leaf()};
  table.roots.push_back(leaves[0]);
  constexpr double kFar[] = {INFINITY, -INFINITY, 1e300, -1e300, 1e-300, -1e-300, 3.4e38, NAN};
  for (; n_splits > 0; --n_splits) {
    const uint32_t which = random.below(static_cast<uint32_t>(leaves.size()));
    const auto node = static_cast<size_t>(leaves[which]);
    table.feature[node] = static_cast<int32_t>(random.below(d));
    table.threshold[node] = random.below(d == 3 ? 20 : 900) == 0
                                ? kFar[random.below(d == 3 ? 8 : 7)]
                                : static_cast<double>(random.below(600)) / 8 - 30 + 1e-9;
    table.left[node] = leaves[which] = new_leaf();
    table.right[node] = new_leaf();
    leaves.push_back(table.right[node]);
  }
}

// Tables together, in blocks and walked, give what each gives alone: few and many thresholds, more leaves than a byte
// can count, trees of one leaf, values that are not numbers, columns in another order, rows of other rows' matrix.
void test_together(uint32_t n, uint32_t d, uint32_t n_tables, uint32_t n_splits) {
  Random random(n + d * 7 + n_tables * 31 + n_splits);
  const uint32_t width = d + 3;
  std::vector<float> x(size_t{n} * width);
  for (float& value : x) {
    value = static_cast<float>(random.below(600)) / 8 - 30;
    if (random.below(200) == 0) value = random.below(2) ? NAN : (random.below(2) ? INFINITY : -INFINITY);
  }
  std::vector<TreeMargins::Source> sources(n_tables);
  for (TreeMargins::Source& source : sources) {
    source.table.bias = random.below(3);
    for (uint32_t tree = 0; tree < 5; ++tree) grow_tree(source.table, random.below(n_splits + 1), d, random);
    if (random.below(2) == 0)
      for (uint32_t j = 0; j < d; ++j) source.columns.push_back(static_cast<int32_t>(width - 1 - j));
    CHECK(fault_of(source.table, d) == nullptr);
  }
  const TreeMargins together(sources, width);
  CHECK(together.size() == n_tables && together.n_features() == width);
  for (const uint32_t rows : {uint32_t{3}, n, n / 2}) {  // walked, in blocks, and so again
    std::vector<float> found(size_t{rows} * n_tables);
    together({x.data(), width, rows, width}, {found.data(), n_tables, rows, n_tables});
    for (uint32_t i = 0; i < rows; ++i)
      for (uint32_t t = 0; t < n_tables; ++t) {
        std::vector<float> own(x.begin() + size_t{i} * width, x.begin() + size_t{i + 1} * width);
        if (!sources[t].columns.empty()) std::reverse(own.begin(), own.end());
        CHECK(found[size_t{i} * n_tables + t] == walked(sources[t].table, own.data()));
      }
  }
}

void test_many_together() {
  for (const uint32_t n : {511, 512, 519, 520, 1200})
    for (const uint32_t d : {1, 3, 40})
      for (const uint32_t n_splits : {0, 5, 63, 255, 300}) test_together(n, d, 4, n_splits);
  test_together(2000, 500, 3, 60);
}

void test_faults() {
  TreeTable good;
  good.feature = {0, 0, 0};
  good.left = {1, 1, 2};
  good.right = {2, 1, 2};
  good.roots = {0};
  good.threshold = good.value = {0, 0, 0};
  CHECK(fault_of(good, 1) == nullptr);
  CHECK(fault_of(good, 0) != nullptr);
  const auto wrong = [&](auto change) {
    TreeTable table = good;
    change(table);
    CHECK(fault_of(table, 1) != nullptr);
  };
  wrong([](TreeTable& t) { t.left[0] = 0; });
  wrong([](TreeTable& t) { t.right[0] = 3; });
  wrong([](TreeTable& t) { t.left[2] = 1; });
  wrong([](TreeTable& t) { t.feature[0] = 1; });
  wrong([](TreeTable& t) { t.roots[0] = -1; });
  wrong([](TreeTable& t) { t.value.pop_back(); });
}

}  // namespace

int main() {
  test_many();
  test_many_together();
  test_faults();
  return testing::all_passed("trees");
}
