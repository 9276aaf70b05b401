// One function for each file of bindings: what it adds to the module.
#pragma once
#include <nanobind/nanobind.h>

namespace ilhash::bindings {

void bind_drawing(nanobind::module_& m);
void bind_graph(nanobind::module_& m);
void bind_zstep(nanobind::module_& m);
void bind_vectors(nanobind::module_& m);
void bind_svm(nanobind::module_& m);
void bind_scan(nanobind::module_& m);
void bind_cut(nanobind::module_& m);
void bind_digits(nanobind::module_& m);
void bind_trees(nanobind::module_& m);
void bind_texts(nanobind::module_& m);

}  // namespace ilhash::bindings
