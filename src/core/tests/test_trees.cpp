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
  test_faults();
  return testing::all_passed("trees");
}
