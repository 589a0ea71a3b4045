// Attacks on signed snapshots: forged trees and page maps.
#include "base/memory/zeros.hpp"
#include "store/signature/signing_fixture.hpp"

namespace vellum::store::test {
namespace {

// ---- Forged page maps and trees under genuine signatures. An attacker who writes a store's files can
// give any version any runs: here by a branch that continues it without a signature.

class ForgedTree : public SignatureAttack {
 protected:
  struct Page {
    PageNumber page;
    std::vector<std::byte> content;
  };
  static TreeNodes nodes_of(const PageSource& source, unsigned level, std::uint64_t number) {
    TreeNodes out;
    source.read(format::tree_page(level, number), 1, reinterpret_cast<std::byte*>(out.data()));
    return out;
  }
  static Page tree_page(unsigned level, std::uint64_t number,
                        std::span<const TreeHash, format::kNodesPerTreePage> nodes) {
    const auto bytes = std::as_bytes(nodes);
    return {format::tree_page(level, number), {bytes.begin(), bytes.end()}};
  }
  // All pages of the tree of `from`.
  std::vector<Page> tree_of(const std::string& from) {
    const OpenSigned now = open_signed(*store_, from);
    std::vector<Page> out;
    root_of_content(*now.source, now.ref.version.region_bytes, [&](const ChangedTreePage& changed) {
      out.push_back(tree_page(changed.level, changed.number, changed.nodes));
    });
    return out;
  }
  // Replaces pages of `name`, also beyond its region's end.
  void put_pages(const std::string& name, const std::vector<Page>& pages) {
    format::SnapshotRef forged = ref(name);
    format::Version wide = forged.version;
    wide.region_bytes = format::kMaxRegionBytes;
    wide.file_bytes.reset();
    set_sign_key_file("");
    const std::string branch = "forger-" + std::to_string(forgers_++);
    store_->create_branch_at(branch, wide, name);
    {
      const auto writer = BranchWriter::open(*store_, branch);
      auto c = writer->begin();
      for (const Page& p : pages) {
        std::vector<std::byte> old(kPageBytes);
        writer->source_at_open()->read(p.page, 1, old.data());
        if (old == p.content) continue;
        PageWrites writes;
        if (base::is_zero(p.content)) {
          writes.zeros.push_back(p.page);
        } else {
          ASSERT_TRUE(writes.deltas.add_difference(p.page, old.data(), p.content.data()));
        }
        c->add(std::move(writes));
      }
      c->finish(wide.info(), true);
      forged.version.runs = writer->head().runs;
    }
    put_ref(forged);
    set_sign_key_file(key_file_);
  }
  std::vector<std::byte> evil_page() const {
    return std::vector<std::byte>(kPageBytes, std::byte{6});
  }
  // A signature that attests another content than the signer has seen would be accepted for it.
  void expect_all(const std::vector<std::pair<std::string, bool>>& good) {
    SignatureChecker checker(*store_, keys_);
    for (const auto& [name, is_good] : good)
      EXPECT_EQ(checker.check(name).problem.empty(), is_good) << name;
  }
  int forgers_ = 0;
};

// v1 has the tree of v2, and v2 the content of v1: nothing differs between them.
TEST_F(ForgedTree, OfTheVersionBeforeDoesNotVouchForTheNext) {
  const format::SnapshotRef v2 = ref("v2");
  put_pages("v1", tree_of("v2"));
  format::SnapshotRef forged = v2;
  forged.version.runs = ref("v1").version.runs;
  put_ref(forged);
  expect_all({{"v1", true}, {"v2", false}});
}

// The same with every page but the top one: that one still leads to the root of v1.
TEST_F(ForgedTree, BelowItsTopDoesNotVouchForTheNext) {
  const format::SnapshotRef v2 = ref("v2");
  std::vector<Page> pages = tree_of("v2");
  std::erase_if(pages, [](const Page& p) { return p.page >= format::tree_page(1, 0); });
  put_pages("v1", pages);
  // v2 differs from v1 in a page of each group, so that each group's leaves are used.
  std::vector<Page> same;
  for (const PageNumber page : {PageNumber{3}, PageNumber{130}}) {
    std::vector<std::byte> bytes(kPageBytes);
    open_signed(*store_, "v2").source->read(page, 1, bytes.data());
    same.push_back({page, bytes});
  }
  format::SnapshotRef forged = v2;
  forged.version.runs = ref("v1").version.runs;
  put_ref(forged);
  put_pages("v2", {{3, evil_page()}, {130, evil_page()}});
  put_pages("v2", same);
  expect_all({{"v1", true}, {"v2", false}});
}

// A leaf of the branch's tree is forged before the signer goes on from it, near a page that it changes.
TEST_F(ForgedTree, IsNotSigned) {
  Model model = model_;
  const auto evil = evil_page();
  TreeNodes nodes = nodes_of(*open_signed(*store_, "v3").source, 0, 0);
  nodes[50] = format::stored_leaf(std::span<const std::byte>(evil).first<kPageBytes>());
  put_pages("v3", {tree_page(0, 0, nodes)});
  expect_all({{"v2", true}, {"v3", true}});  // its content is genuine

  writer_.reset();
  store_->create_branch_at("next", ref("v3").version, "v3");
  writer_ = BranchWriter::open(*store_, "next");
  model.store64(51, 8, 77);
  snapshot(model, "v4");
  expect_signed("v4", model);
  put_pages("v4", {{50, evil}});
  expect_all({{"v3", true}, {"v4", false}});
}

// A parent that the attacker has signed vouches for nothing, and a forged one is refused.
TEST_F(ForgedTree, OfAnotherKeyIsNotSigned) {
  Model model = model_;
  const auto evil = evil_page();
  const OpenSigned v3 = open_signed(*store_, "v3");
  TreeNodes nodes = nodes_of(*v3.source, 0, 0);
  nodes[50] = format::stored_leaf(std::span<const std::byte>(evil).first<kPageBytes>());
  TreeNodes top = nodes_of(*v3.source, 1, 0);
  top[0] = format::stored_subtree(nodes, 0);
  put_pages("v3", {tree_page(0, 0, nodes), tree_page(1, 0, top)});
  format::SnapshotRef forged = ref("v3");
  forged.signature->root =
      format::actual_node(format::stored_subtree(std::span(top).first(2), 7), 8);
  put_ref(forged);
  const auto sign_next = [&](const std::string& branch) {
    store_->create_branch_at(branch, ref("v3").version, "v3");
    writer_ = BranchWriter::open(*store_, branch);
    model.store64(51, 8, 77);
    snapshot(model, branch + "-v4");
  };
  writer_.reset();
  EXPECT_TRUE(contains(error_text(Errc::untrusted, [&] { sign_next("next"); }), "forged"));

  const base::Secret other = base::read_ed25519_private(other_file_);
  forged.signature->key = base::ed25519_public(other);
  forged.signature->signature = base::ed25519_sign(other, statement_of(*store_, forged));
  put_ref(forged);
  writer_.reset();
  model = model_;
  sign_next("again");
  expect_signed("again-v4", model);
}

// Pages between the old and the new end of a region: in a run that both versions share.
TEST_F(ForgedTree, PagesBehindTheOldEndAreRead) {
  model_.grow(400);
  model_.store64(399, 8, 7);
  snapshot(model_, "v4");
  expect_all({{"v3", true}, {"v4", true}});
  put_pages("v3", {{300, evil_page()}});
  expect_all({{"v3", true}});
  format::SnapshotRef forged = ref("v4");
  forged.version.runs = ref("v3").version.runs;
  put_ref(forged);
  std::vector<std::byte> last(kPageBytes);
  std::memcpy(last.data(), model_.bytes.data() + 399 * kPageBytes, kPageBytes);
  put_pages("v4", {{399, last}});
  expect_all({{"v3", true}, {"v4", false}});
}

// Zeros of a forged tree do not hide that pages have become zero.
TEST_F(ForgedTree, ZerosThereAreNotBelieved) {
  Model model(300);
  begin(model.pages(), "wide");
  for (PageNumber p = 0; p < 300; ++p) model.store64(p, 8, p + 1);
  snapshot(model, "w1");
  model.store64(290, 8, 5);
  snapshot(model, "w2");
  writer_.reset();
  put_pages("w1", {tree_page(0, 1, TreeNodes{})});
  std::vector<Page> zeros;
  for (PageNumber p = 128; p < 256; ++p) zeros.push_back({p, std::vector<std::byte>(kPageBytes)});
  format::SnapshotRef w2 = ref("w2");
  put_pages("w2", zeros);
  expect_all({{"w1", true}, {"w2", false}});
}

}  // namespace
}  // namespace vellum::store::test
