// Checks of what Python hands over. Each throws std::invalid_argument, which Python sees as a ValueError; none needs
// the GIL.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "../vector.hpp"
#include "arrays.hpp"

namespace ilhash::bindings {

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// For the functions fault_of, which return nullptr where nothing is wrong.
inline void require_no_fault(const char* fault) { require(fault == nullptr, fault); }

template <class T>
Rows<T> as_rows(const nb::ndarray<T, nb::ndim<2>, nb::device::cpu>& x) {
  require(x.shape(1) <= 1 || x.stride(1) == 1, "the rows of a matrix must be contiguous");
  require(x.shape(0) <= 1 || x.stride(0) >= 0, "the rows of a matrix must not be reversed");
  return {x.data(), static_cast<size_t>(x.stride(0)), x.shape(0), x.shape(1)};
}

// All values must lie in 0 .. limit - 1.
template <class Array>
void require_below(const Array& values, size_t limit, const char* message) {
  const auto* const data = values.data();
  const size_t size = values.size();
  uint64_t largest = 0;  // without a branch, so that the loop is vectorised; a negative value becomes a very large one
  for (size_t i = 0; i < size; ++i) largest = std::max(largest, static_cast<uint64_t>(data[i]));
  require(size == 0 || largest < limit, message);
}

template <class Array>
void require_signs(const Array& values, const char* message) {
  const auto* const data = values.data();
  const size_t size = values.size();
  bool signs = true;
  for (size_t i = 0; i < size; ++i) signs &= data[i] == 1 || data[i] == -1;
  require(signs, message);
}

// Returns the number of rows of a matrix in CSR form; `message` is for a row_begin that ends elsewhere than its
// entries.
template <class T>
size_t require_csr(const Vector<T>& row_begin, size_t n_entries, const char* message) {
  require(row_begin.shape(0) > 0, "row_begin must have one entry more than there are rows");
  const size_t n = row_begin.shape(0) - 1;
  require(static_cast<uint64_t>(row_begin(n)) == n_entries, message);
  require(row_begin(0) == 0 && std::is_sorted(row_begin.data(), row_begin.data() + n + 1),
          "row_begin must begin at 0 and must not descend");
  return n;
}

// Returns the number of points. A flow over an arc without its opposite would be written outside the graph.
template <class T>
uint32_t require_symmetric(const Vector<uint32_t>& row_begin, const Vector<uint32_t>& columns,
                           const Vector<T>& couplings) {
  constexpr const char* kLengths = "row_begin, columns and couplings must agree in length";
  const auto n = static_cast<uint32_t>(require_csr(row_begin, columns.shape(0), kLengths));
  require(columns.shape(0) == couplings.shape(0), kLengths);
  for (uint32_t i = 0; i < n; ++i)
    for (uint32_t a = row_begin(i); a < row_begin(i + 1); ++a) {
      require(columns(a) < n && columns(a) != i, "a column must be another point of the graph");
      require(a == row_begin(i) || columns(a - 1) < columns(a), "columns must be sorted and distinct in each row");
    }
  // Columns are sorted, so row by row the entries that mirror row i are met in the order of their own rows.
  std::vector<uint32_t> next(row_begin.data(), row_begin.data() + n);
  for (uint32_t i = 0; i < n; ++i)
    for (uint32_t a = row_begin(i); a < row_begin(i + 1); ++a) {
      const uint32_t mirror = next[columns(a)]++;
      require(mirror < row_begin(columns(a) + 1) && columns(mirror) == i && couplings(mirror) == couplings(a),
              "couplings must be symmetric");
    }
  return n;
}

}  // namespace ilhash::bindings
