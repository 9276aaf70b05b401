// The GIL while the core works.
#pragma once
#include <Python.h>

namespace ilhash::bindings {

// Gives up the GIL, and takes it back at the end.
//
// A thread that asks for the GIL of an interpreter that is shutting down is ended by Python, by an unwinding that no
// destructor and no noexcept function survives: the process would abort. That happens to the daemon threads of a pool
// when Ctrl-C ends the program while they are at work. They wait for the end of the process here instead.
class GilReleased {
 public:
  GilReleased();
  ~GilReleased();
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

// At Python's exit: from now on no other thread comes back from the core; waits for those that are just doing so.
void leave();

// Lets the core look for signals (interruption.hpp), in the thread that Python gives them to.
void listen_to_signals();

}  // namespace ilhash::bindings
