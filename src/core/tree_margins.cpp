#include "tree_margins.hpp"

#include <algorithm>
#include <atomic>
#include <cfloat>
#include <cmath>
#include <iterator>
#include <mutex>
#include <utility>

#include "tree_kernels.hpp"

namespace ilhash {
namespace {

constexpr size_t kWorthBlocks = 512;   // rows, asked for so far: to make the blocks takes as long as to walk some
constexpr size_t kWorthTile = 8;       // rows of a tile: fewer are walked
constexpr size_t kMostTiles = 8;       // that a table's steps are read for
constexpr size_t kBinBytes = 1 << 18;  // of these tiles, which lie in the second cache

// Of a tile: one byte for each row, in whole lines of the cache.
struct alignas(64) Line {
  uint8_t of_row[kTreeRows];
};

struct Threshold {
  int32_t column;
  float value;

  friend bool operator<(const Threshold& a, const Threshold& b) {
    return a.column != b.column ? a.column < b.column : a.value < b.value;
  }
  friend bool operator==(const Threshold& a, const Threshold& b) { return a.column == b.column && a.value == b.value; }
};

// The largest float that is not above t: x <= t and x <= it are the same for every float x.
float float_below(double t) {
  if (std::isnan(t)) return NAN;
  if (t < -static_cast<double>(FLT_MAX)) return -INFINITY;
  if (t >= static_cast<double>(FLT_MAX)) return std::isinf(t) ? INFINITY : FLT_MAX;
  const auto near = static_cast<float>(t);
  return static_cast<double>(near) > t ? std::nextafterf(near, -INFINITY) : near;
}

// -------------------------------------------------------------------------------- from node to node

struct Node {
  float threshold;
  int32_t column;
  int32_t child[2];  // left, right
};

struct Walk {
  std::vector<Node> nodes;
  std::vector<double> values;
  std::vector<int32_t> roots, heights;  // the height of the whole tree below a root
  double bias;

  explicit Walk(const TreeMargins::Source& source)
      : nodes(source.table.size()), values(source.table.value), roots(source.table.roots), bias(source.table.bias) {
    const TreeTable& table = source.table;
    for (size_t n = 0; n < nodes.size(); ++n) {
      const bool leaf = table.left[n] == static_cast<int32_t>(n);
      const int32_t feature = leaf ? 0 : table.feature[n];
      const int32_t column = leaf || source.columns.empty() ? feature : source.columns[static_cast<size_t>(feature)];
      nodes[n] = {float_below(table.threshold[n]), column, {table.left[n], table.right[n]}};
    }
    const std::vector<int32_t> height = heights_of(table);
    for (const int32_t root : roots) heights.push_back(height[static_cast<size_t>(root)]);
  }

  bool leaf(size_t n) const { return nodes[n].child[0] == static_cast<int32_t>(n); }

  // A leaf leads to itself, so all rows may take as many steps as the longest way needs: no branch depends on the data,
  // and the walks of several rows overlap.
  void margins(Rows<const float> x, float* out, size_t stride) const {
    constexpr size_t kAtOnce = 16;
    for (size_t first = 0; first < x.n_rows; first += kAtOnce) {
      const size_t n = std::min(kAtOnce, x.n_rows - first);
      double total[kAtOnce];
      int32_t at[kAtOnce];
      std::fill_n(total, n, bias);
      for (size_t tree = 0; tree < roots.size(); ++tree) {
        std::fill_n(at, n, roots[tree]);
        for (int32_t step = heights[tree]; step > 0; --step)
          for (size_t i = 0; i < n; ++i) {
            const Node& node = nodes[static_cast<size_t>(at[i])];
            const float value = x.data[(first + i) * x.row_stride + static_cast<size_t>(node.column)];
            at[i] = node.child[!(value <= node.threshold)];
          }
        for (size_t i = 0; i < n; ++i) total[i] += values[static_cast<size_t>(at[i])];
      }
      for (size_t i = 0; i < n; ++i) out[(first + i) * stride] = static_cast<float>(total[i]);
    }
  }
};

// -------------------------------------------------------------------------------- tiles of rows

// A table as steps. Those of the trees, and the values of their leaves, stand one behind the other.
struct Plan {
  struct Tree {
    uint32_t n_steps, n_leaves;
  };
  std::vector<Tree> trees;
  std::vector<TreeStep> steps;
  std::vector<Threshold> thresholds;  // of the steps
  std::vector<double> values;
  bool fits = true;  // a byte can count the leaves, and thresholds are numbers

  explicit Plan(const Walk& walk) {
    std::vector<uint16_t> slot(walk.nodes.size(), kNone);
    for (size_t k = 0; k < walk.roots.size() && fits; ++k) add_tree(walk, static_cast<size_t>(walk.roots[k]), slot);
  }

 private:
  static constexpr uint16_t kNone = UINT16_MAX, kAwaited = UINT16_MAX - 1;

  // Children stand behind their parents, so from the back each node comes after its children.
  void add_tree(const Walk& walk, size_t root, std::vector<uint16_t>& slot) {
    std::vector<size_t> nodes{root};
    slot[root] = kAwaited;
    for (size_t k = 0; k < nodes.size(); ++k)
      for (const int32_t child : walk.nodes[nodes[k]].child)
        if (uint16_t& own = slot[static_cast<size_t>(child)]; own == kNone) {
          own = kAwaited;
          nodes.push_back(static_cast<size_t>(child));
        }
    std::sort(nodes.rbegin(), nodes.rend());
    Tree tree{0, 0};
    for (const size_t n : nodes) ++(walk.leaf(n) ? tree.n_leaves : tree.n_steps);
    fits = tree.n_leaves <= kMostLeaves && tree.n_steps <= kMostLeaves;
    if (fits) write_tree(walk, nodes, slot);
    trees.push_back(tree);
    for (const size_t n : nodes) slot[n] = kNone;
  }

  void write_tree(const Walk& walk, const std::vector<size_t>& nodes, std::vector<uint16_t>& slot) {
    uint16_t n_leaves = 0, n_steps = kMostLeaves;
    for (const size_t n : nodes) {
      if (walk.leaf(n)) {
        slot[n] = n_leaves++;
        values.push_back(walk.values[n]);
        continue;
      }
      const Node& node = walk.nodes[n];
      if (std::isnan(node.threshold)) fits = false;
      const auto side = [&](size_t k) { return slot[static_cast<size_t>(node.child[k])] * uint32_t{sizeof(Line)}; };
      steps.push_back({0, side(0), side(1), 0});
      thresholds.push_back({node.column, node.threshold});
      slot[n] = n_steps++;
    }
  }
};

std::vector<Threshold> distinct(std::vector<Threshold> thresholds) {
  std::sort(thresholds.begin(), thresholds.end());
  thresholds.erase(std::unique(thresholds.begin(), thresholds.end()), thresholds.end());
  return thresholds;
}

bool can_be_counted(const std::vector<Threshold>& distinct) {
  if (distinct.size() >= UINT32_MAX / sizeof(Line)) return false;
  for (size_t k = kMostEdges; k < distinct.size(); ++k)
    if (distinct[k].column == distinct[k - kMostEdges].column) return false;
  return true;
}

// Tables that have few enough thresholds together.
class Block {
 public:
  // Takes a table, unless there are too many thresholds then.
  bool take(size_t number, double bias, Plan& plan) {
    const std::vector<Threshold> own = distinct(plan.thresholds);
    std::vector<Threshold> all;
    std::set_union(own.begin(), own.end(), thresholds_.begin(), thresholds_.end(), std::back_inserter(all));
    if (!can_be_counted(all)) return false;
    thresholds_ = std::move(all);
    tables_.push_back({number, bias, std::move(plan)});
    return true;
  }

  // To be called when all tables were taken.
  void finish() {
    for (const Threshold& one : thresholds_) {
      if (columns_.empty() || columns_.back() != one.column) {
        columns_.push_back(one.column);
        begin_.push_back(static_cast<uint32_t>(edges_.size()));
      }
      edges_.push_back(one.value);
    }
    begin_.push_back(static_cast<uint32_t>(edges_.size()));
    for (Table& table : tables_) {
      for (size_t k = 0; k < table.plan.steps.size(); ++k) number(table.plan.thresholds[k], table.plan.steps[k]);
      table.plan.thresholds = {};
    }
    thresholds_ = {};
  }

  void margins(Rows<const float> x, Rows<float> out) const {
    const size_t n_features = columns_.size();
    const size_t n_tiles = std::clamp(kBinBytes / (n_features + 1) / sizeof(Line), size_t{1}, kMostTiles);
    std::vector<Line> bins(n_tiles * n_features), slots(2 * kMostLeaves);
    for (size_t k = 0; k < kMostLeaves; ++k) std::fill_n(slots[k].of_row, kTreeRows, static_cast<uint8_t>(k));
    const TreeEdges edges{columns_.data(), begin_.data(), n_features, edges_.data()};
    for (size_t first = 0; first < x.n_rows; first += n_tiles * kTreeRows) {
      const size_t end = std::min(x.n_rows, first + n_tiles * kTreeRows);
      const auto bins_of = [&](size_t row) { return bins[(row - first) / kTreeRows * n_features].of_row; };
      for (size_t row = first; n_features > 0 && row < end; row += kTreeRows)
        tree_kernels().place({x.data + row * x.row_stride, x.row_stride, std::min(kTreeRows, end - row), x.n_columns},
                             edges, bins_of(row));
      for (const Table& table : tables_)
        for (size_t row = first; row < end; row += kTreeRows) {
          double totals[kTreeRows];
          add_up(table, n_features > 0 ? bins_of(row) : nullptr, slots[0].of_row, totals);
          for (size_t i = row; i < std::min(end, row + kTreeRows); ++i)
            out.data[i * out.row_stride + table.number] = static_cast<float>(totals[i - row]);
        }
    }
  }

 private:
  struct Table {
    size_t number;  // of the tables
    double bias;
    Plan plan;
  };

  void number(const Threshold& threshold, TreeStep& step) const {
    const auto feature = std::lower_bound(columns_.begin(), columns_.end(), threshold.column) - columns_.begin();
    const auto first = edges_.begin() + begin_[static_cast<size_t>(feature)];
    const auto last = edges_.begin() + begin_[static_cast<size_t>(feature) + 1];
    step.bins = static_cast<uint32_t>(static_cast<size_t>(feature) * sizeof(Line));
    step.edge = static_cast<uint32_t>(std::lower_bound(first, last, threshold.value) - first);
  }

  static void add_up(const Table& table, const uint8_t* bins, uint8_t* slots, double* totals) {
    const TreeStep* steps = table.plan.steps.data();
    const double* values = table.plan.values.data();
    std::fill_n(totals, kTreeRows, table.bias);
    for (const Plan::Tree& tree : table.plan.trees) {
      tree_kernels().add_leaves(bins, steps, tree.n_steps, values, slots, totals);
      steps += tree.n_steps;
      values += tree.n_leaves;
    }
  }

  std::vector<Table> tables_;
  std::vector<Threshold> thresholds_;  // of all of them, ascending, until they are numbered
  std::vector<int32_t> columns_;       // of the features that have thresholds
  std::vector<uint32_t> begin_;
  std::vector<float> edges_;
};

}  // namespace

// -------------------------------------------------------------------------------- both

struct TreeMargins::State {
  std::vector<Walk> walks;
  size_t n_features;
  std::atomic<size_t> n_asked{0};
  std::once_flag once;
  std::vector<Block> blocks;
  std::vector<size_t> walked;  // tables that are in no block

  void make_blocks() {
    std::vector<Block> made;  // kept when all are: where memory ends, another call begins anew
    std::vector<size_t> left;
    for (size_t t = 0; t < walks.size(); ++t) {
      Plan plan(walks[t]);
      if (plan.fits && !made.empty() && made.back().take(t, walks[t].bias, plan)) continue;
      Block fresh;
      if (plan.fits && fresh.take(t, walks[t].bias, plan))
        made.push_back(std::move(fresh));
      else
        left.push_back(t);
    }
    for (Block& block : made) block.finish();
    blocks = std::move(made);
    walked = std::move(left);
  }
};

TreeMargins::TreeMargins(const std::vector<Source>& sources, size_t n_features) : state_(std::make_unique<State>()) {
  state_->n_features = n_features;
  for (const Source& source : sources) state_->walks.emplace_back(source);
}

TreeMargins::~TreeMargins() = default;

size_t TreeMargins::size() const { return state_->walks.size(); }
size_t TreeMargins::n_features() const { return state_->n_features; }

void TreeMargins::operator()(Rows<const float> x, Rows<float> out) const {
  State& state = *state_;
  const bool in_blocks = state.n_asked.fetch_add(x.n_rows) + x.n_rows >= kWorthBlocks;
  if (in_blocks) std::call_once(state.once, [&] { state.make_blocks(); });
  const size_t rest = x.n_rows % kTreeRows < kWorthTile ? x.n_rows % kTreeRows : 0;
  const size_t n_tiled = in_blocks ? x.n_rows - rest : 0;
  const auto walk = [&](size_t t, size_t first) {
    state.walks[t].margins({x.data + first * x.row_stride, x.row_stride, x.n_rows - first, x.n_columns},
                           out.data + first * out.row_stride + t, out.row_stride);
  };
  if (n_tiled > 0) {
    for (const Block& block : state.blocks) block.margins({x.data, x.row_stride, n_tiled, x.n_columns}, out);
    for (const size_t t : state.walked) walk(t, 0);
  }
  if (n_tiled == x.n_rows) return;
  for (size_t t = 0; t < state.walks.size(); ++t) walk(t, n_tiled);
}

void tree_margins(const TreeTable& table, Rows<const float> x, float* out) {
  TreeMargins({{table, {}}}, x.n_columns)(x, {out, 1, x.n_rows, 1});
}

}  // namespace ilhash
