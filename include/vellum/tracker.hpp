// vellum/tracker.hpp: how a commit finds stores to memory.
//
// Pages: asynchronous write protection (userfaultfd(2), ioctl_userfaultfd(2), PAGEMAP_SCAN) or
// mprotect(2). Cards: marks that a store's own code sets, as in the write barriers of generational
// garbage collectors.
#ifndef VELLUM_TRACKER_HPP
#define VELLUM_TRACKER_HPP

namespace vellum {

enum class Tracker {
  pages,  // by the kernel, whole pages, which commit() compares with their old content: any program
  cards,  // by marks after stores (vellum/cards.h): a program compiled with vellum-clang, or one
          // that calls vellum_mark(). A store that is not marked is lost.
  cards_and_pages,  // both: marks, and pages with stores that were not marked. Nothing is lost.
};

}  // namespace vellum

#endif  // VELLUM_TRACKER_HPP
