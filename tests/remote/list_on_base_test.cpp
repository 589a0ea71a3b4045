// Lists of pieces with a base: they decode to the same as whole lists, pushes use them, and gc
// keeps a base as long as a list needs it.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "base/expect_error.hpp"
#include "format/samples.hpp"
#include "remote/lazy_fixture.hpp"
#include "remote/objects/list_on_base.hpp"
#include "remote/remote_samples.hpp"

namespace vellum::remote::test {
namespace {

const format::Uuid kStoreId = format::samples::store_id();

base::Sha256 hash_of_number(std::uint64_t number) {
  return base::sha256(std::as_bytes(std::span(&number, 1)));
}

// `count` pieces, numbered from `first`.
VersionPieces some_pieces(std::uint64_t first, std::size_t count) {
  VersionPieces out;
  for (std::uint64_t i = first; i < first + count; ++i) {
    out.list.push_back({{1, hash_of_number(i)}, 5000 + i, 200});
    out.opening.spans.push_back({{(3ULL << 32) | i, 64, 640}});
  }
  return out;
}

void insert_piece(VersionPieces& to, std::size_t at, std::uint64_t number) {
  const VersionPieces one = some_pieces(number, 1);
  to.list.insert(to.list.begin() + static_cast<std::ptrdiff_t>(at), one.list[0]);
  to.opening.spans.insert(to.opening.spans.begin() + static_cast<std::ptrdiff_t>(at),
                          one.opening.spans[0]);
}

void erase_piece(VersionPieces& from, std::size_t at) {
  from.list.erase(from.list.begin() + static_cast<std::ptrdiff_t>(at));
  from.opening.spans.erase(from.opening.spans.begin() + static_cast<std::ptrdiff_t>(at));
}

BaseList base_of(const VersionPieces& whole) { return {hash_of_number(77), whole}; }

// Decodes the list on the base and compares it with the whole list.
std::size_t expect_same_list(const VersionPieces& pieces, const BaseList& base) {
  const auto bytes = encode_list_on_base(pieces, base, kStoreId);
  VersionPieces whole, on_base;
  EXPECT_EQ(decode_piece_list(encode_piece_list(pieces, kStoreId), kStoreId, whole), nullptr);
  EXPECT_EQ(decode_list_on_base(bytes, kStoreId, base, on_base), nullptr);
  EXPECT_EQ(on_base, whole);
  EXPECT_EQ(on_base, pieces);
  return bytes.size();
}

TEST(ListOnBase, AListOnABaseIsTheSameAsTheWholeList) {
  const VersionPieces whole = some_pieces(0, 100);
  const BaseList base = base_of(whole);
  EXPECT_LT(expect_same_list(whole, base), 100u);
  expect_same_list({}, base);
  expect_same_list(some_pieces(500, 3), base);
  std::mt19937_64 random{5};
  for (int round = 0; round < 500; ++round) {
    VersionPieces pieces = whole;
    for (std::uint64_t n = random() % 20; n > 0; --n) {
      const std::size_t at = random() % pieces.list.size();
      const std::uint64_t how = random() % 4;
      if (how == 0) erase_piece(pieces, at);
      if (how == 1) insert_piece(pieces, at, 1000 + random() % 100);
      if (how == 2) std::swap(pieces.list[at], pieces.list[random() % pieces.list.size()]);
      if (how == 3) pieces.opening.spans[at].front().last_offset_bytes += 8;
    }
    pieces.in_use = {{{40, 8}}, {static_cast<std::uint32_t>(random() % pieces.list.size())}};
    expect_same_list(pieces, base);
  }
}

TEST(ListOnBase, PiecesThatDifferFromTheBaseAreTheListsOwn) {
  const BaseList base = base_of(some_pieces(0, 100));
  VersionPieces pieces = some_pieces(0, 100);
  EXPECT_EQ(own_piece_count(base, pieces), 0u);
  pieces.opening.spans[5].push_back({(4ULL << 32) | 1, 64, 64});
  EXPECT_EQ(own_piece_count(base, pieces), 1u);
  pieces.list[9].index_bytes += 1;
  EXPECT_EQ(own_piece_count(base, pieces), 2u);
  std::swap(pieces.list[20], pieces.list[21]);
  std::swap(pieces.opening.spans[20], pieces.opening.spans[21]);
  EXPECT_EQ(own_piece_count(base, pieces), 3u);
  expect_same_list(pieces, base);
}

TEST(ListOnBase, AListIsRefusedOnAnotherBaseOrWithStepsBeyondIt) {
  const VersionPieces whole = some_pieces(0, 100);
  VersionPieces pieces = whole, out;
  erase_piece(pieces, 3);
  insert_piece(pieces, 50, 1000);
  const auto bytes = encode_list_on_base(pieces, base_of(whole), kStoreId);
  EXPECT_STREQ(decode_list_on_base(bytes, kStoreId, {hash_of_number(78), whole}, out),
               "is based on another list");
  // A forged base that is too short.
  EXPECT_STREQ(decode_list_on_base(bytes, kStoreId, base_of(some_pieces(0, 99)), out), "malformed");
  EXPECT_STREQ(decode_piece_list(bytes, kStoreId, out), "not a list of pieces");
  EXPECT_STREQ(
      decode_list_on_base(encode_piece_list(pieces, kStoreId), kStoreId, base_of(whole), out),
      "not a list of pieces on a base");
  // The steps: one that skips 0 and takes 3; one that skips 1, takes 47 and adds 1 of its own; one
  // that takes 49.
  constexpr std::size_t kStepsAt = 32 + 32;
  const std::vector<std::byte> steps(bytes.begin() + kStepsAt, bytes.begin() + kStepsAt + 10);
  const std::array<int, 10> expected{3, 0, 3, 0, 1, 47, 1, 0, 49, 0};
  for (std::size_t i = 0; i < steps.size(); ++i)
    EXPECT_EQ(std::to_integer<int>(steps[i]), expected[i]);
  const auto with = [&](std::size_t at, int value) {
    auto bad = bytes;
    bad[kStepsAt + at] = static_cast<std::byte>(value);
    const char* const problem =
        decode_list_on_base(format::samples::sealed(bad), kStoreId, base_of(whole), out);
    return std::string(problem == nullptr ? "" : problem);
  };
  EXPECT_EQ(with(0, 3), "");
  EXPECT_EQ(with(8, 49), "");
  EXPECT_EQ(with(8, 50), "malformed") << "a step takes more than there is";
  EXPECT_EQ(with(7, 1), "malformed") << "a step passes over so much that too little is left";
  EXPECT_EQ(with(1, 101), "malformed") << "a step passes over more than there is";
  EXPECT_EQ(with(6, 2), "malformed") << "more own pieces than follow";
  EXPECT_EQ(with(6, 0), "malformed") << "fewer own pieces than follow";
  EXPECT_EQ(with(0, 127), "malformed") << "more steps than bytes";
}

TEST(BaseLists, AListHasTheNearestBaseOrIsWhole) {
  const auto base_list = [](const VersionPieces& pieces) {
    return std::make_shared<const BaseList>(base_of(pieces));
  };
  const ObjectName far{{1, hash_of_number(1)}, 10}, near{{1, hash_of_number(2)}, 10};
  const VersionPieces pieces = some_pieces(0, 100);
  BaseLists bases;
  EXPECT_EQ(bases.encode(pieces, kStoreId).base, ObjectName{});
  EXPECT_EQ(bases.encode(pieces, kStoreId).bytes, encode_piece_list(pieces, kStoreId));
  bases.add(far, base_list(some_pieces(10, 100)));
  bases.add(near, base_list(some_pieces(1, 100)));
  EXPECT_EQ(bases.encode(pieces, kStoreId).base, near);
  // A list of 100 pieces may have at most 14 of its own.
  BaseLists of_near;
  of_near.add(near, base_list(some_pieces(14, 100)));
  EXPECT_EQ(of_near.encode(some_pieces(0, 100), kStoreId).base, near);
  EXPECT_EQ(of_near.encode(some_pieces(29, 100), kStoreId).base, ObjectName{});
  // It must save half of the whole list.
  BaseLists of_few;
  of_few.add(near, base_list(some_pieces(0, 2)));
  EXPECT_EQ(of_few.encode(some_pieces(0, 3), kStoreId).base, ObjectName{});
}

// Many small pushes, so that lists have enough pieces for a base.
class ListOnBaseTest : public LazyTest {
 protected:
  void push_many() {
    make(1);
    for (int i = 0; i < 16; ++i) {
      step("", 1);
      push_names(*store, {"main"});
    }
    for (int i = 0; i < 10; ++i) push_step("t" + std::to_string(i));
  }
  void push_step(const std::string& name) {
    step(name, 1);
    push_names(*store, {name});
  }
  Head head() const { return remote.newest_head().head; }
  ListName list_name(const std::string& name) const { return head().find(name)->list; }
  // The snapshot whose list has the fewest own pieces: later lists have the same base.
  std::string near_base() const {
    std::string out;
    std::uint64_t least = UINT64_MAX;
    for (const RemoteVersion& name : head().versions) {
      if (name.is_branch || name.list.base.size_bytes == 0) continue;
      if (name.list.own.size_bytes >= least) continue;
      least = name.list.own.size_bytes;
      out = name.ref.name;
    }
    EXPECT_NE(out, "") << "no list has a base";
    return out;
  }
  // Pushes until a list is the first one with a new base. The next lists have the same base, with
  // any content.
  std::string push_near_base() {
    ObjectName last_whole;
    for (int i = 0; i < 60; ++i) {
      const std::string name = "n" + std::to_string(i);
      push_step(name);
      const auto [base, own] = list_name(name);
      if (base.size_bytes == 0) {
        last_whole = own;
      } else if (base == last_whole) {
        return name;
      }
    }
    ADD_FAILURE() << "no list is based on the previous one";
    return "n0";
  }
  // The versions whose list, or base of the list, is the object.
  std::vector<std::string> users_of(const ObjectName& object) const {
    std::vector<std::string> out;
    for (const RemoteVersion& name : head().versions) {
      if (name.list.own == object || name.list.base == object) out.push_back(name.ref.name);
    }
    return out;
  }
  void expect_clone(const std::string& name) {
    expect_good_remote();
    contents.erase("main");
    contents.erase("s0");
    expect_contents(*clone_to(name), contents);
  }
  void forget_all_but(const std::string& kept) {
    std::vector<std::string> gone;
    for (const RemoteVersion& name : head().versions) {
      if (name.ref.name != kept) gone.push_back(name.ref.name);
    }
    forget_names(remote, gone);
    for (const std::string& name : gone) contents.erase(name);
    collect_remote(remote, false, nullptr);
  }
  bool is_there(const ObjectName& list) const {
    return !there->list(list_key(list.content), 1).empty();
  }

  std::shared_ptr<ObjectStore> there = objects();
  const Remote remote{*there, store->store_seal()};
};

TEST_F(ListOnBaseTest, PushesSendOneListAsTheBaseOfLaterOnes) {
  push_many();
  std::size_t on_base = 0;
  std::set<ObjectName> bases;
  for (const RemoteVersion& name : head().versions) {
    const auto& [base, own] = name.list;
    if (base.size_bytes == 0) continue;
    ++on_base;
    bases.insert(base);
    EXPECT_LT(own.size_bytes, base.size_bytes);
    EXPECT_FALSE(remote.list({{}, base}).empty()) << "a base is a whole list";
    // A list of one kind is not decoded as the other kind.
    EXPECT_ERRC(remote.pieces_of({{}, own}), Errc::corrupted);
    EXPECT_ERRC(remote.pieces_of({own, base}), Errc::corrupted);
  }
  EXPECT_GE(on_base, 5u);
  EXPECT_LT(bases.size(), on_base);
  expect_clone("c");
  EXPECT_EQ(push_names(*store, {"t9"}).bytes_uploaded, 0u);
}

TEST_F(ListOnBaseTest, AnOpeningReadsAListAndItsBaseConcurrently) {
  push_many();
  const std::string one = push_near_base();
  push_step("v");  // has the same base, with any content
  ASSERT_EQ(list_name("v").base, list_name(one).base);
  std::atomic<int> asked_for{0};
  std::atomic<bool> came_together{true};
  interference->set_before([&](const std::string& key) {
    if (!key.starts_with(kListPrefix)) return;
    ++asked_for;
    for (int ms = 0; ms < 5000 && asked_for < 2; ++ms) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (asked_for < 2) came_together = false;
  });
  const auto lazy = open_lazily(options());
  store::test::expect_same(*store::test::open_version(*lazy, one), contents[one]);
  EXPECT_TRUE(came_together);
  EXPECT_EQ(interference->gets_of(kListPrefix), 2);
  // Another version with the same base needs only its own list.
  store::test::expect_same(*store::test::open_version(*lazy, "v"), contents["v"]);
  EXPECT_EQ(interference->gets_of(kListPrefix), 3);
}

TEST_F(ListOnBaseTest, ListsOfOnePushAreBasedOnEachOther) {
  push_many();
  for (const char* name : {"u0", "u1", "u2"}) step(name, 1);
  push_names(*store, {"u0", "u1", "u2"});
  int on_base = 0;
  for (const char* name : {"u0", "u1", "u2"}) on_base += list_name(name).base.size_bytes != 0;
  EXPECT_GE(on_base, 2);
  expect_clone("c");
  // To a new remote: the bases are in the same push, and do not exist before its end.
  add_remote_file(*store, "second", "file://" + dir.path("r2"), false);
  {
    Session session(*store, "second");
    push(session, {}, nullptr);
  }
  clone(base::posix_fs(), "file://" + dir.path("r2"), dir.path("c2"), {}, nullptr);
  expect_contents(*StoreDirectory::open(base::posix_fs(), dir.path("c2")), contents);
}

TEST_F(ListOnBaseTest, GcKeepsABaseAsLongAsAListNeedsIt) {
  push_many();
  const std::string one = push_near_base();
  const ObjectName base = list_name(one).base;
  forget_all_but(one);
  EXPECT_TRUE(is_there(base));
  const RemoteSpace space = space_of_remote(remote);
  EXPECT_EQ(space.needed_objects, space.objects);
  expect_clone("c");
  // The next list may have it as its base: the head refers to it.
  push_step("v");
  EXPECT_EQ(list_name("v").base, base);
  forget_all_but("v");
  EXPECT_TRUE(is_there(base));
  expect_clone("d");
  forget_all_but("");
  EXPECT_FALSE(is_there(base));
  push_step("w");
  expect_clone("e");
}

// Runs a function when a push has uploaded all objects but its head.
class BeforeHead final : public DirectoryEngine {
 public:
  BeforeHead(std::string path, std::function<void()> work)
      : DirectoryEngine(base::posix_fs(), std::move(path)), work_(std::move(work)) {}
  bool put_if_absent(const std::string& key, std::span<const std::byte> bytes) override {
    if (key.starts_with(kHeadPrefix) && work_ != nullptr) std::exchange(work_, nullptr)();
    return DirectoryEngine::put_if_absent(key, bytes);
  }

 private:
  std::function<void()> work_;
};

TEST_F(ListOnBaseTest, APushBeginsAgainIfGcDeletesTheBaseOfItsList) {
  push_many();
  const std::string one = push_near_base();
  const ObjectName base = list_name(one).base;
  forget_all_but(one);
  step("v", 1);
  bool stood_on_it = false;
  push_names(*store, {"v"}, std::make_unique<BeforeHead>(dir.path("r"), [&] {
    for (const ObjectInfo& list : there->list(kListPrefix, 100)) {
      const auto bytes = there->get(list.key, 1u << 20);
      VersionPieces pieces;
      stood_on_it |= list.key != list_key(list_name(one).own.content) &&
                     decode_list_on_base(bytes, store->file_seal(), *remote.base_list(base),
                                         pieces) == nullptr;
    }
    forget_all_but("");
    EXPECT_FALSE(is_there(base));
  }));
  EXPECT_TRUE(stood_on_it);
  EXPECT_NE(list_name("v").base, base);
  expect_clone("c");
}

TEST_F(ListOnBaseTest, ABaseThatIsDamagedOrMissingIsNamed) {
  push_many();
  const std::string one = near_base();
  const ListName list = list_name(one);
  ASSERT_GE(users_of(list.base).size(), 2u);
  const auto expect_named = [&](const ObjectName& object) {
    const auto damages = verify_remote(Remote(*there, store->store_seal()), true, nullptr).damages;
    ASSERT_EQ(damages.size(), 1u);
    EXPECT_EQ(damages[0].object, list_key(object.content));
    EXPECT_EQ(damages[0].versions, users_of(object));
    try {
      clone_to("c", {one});
      ADD_FAILURE() << "a clone without " << list_key(object.content);
    } catch (const Error& e) {
      EXPECT_TRUE(e.code() == Errc::corrupted || e.code() == Errc::not_found) << e.what();
      EXPECT_TRUE(store::test::contains(e.what(), list_key(object.content))) << e.what();
    }
    std::filesystem::remove_all(dir.path("c.vellum-clone"));
  };
  for (const ObjectName& object : {list.base, list.own}) {
    const std::string key = list_key(object.content);
    const auto good = there->get(key, 1u << 20);
    auto bad = good;
    bad[bad.size() / 2] ^= std::byte{4};
    there->put(key, bad);
    expect_named(object);
    bad = good;
    bad.resize(bad.size() - 1);
    there->put(key, bad);
    expect_named(object);
    there->remove(key);
    expect_named(object);
    there->put(key, good);
  }
  // Both damages.
  for (const ObjectName& object : {list.base, list.own}) there->remove(list_key(object.content));
  std::set<std::string> named;
  for (const auto& damage :
       verify_remote(Remote(*there, store->store_seal()), false, nullptr).damages) {
    named.insert(damage.object);
  }
  EXPECT_EQ(named, (std::set{list_key(list.base.content), list_key(list.own.content)}));
}

// A forged head can refer to another base; the list has the hash of its base.
TEST_F(ListOnBaseTest, AHeadWithAnotherBaseIsRefused) {
  push_many();
  ListName forged = list_name(near_base());
  const auto whole = remote.pieces_of(forged);
  const auto bytes = encode_piece_list(whole, store->file_seal());
  forged.base = {{0, base::sha256(bytes)}, bytes.size()};
  there->put(list_key(forged.base.content), bytes);
  const std::string text =
      store::test::error_text(Errc::corrupted, [&] { remote.pieces_of(forged); });
  EXPECT_TRUE(store::test::contains(text, "is based on another list")) << text;
  EXPECT_TRUE(store::test::contains(text, list_key(forged.own.content))) << text;
}

}  // namespace
}  // namespace vellum::remote::test
