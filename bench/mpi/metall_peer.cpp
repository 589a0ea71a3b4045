// Metall over MPI: its own adaptor, whose snapshot copies each rank's files and ANDs the results;
// and the same program with Vellum's adaptor.
#include "peer.hpp"

#ifdef BENCH_METALL
#include <vellum/metall_mpi.hpp>

#include <metall/metall.hpp>
#include <metall/utility/metall_mpi_adaptor.hpp>
#endif

namespace bench {

#ifdef BENCH_METALL

namespace {

template <typename Adaptor>
class MetallPeer final : public Peer {
 public:
  MetallPeer(const std::string& root, std::uint64_t bytes)
      : root_(root), adaptor_(metall::create_only, root) {
    data_ = adaptor_.get_local_manager().template construct<std::uint64_t>("words")[bytes / 8]();
  }
  void* data() override { return data_; }
  bool keep(std::uint64_t round) override { return adaptor_.snapshot(path_of(round)); }
  void remove(std::uint64_t round) override {
    // Vellum's versions stay: they have taken hardly any time and no space.
    if constexpr (std::is_same_v<Adaptor, metall::utility::metall_mpi_adaptor>) {
      Adaptor::remove(path_of(round));
    }
  }

 private:
  std::string path_of(std::uint64_t round) const { return root_ + "-" + std::to_string(round); }
  const std::string root_;
  Adaptor adaptor_;
  void* data_ = nullptr;
};

}  // namespace

std::unique_ptr<Peer> make_metall(const std::string& directory, std::uint64_t bytes) {
  return std::make_unique<MetallPeer<metall::utility::metall_mpi_adaptor>>(directory + "/plain",
                                                                           bytes);
}
std::unique_ptr<Peer> make_metall_on_vellum(const std::string& directory, std::uint64_t bytes) {
  return std::make_unique<MetallPeer<vellum::metall_mpi_adaptor>>(directory + "/vellum", bytes);
}

#else

std::unique_ptr<Peer> make_metall(const std::string&, std::uint64_t) { return nullptr; }
std::unique_ptr<Peer> make_metall_on_vellum(const std::string&, std::uint64_t) { return nullptr; }

#endif

}  // namespace bench
