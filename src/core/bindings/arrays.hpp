// Arrays as Python hands them over, and vectors as Python gets them.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "../checks.hpp"
#include "../vector.hpp"
#include "gil.hpp"

namespace ilhash::bindings {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using WritableVector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
using Table = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using WritableTable = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Rows that may lie apart in memory; as_rows opens them.
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
template <class T>
using WritableMatrix = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

template <class T>
Span<T> span(const Vector<T>& values) {
  return {values.data(), values.shape(0)};
}

template <class T>
Grid<T> grid(const Table<T>& values) {
  return {values.data(), values.shape(0), values.shape(1)};
}

template <class T>
Maybe<Span<T>> maybe_span(const std::optional<Vector<T>>& values) {
  return values ? Maybe<Span<T>>(span(*values)) : std::nullopt;
}

template <class T>
Maybe<Grid<T>> maybe_grid(const std::optional<Table<T>>& values) {
  return values ? Maybe<Grid<T>>(grid(*values)) : std::nullopt;
}

template <class T>
Rows<T> as_rows(const nb::ndarray<T, nb::ndim<2>, nb::device::cpu>& x) {
  require(x.shape(1) <= 1 || x.stride(1) == 1, "the rows of a matrix must be contiguous");
  require(x.shape(0) <= 1 || x.stride(0) >= 0, "the rows of a matrix must not be reversed");
  return {x.data(), static_cast<size_t>(x.stride(0)), x.shape(0), x.shape(1)};
}

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> to_numpy(std::vector<T> values) {
  auto kept = std::make_unique<std::vector<T>>(std::move(values));
  nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  std::vector<T>* const owned = kept.release();
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner);
}

template <class T>
std::vector<T> to_vector(const Vector<T>& values) {
  return std::vector<T>(values.data(), values.data() + values.shape(0));
}

// Something that changes while it is used, for one thread at a time. The GIL is given up before the lock is asked for,
// or a thread that holds the lock and wants the GIL back would wait for ever.
template <class T>
class Guarded {
 public:
  explicit Guarded(T value) : value_(std::move(value)) {}

  template <class Work>
  auto use(const Work& work) {
    const GilReleased released;
    const std::scoped_lock lock(mutex_);
    return work(value_);
  }

 private:
  T value_;
  std::mutex mutex_;
};

}  // namespace ilhash::bindings
