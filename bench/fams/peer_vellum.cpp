// bench/fams/peer_vellum.cpp: the structures in a vellum::AtomicFile.
//
//   vellum-cards   compiled by vellum-clang++
//   vellum-marks   cards, too, marked by hand
//   vellum-pages   the page tracker: compiled without instrumentation
#include <vellum/atomic_file.hpp>

#include "arena.hpp"
#include "mapping.hpp"
#include "structures.hpp"

namespace fams {
namespace {

class Vellum final : public Store {
 public:
  explicit Vellum(const Setting& setting) : setting_(setting) {
    if (setting.name == "vellum-pages") {
      make_ = plain_structure;
    } else if (setting.name == "vellum-marks") {
      make_ = marked_structure;
#ifdef FAMS_INSTRUMENTED
    } else if (setting.name == "vellum-cards") {
      make_ = instrumented_structure;
#endif
    } else {
      unsupported("no vellum-clang++ has compiled " + setting.name);
    }
    if (setting.fresh) make_dense_file(path(), arena_bytes(setting.size));
    open();
    file_.commit();
  }
  Structure& structure() override { return *structure_; }
  void commit() override { file_.commit(); }
  void settle() override { file_.checkpoint(); }
  void close() override {
    structure_.reset();
    file_.close();
  }
  void open() override {
    vellum::AtomicFileOptions options;
    options.tracker =
        setting_.name == "vellum-pages" ? vellum::Tracker::pages : vellum::Tracker::cards;
    options.medium =
        setting_.persistent_memory ? vellum::Medium::persistent_memory : vellum::Medium::disk;
    options.base_address = 0x200000000000;
    file_ = vellum::AtomicFile::open(path(), options);
    structure_ = make_(file_.data(), file_.size_bytes(), setting_.size);
  }

 private:
  std::string path() const { return setting_.directory + "/arena"; }

  Setting setting_;
  MakeStructure make_ = nullptr;
  vellum::AtomicFile file_;
  std::unique_ptr<Structure> structure_;
};

}  // namespace

std::unique_ptr<Store> make_vellum(const Setting& setting) {
  return std::make_unique<Vellum>(setting);
}

}  // namespace fams
