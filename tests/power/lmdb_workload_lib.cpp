// LMDB: as a control, in its default mode; and in its fastest mode, under `vellum run`.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include <vellum/store.hpp>

#include "base/temp_directory.hpp"
#include "power/programs/lmdb_database.hpp"
#include "power/workload_lib.hpp"

namespace vellum::power {

namespace {

// Throws the command's standard error.
void must_run(const std::string& command) {
  std::FILE* const output = popen((command + " 2>&1").c_str(), "r");
  if (output == nullptr) fail_with_errno("popen");
  std::string said;
  char part[512];
  while (std::fgets(part, sizeof part, output) != nullptr) said += part;
  if (pclose(output) != 0) throw std::runtime_error(command + ": " + said);
}

void check_database(const std::string& file, const Allowed& allowed) {
  const std::uint64_t found = LmdbDatabase(file, MDB_RDONLY | MDB_NOLOCK).checked_number();
  if (found >= allowed.returned && found <= allowed.begun) return;
  throw std::runtime_error(fmt::format("LMDB: transaction {} is the last", found));
}

class LmdbWorkload : public Workload {
 public:
  LmdbWorkload(std::uint64_t seed, std::uint64_t transactions, bool flushed)
      : seed_(seed), transactions_(transactions), mode_(flushed ? "safe" : "unflushed") {}
  const char* name() const override { return "LMDB"; }

  void run(const Site& site) override { must_run(command(site)); }

  void check(const std::string& directory, const Allowed& allowed) override {
    try {
      check_database(file(directory), allowed);
    } catch (const std::exception&) {
      if (allowed.returned != 0) throw;  // LMDB creates its files in several steps
    }
  }

 protected:
  std::string file(const std::string& directory) const { return directory + "/database"; }
  std::string command(const Site& site) const {
    return fmt::format("{} {} {} {} {} {}", VELLUM_LMDB_TRANSACTIONS, file(site.directory), mode_,
                       seed_, transactions_, site.progress_file.get());
  }

  std::uint64_t seed_, transactions_;
  const char* mode_;
};

class RunWorkload : public LmdbWorkload {
 public:
  RunWorkload(std::uint64_t seed, std::uint64_t transactions)
      : LmdbWorkload(seed, transactions, true) {
    mode_ = "unsafe";
  }
  const char* name() const override { return "vellum run"; }

  void run(const Site& site) override { must_run(vellum_run(site.directory, command(site))); }

  void check(const std::string& directory, const Allowed& allowed) override {
    try {
      check_store(directory, allowed);
    } catch (const Error& e) {
      // LMDB promises nothing before the first flush has returned.
      if (e.code() != Errc::not_found && e.code() != Errc::not_a_store) throw;
      if (allowed.returned != 0) throw;
      return;
    }
    if (allowed.choice % 4 != 0) return;
    must_run(vellum_run(directory, "true"));  // writes the last commit to the file
    if (allowed.returned != 0) check_database(file(directory), allowed);
  }

 private:
  static std::string store(const std::string& directory) { return directory + "/s"; }
  std::string vellum_run(const std::string& directory, const std::string& program) const {
    return fmt::format("{} run --store {} --file {} -- {}", VELLUM_CLI, store(directory),
                       file(directory), program);
  }

  void check_store(const std::string& directory, const Allowed& allowed) const {
    const Store opened = Store::open(store(directory));
    VerifyOptions options;
    options.read_data = true;
    const VerifyReport report = opened.verify(options);
    if (!report.damages.empty()) {
      const auto& first = report.damages.front();
      throw std::runtime_error(fmt::format("verify: {}: {}", first.object, first.reason));
    }
    const test::TempDirectory exported(test::memory_directory());
    opened.export_file("main", exported / "database");
    if (allowed.returned != 0) check_database(exported / "database", allowed);
  }
};

}  // namespace

std::unique_ptr<Workload> run_workload(std::uint64_t seed, std::uint64_t transactions) {
  return std::make_unique<RunWorkload>(seed, transactions);
}

std::unique_ptr<Workload> lmdb_workload(std::uint64_t seed, std::uint64_t transactions,
                                        bool flushed) {
  return std::make_unique<LmdbWorkload>(seed, transactions, flushed);
}

}  // namespace vellum::power
