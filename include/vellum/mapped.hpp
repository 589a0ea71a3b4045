// vellum/mapped.hpp: engine mapped, whose memory is a plain file.
//
// The file, the branch's image, holds the last commit. RegionOptions::image names it and thereby
// chooses the engine; without a name it is the file of the last opening, or else one in the store.
// Privateer 1.0 works on such a mapping (CLUSTER 2021).
//
//   vellum::RegionOptions options;
//   options.image.path = "/data/table.bin";
//   auto region = store.open_or_create_region("table", 1 << 30, options);
//
//  - The kernel loads pages, and its page cache shares them with every process that maps or reads
//    the file. They are not verified: if a failing disk alters the file, the region reads the
//    altered bytes. System calls accept pointers to any page.
//  - A written page becomes private to this process until Region::drop_copies(), rollback() or
//    close(). The image is updated after each commit is durable. If that fails (a full disk), the
//    commit has happened nevertheless, a line is printed on standard error, and later commits and
//    openings try again.
//  - After a crash, opening restores the image to the last commit: it compares the pages that may
//    differ with the store.
//  - A file that another program has created, or has changed since the image was closed, stays as
//    it is: the region opens with its content, and the next commit stores the differences. A longer
//    file makes the region larger.
//  - A file whose size is no multiple of 4096 keeps its size, as Region::file_bytes(), until
//    something is stored past its end. So does any file of a branch that already has such a size;
//    that file may also have become shorter, and its lost part is zero.
//  - Opening throws, with the file's name: invalid_argument for any other file that has become
//    shorter; already_exists for a file that has changed while the branch had commits by another
//    engine, for another file in its place after a crash, and for a file with content for a branch
//    with other content. An empty file is filled from the branch.
//  - No other program may write the file while the region is open. The region locks it by flock(2),
//    or throws Errc::busy. If a program cuts it shorter meanwhile, touching the lost pages is a
//    SIGBUS. On tmpfs, reading a hole takes a page; when none is left, that is a SIGBUS.
//  - Region::resize_file(): the image has exactly this size, at once when it becomes longer, and
//    with the next commit when it becomes shorter. Pages of the region that lie wholly past its end
//    cannot be touched (SIGBUS) until the file is longer again.
//  - The kernel does the paging: RegionOptions::fault_bytes and working_set have no effect, and
//    Region::advise() is madvise(2), with MADV_COLD for dont_need.
//  - With tracker cards, stores that were not marked are found as well, by their pages.
//  - Read-only versions are opened with another engine.
#ifndef VELLUM_MAPPED_HPP
#define VELLUM_MAPPED_HPP

#include <string>

namespace vellum {

struct ImageOptions {
  // Empty: the file of the last opening, or else one in the store.
  std::string path;
  // The region opens with the content of the file at `path`, whatever the branch had. This includes
  // a file that is empty, has become shorter, or is another file than before a crash; without this
  // option the first is filled and the other two are refused. A missing file is still created from
  // the branch. For a program that may remove its file and create it again.
  bool is_content = false;
};

}  // namespace vellum

#endif  // VELLUM_MAPPED_HPP
