// ilhash._core: what Python sees of the C++ core.
//
//   drawing.cpp   drawing.hpp, random.hpp: seeds, permutations without memory
//   graph.cpp     graph.*: signed graphs of one bit's training set, and their blocks
//   zstep.cpp     zstep.*: min-cuts (mincut.*) in turn until nothing changes; pair_loss.*: the loss of KSH, bit by bit
//   vectors.cpp   vector*: kernels over long arrays, one build per instruction set
//   scan.cpp      scan*: search among packed codes, by counting distances
//   cut.cpp       cut.*: what precision at k needs, bit by bit, and for every bit of a pool
//   digits.cpp    digits.*: elastic deformations of small images
//   trees.cpp     trees.*, tree_margins.*: decision trees and their margins; boosting.*: gradient boosted trees on bins
//   texts.cpp     texts.*: ids that are texts
//
// Inputs are never written; the GIL is released around all work (gil.hpp). What the core takes for granted is checked
// here
// (../checks.hpp).
#include "module.hpp"

#include "gil.hpp"

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of ilhash: signed graphs, alternating min-cut, vector kernels.";
  // Modules are imported by the main thread as a rule; where they are not, signals wait until the core is done.
  ilhash::bindings::listen_to_signals();
  nanobind::module_::import_("atexit").attr("register")(nanobind::cpp_function(&ilhash::bindings::leave));
  ilhash::bindings::bind_drawing(m);
  ilhash::bindings::bind_graph(m);
  ilhash::bindings::bind_zstep(m);
  ilhash::bindings::bind_vectors(m);
  ilhash::bindings::bind_svm(m);
  ilhash::bindings::bind_scan(m);
  ilhash::bindings::bind_cut(m);
  ilhash::bindings::bind_digits(m);
  ilhash::bindings::bind_trees(m);
  ilhash::bindings::bind_texts(m);
}
