// Branches and snapshots share one name space; malformed and taken names are refused, and nothing
// changes.
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class Names : public StoreTest {
 protected:
  static std::vector<std::string> malformed() {
    return {"",
            ".",
            "..",
            ".hidden",
            "-option",
            "a/b",
            "../up",
            "/etc/x",
            "with space",
            "new\nline",
            std::string("nul\0x", 5),
            "bell\a",
            "a*b",
            "\xff\xfe",
            std::string(201, 'x')};
  }
};

TEST_P(Names, WellFormedNamesAreAccepted) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  for (const std::string& name : {std::string("a"), std::string("1.2_3+4-5"), std::string("übung"),
                                  std::string("日本"), std::string(200, 'x'), std::string("v.")}) {
    word_at(region, 0) += 1;
    region.snapshot(name);
    EXPECT_TRUE(store.contains(name));
    EXPECT_EQ(word_at(store.open_version(name, options()), 0), word_at(region, 0)) << name;
    EXPECT_EQ(Store::open(path()).version(name).name, name);
  }
}

TEST_P(Names, MalformedNamesAreRefusedAndNothingChanges) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  word_at(region, 0) = 1;
  region.snapshot("s");
  for (const auto& name : malformed()) {
    word_at(region, 0) += 1;
    EXPECT_ERRC(region.snapshot(name), Errc::invalid_argument);
    EXPECT_EQ(region.sequence(), 1u) << "nothing is committed by a refused snapshot";
    EXPECT_ERRC(store.create_region(name, kMiB, options()), Errc::invalid_argument);
    EXPECT_ERRC(store.create_branch(name, "s"), Errc::invalid_argument);
    EXPECT_ERRC(store.create_snapshot(name, "s"), Errc::invalid_argument);
    EXPECT_FALSE(store.contains(name));
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { (void)store.open_region(name, options()); },
             [&] { (void)store.open_version(name, options()); }, [&] { (void)store.version(name); },
             [&] { store.remove_snapshot(name); }, [&] { store.remove_branch(name); }}) {
      try {
        call();
        ADD_FAILURE() << "'" << name << "' is accepted";
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == Errc::invalid_argument || error.code() == Errc::not_found)
            << error.what();
      }
    }
  }
  EXPECT_EQ(store.versions().size(), 2u);
}

TEST_P(Names, TakenNamesAreRefusedAndNothingChanges) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  word_at(region, 0) = 1;
  region.snapshot("s");
  word_at(region, 0) = 2;
  for (const std::string& name : {std::string("s"), std::string("main")}) {
    expect_error(Errc::already_exists, {name}, [&] { region.snapshot(name); });
    expect_error(Errc::already_exists, {name}, [&] { store.create_region(name, kMiB, options()); });
    expect_error(Errc::already_exists, {name}, [&] { store.create_branch(name, "s"); });
    expect_error(Errc::already_exists, {name}, [&] { store.create_snapshot(name, "s"); });
  }
  EXPECT_EQ(region.sequence(), 1u);
  EXPECT_EQ(word_at(store.open_version("s", options()), 0), 1u);
  EXPECT_EQ(word_at(store.open_version("main", options()), 0), 1u);
  region.snapshot("t");
  EXPECT_EQ(word_at(store.open_version("t", options()), 0), 2u);
}

TEST_P(Names, UnknownNamesAreNotFound) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  region.snapshot("s");
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { (void)store.open_region("nobody", options()); },
           [&] { (void)store.open_version("nobody", options()); },
           [&] { (void)store.version("nobody"); }, [&] { store.create_branch("b", "nobody"); },
           [&] { store.create_snapshot("t", "nobody"); }, [&] { store.remove_snapshot("nobody"); },
           [&] { store.remove_branch("nobody"); }, [&] { store.diff("s", "nobody", nullptr); },
           [&] { store.export_file("nobody", directory_ / "out"); }}) {
    expect_error(Errc::not_found, {"nobody"}, call);
  }
  EXPECT_ERRC((void)store.open_region("s", options()),
              Errc::not_found);  // a snapshot has no writer
  EXPECT_ERRC(store.remove_snapshot("main"), Errc::not_found);
  EXPECT_ERRC(store.remove_branch("s"), Errc::not_found);
}

VELLUM_BOTH_ENGINES(Names);

}  // namespace
}  // namespace vellum::test
