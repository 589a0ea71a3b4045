// An encrypted store: its content is nowhere in its files, what was changed or exchanged there is
// refused, and its secrets open it.
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include <vellum/key.hpp>

#include "base/bytes/checksum.hpp"
#include "base/crypto/bech32.hpp"
#include "base/crypto/x25519.hpp"
#include "format/wire/number.hpp"
#include "format/wire/whole_file.hpp"
#include "store/catalog/encrypted_fixture.hpp"
#include "store/catalog/key_file.hpp"
#include "store/check/check.hpp"
#include "store/gc/gc.hpp"
#include "store/gc/recompress_support.hpp"
#include "store/packs/pack_scanner.hpp"

namespace vellum::store::test {
namespace {

namespace files = std::filesystem;

TEST_F(Encrypted, NoFileHasPlainContent) {
  work();
  expect_no_marker();
  expect_contents(*fresh());
  writer_.reset();
  for (const char* gone : {"s1", "s3"}) {
    store_->remove_snapshot(gone);
    contents_.erase(gone);
  }
  collect();
  expect_contents(*fresh());
  EXPECT_GT(translate_all(*store_, 3), 0u);
  expect_no_marker();
  collect();
  expect_contents(*fresh());
  const VerifyReport report = verify_store(*fresh(), true, nullptr);
  EXPECT_TRUE(report.damages.empty());
}

// Plain stores have the marker: the search would find it.
TEST_F(Encrypted, APlainStoreHasIt) {
  auto options = small_options();
  options.compression = base::Compression::none;
  files::remove_all(path());
  store_ = StoreDirectory::create(base::posix_fs(), path(), options);
  work();
  const auto all = files_in(path());
  EXPECT_TRUE(std::ranges::any_of(all, [](const std::string& file) {
    return text_of_file(file).find(kMarker) != std::string::npos;
  }));
}

TEST_F(Encrypted, ANewerFormatToOlderPrograms) {
  work();
  constexpr std::size_t kNumberAt = 8;
  for (const std::string& file : files_in(path())) {
    if (file.ends_with(kKeysName)) continue;
    std::uint32_t number = 0;
    std::memcpy(&number, text_of_file(file).data() + kNumberAt, sizeof number);
    EXPECT_EQ(format::number_text(number), "1.1") << file;
  }
}

TEST_F(Encrypted, OnlyItsSecretsOpenIt) {
  work();
  put_file(key_path() + "2", std::string(50, 'x'));
  use_key_file(key_path() + "2");
  const std::string text = error_text(Errc::wrong_key, [&] { fresh(); });
  EXPECT_TRUE(contains(text, path() + ": the key or passphrase fits none")) << text;
  set_key_source(KeySource());
  EXPECT_TRUE(contains(error_text(Errc::wrong_key, [&] { fresh(); }), "VELLUM_PASSPHRASE_FILE"));
  use_key_file(key_path());
  expect_contents(*fresh());
}

TEST_F(Encrypted, SlotsAreAddedReplacedAndRemoved) {
  KeySource passphrase, recipient, command;
  put_file(directory_.path("p"), "open sesame\n");
  passphrase.passphrase_file = directory_.path("p");
  const base::Secret identity = base::new_x25519_key();
  recipient.recipient = base::bech32_encode("age", base::x25519_public(identity));
  command.command = "printf 'from a keyring'";

  EXPECT_EQ(add_key_slot(*store_, passphrase, "people").number, 2u);
  EXPECT_EQ(add_key_slot(*store_, recipient, "").recipient, recipient.recipient);
  EXPECT_EQ(add_key_slot(*store_, command, "").number, 4u);
  const auto opens = [&](const KeySource& source) {
    set_key_source(source);
    try {
      return fresh()->keys()->data_key().size() == base::kKeyBytes;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Errc::wrong_key) << e.what();
      return false;
    }
  };
  put_file(directory_.path("identity"),
           "# a comment\n" + base::bech32_encode("age-secret-key-", identity.bytes()) + "\n");
  KeySource by_identity;
  by_identity.identity_file = directory_.path("identity");
  EXPECT_TRUE(opens(passphrase));
  EXPECT_TRUE(opens(by_identity));
  EXPECT_TRUE(opens(command));

  put_file(directory_.path("p2"), "another\n");
  KeySource other;
  other.passphrase_file = directory_.path("p2");
  const KeySlot replaced = replace_key_slot(*store_, 2, other);
  EXPECT_EQ(replaced.number, 5u);
  EXPECT_EQ(replaced.label, "people");
  EXPECT_TRUE(opens(other));
  EXPECT_FALSE(opens(passphrase));

  for (const std::uint32_t number : {1u, 3u, 4u}) remove_key_slot(*store_, number);
  EXPECT_FALSE(opens(by_identity));
  EXPECT_TRUE(opens(other));
  EXPECT_EQ(key_slots(*store_).size(), 1u);
  error_text(Errc::not_found, [&] { remove_key_slot(*store_, 1); });
  error_text(Errc::invalid_argument, [&] { remove_key_slot(*store_, 5); });
}

// One without a usable public key, before the good one.
TEST_F(Encrypted, AHostileSlotHidesNoGoodOne) {
  const base::Secret identity = base::new_x25519_key();
  KeySource recipient, source;
  recipient.recipient = base::bech32_encode("age", base::x25519_public(identity));
  put_file(directory_.path("identity"),
           base::bech32_encode("age-secret-key-", identity.bytes()) + "\n");
  source.identity_file = directory_.path("identity");
  add_key_slot(*store_, recipient, "");
  const std::string file = path() + "/" + kKeysName, good = text_of_file(file);
  const auto& id = store_->superblock().store_id;
  format::KeySlots slots;
  ASSERT_EQ(format::decode_key_slots(std::as_bytes(std::span(good)), id, slots), nullptr);
  format::StoredKeySlot hostile;
  hostile.number = 1;
  hostile.kind = format::KeySlotKind::recipient;
  hostile.recipient = base::x25519_public(identity);
  slots.slots[0] = hostile;
  const auto put = [&] {
    const auto bytes = format::encode_key_slots(slots, id);
    put_file(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  put();
  set_key_source(source);
  EXPECT_EQ(key_fingerprint(*fresh()), key_fingerprint(*store_));
  slots.slots.pop_back();
  put();
  const std::string text = error_text(Errc::invalid_argument, [&] { fresh(); });
  EXPECT_TRUE(contains(text, path() + ": key slot 1: ")) << text;
}

TEST_F(Encrypted, TheLastSlotNumberIsNotUsed) {
  const std::string file = path() + "/" + kKeysName, good = text_of_file(file);
  const auto& id = store_->superblock().store_id;
  format::KeySlots slots;
  ASSERT_EQ(format::decode_key_slots(std::as_bytes(std::span(good)), id, slots), nullptr);
  slots.next_number = UINT32_MAX;
  const auto bytes = format::encode_key_slots(slots, id);
  const std::string full(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  put_file(file, full);
  KeySource source;
  source.key_file = key_path();
  error_text(Errc::no_space, [&] { add_key_slot(*store_, source, ""); });
  error_text(Errc::no_space, [&] { replace_key_slot(*store_, 1, source); });
  EXPECT_EQ(text_of_file(file), full);
  EXPECT_EQ(key_slots(*fresh()).size(), 1u);
}

// A person may take hours.
TEST_F(Encrypted, NoLockIsHeldWhileAPersonIsAsked) {
  int asked = 0;
  KeySource person;
  person.prompt = [&](const std::string&, char* to, std::size_t) {
    ++asked;
    EXPECT_TRUE(try_lock_name(*store_, kKeysName).has_value());
    std::memcpy(to, "secret", 6);
    return std::size_t{6};
  };
  const std::uint32_t number = add_key_slot(*store_, person, "").number;
  replace_key_slot(*store_, number, person);
  EXPECT_EQ(asked, 2);
  error_text(Errc::not_found, [&] { replace_key_slot(*store_, 77, person); });
  EXPECT_EQ(asked, 2);
}

// Anybody can make a store for a recipient.
TEST_F(Encrypted, AFingerprintTellsAnExchangedStore) {
  const base::Secret identity = base::new_x25519_key();
  KeySource recipient, source;
  recipient.recipient = base::bech32_encode("age", base::x25519_public(identity));
  put_file(directory_.path("identity"),
           base::bech32_encode("age-secret-key-", identity.bytes()) + "\n");
  source.identity_file = directory_.path("identity");
  add_key_slot(*store_, recipient, "");
  const std::string own = key_fingerprint(*store_);
  EXPECT_EQ(own.size(), 32u);
  for (const std::string& wanted : {std::string(), own, "00," + own, own + ",00"}) {
    source.fingerprint = wanted;
    set_key_source(source);
    EXPECT_EQ(key_fingerprint(*fresh()), own);
  }

  files::remove_all(path());
  StoreDirectory::create_encrypted(base::posix_fs(), path(), small_options(), recipient);
  const std::string text = error_text(Errc::wrong_key, [&] { fresh(); });
  EXPECT_TRUE(contains(text, "another fingerprint")) << text;
  source.fingerprint.clear();
  set_key_source(source);
  EXPECT_NE(key_fingerprint(*fresh()), own);

  files::remove_all(path());
  StoreDirectory::create(base::posix_fs(), path(), small_options());
  source.fingerprint = own;
  set_key_source(source);
  error_text(Errc::wrong_key, [&] { fresh(); });
}

TEST_F(Encrypted, ChangedSlotsOpenNothing) {
  const std::string file = path() + "/" + kKeysName, good = text_of_file(file);
  const std::string superblock = path() + "/" + kSuperblockName, block = text_of_file(superblock);
  const auto seal = format::checksum_seed(store_->superblock().store_id);
  const auto forged = [](std::string text, std::uint64_t seed) {
    const std::uint64_t sum =
        base::checksum64(std::as_bytes(std::span(text)).first(text.size() - 8), seed);
    std::memcpy(text.data() + text.size() - 8, &sum, sizeof sum);
    return text;
  };
  // Behind the next slot's number, which opens nothing.
  for (std::size_t i = format::kWholeFileHeaderBytes + 1; i + 8 < good.size(); ++i) {
    std::string bad = good;
    flip(bad, i);
    put_file(file, bad);
    error_text(Errc::corrupted, [&] { fresh(); });
    put_file(file, forged(bad, seal));
    EXPECT_THROW(fresh(), Error) << i;
  }
  put_file(file, good);
  // The slot is bound to the superblock: pack_bytes is another.
  std::string other = block;
  flip(other, 50);
  put_file(superblock, forged(other, 0));
  error_text(Errc::wrong_key, [&] { fresh(); });
}

TEST_F(Encrypted, AForgedRecordIsRefused) {
  work();
  writer_.reset();
  const auto store = fresh();
  std::size_t checked = 0;
  for (const std::uint64_t pack : store_->packs().list()) {
    const std::string file = store_->packs().path_of(pack), good = text_of_file(file);
    for (const auto& h : records_of(*store_, pack)) {
      ASSERT_TRUE(h.sealed);
      // A bit of the payload, with a right checksum: only the key tells.
      std::string bad = good;
      flip(bad, h.offset_bytes + format::kRecordHeaderBytes);
      auto record =
          std::as_writable_bytes(std::span(bad))
              .subspan(h.offset_bytes, static_cast<std::size_t>(format::record_body_bytes(h)));
      std::vector<std::byte> head(record.begin(), record.begin() + format::kRecordHeaderBytes);
      std::fill(head.begin() + 48, head.end(), std::byte{});
      const std::uint64_t sum = base::checksum64(head, record.subspan(format::kRecordHeaderBytes),
                                                 store_->checksum_seed());
      std::memcpy(record.data() + 48, &sum, sizeof sum);
      put_file(file, bad);
      const std::string text = error_text(Errc::corrupted, [&] {
        load_record_at(*store, {pack, h.offset_bytes, static_cast<std::uint32_t>(sum)}, h.type);
      });
      EXPECT_TRUE(contains(text, "store's key")) << text;
      ++checked;
    }
    put_file(file, good);
  }
  EXPECT_GT(checked, 20u);
  expect_contents(*fresh());
}

// The kind of a pack is in its header, whose checksum anybody can write.
TEST_F(Encrypted, APackOfTheOtherKindIsRefused) {
  work();
  writer_.reset();
  const std::uint64_t pack = store_->packs().list().front();
  const std::string file = store_->packs().path_of(pack), good = text_of_file(file);
  format::PackHeader header;
  ASSERT_TRUE(format::decode_pack_header(std::as_bytes(std::span(good)), header));
  ASSERT_TRUE(header.sealed);
  header.sealed = false;
  const auto forged = format::encode_pack_header(header);
  std::string bad = good;
  std::memcpy(bad.data(), forged.data(), forged.size());
  put_file(file, bad);
  const std::string text = error_text(Errc::corrupted, [&] { fresh()->packs().open(pack); });
  EXPECT_TRUE(contains(text, file + ": a plain pack in an encrypted store")) << text;
  const VerifyReport report = verify_store(*fresh(), true, nullptr);
  EXPECT_TRUE(std::ranges::any_of(report.damages, [](const auto& damage) {
    return contains(damage.reason, "a plain pack in an encrypted store");
  }));
  put_file(file, good);
  expect_contents(*fresh());
}

// A record with a right checksum that does not open. The pack's index, which is sealed, would vouch
// for it.
TEST_F(Encrypted, NoForgedRecordGetsIntoAnIndex) {
  store_->create_branch("main", kPages * kPageBytes, 0);
  auto writer = BranchWriter::open(*store_, "main");
  mark(1);
  commit(*writer, model_, true);
  writer->checkpoint_journal();
  writer.reset();
  const std::uint64_t pack = store_->packs().list().back();
  const std::string file = store_->packs().path_of(pack);
  std::string bytes = text_of_file(file);
  const auto before = records_of(*store_, pack);
  ASSERT_FALSE(before.empty());
  const format::RecordHeader first = before.front();
  ASSERT_TRUE(format::holds_pages(first.type));
  // Its seal, with a right checksum.
  auto record =
      std::as_writable_bytes(std::span(bytes))
          .subspan(first.offset_bytes, static_cast<std::size_t>(format::record_body_bytes(first)));
  record.back() ^= std::byte{1};
  std::vector<std::byte> head(record.begin(), record.begin() + format::kRecordHeaderBytes);
  std::fill(head.begin() + 48, head.end(), std::byte{});
  const std::uint64_t sum =
      base::checksum64(head, record.subspan(format::kRecordHeaderBytes), store_->checksum_seed());
  std::memcpy(record.data() + 48, &sum, sizeof sum);
  put_file(file, bytes);
  EXPECT_EQ(records_of(*store_, pack).size(), before.size());

  const auto opened = store_->fs().open(file, base::OpenMode::read_only);
  PackScanner scanner(*opened, pack, store_->record_seal(), format::kPackHeaderBytes,
                      opened->size_bytes());
  std::size_t found = 0;
  for (format::RecordHeader h; scanner.next(h); ++found) {
    EXPECT_NE(h.offset_bytes, first.offset_bytes);
  }
  EXPECT_EQ(found + 1, before.size());
  // A writer that seals the pack.
  store_ = fresh();
  writer = BranchWriter::open(*store_, "main");
  for (int round = 0; round < 30 && store_->packs().list().back() == pack; ++round) {
    for (PageNumber p = 40; p < 70; ++p) mark(p);  // not the page of the forged record
    commit(*writer, model_, true);
  }
  ASSERT_NE(store_->packs().list().back(), pack);
  const auto indexed = records_of(*store_, pack).back();
  ASSERT_EQ(indexed.type, format::RecordType::index);
  std::vector<format::IndexLine> lines;
  ASSERT_TRUE(format::decode_index(
      load_record_at(*store_, {pack, indexed.offset_bytes, indexed.tag()}, indexed.type).raw,
      lines));
  EXPECT_GT(lines.size(), 1u);
  for (const format::IndexLine& line : lines) EXPECT_NE(line.offset_bytes, first.offset_bytes);
}

TEST_F(Encrypted, AForgedRefJournalOrHintIsRefused) {
  work();
  writer_.reset();
  const auto seed = store_->checksum_seed();
  for (const std::string& file : files_in(path())) {
    const std::string good = text_of_file(file);
    const bool ref = file.ends_with(".ref"), journal = file.ends_with("/journal");
    if (!ref && !journal) continue;
    std::string bad = good;
    const std::size_t end = journal ? format::kJournalHeaderBytes : good.size();
    // In the journal's header: when the branch was created.
    flip(bad, journal ? 41 : format::kWholeFileHeaderBytes);
    const std::uint64_t sum = base::checksum64(std::as_bytes(std::span(bad)).first(end - 8), seed);
    std::memcpy(bad.data() + end - 8, &sum, sizeof sum);
    put_file(file, bad);
    const auto store = fresh();
    const std::string text = error_text(Errc::corrupted, [&] {
      if (journal) {
        store->read_branch("main");
      } else {
        resolve_snapshot(*store, files::path(file).stem());
      }
    });
    EXPECT_TRUE(contains(text, "store's key")) << file << ": " << text;
    put_file(file, good);
  }
  expect_contents(*fresh());
}

// Two stores, or two versions, have valid records: neither passes for the other.
TEST_F(Encrypted, PlainAndForeignFilesAreRefused) {
  work();
  writer_.reset();
  const std::string ref = path() + "/snapshots/s0.ref", good = text_of_file(ref);
  format::SnapshotRef content;
  ASSERT_EQ(
      format::decode_snapshot_ref(std::as_bytes(std::span(good)), store_->file_seal(), content),
      nullptr);
  const auto plain = format::encode_snapshot_ref(content, store_->superblock().store_id);
  put_file(ref, {reinterpret_cast<const char*>(plain.data()), plain.size()});
  EXPECT_TRUE(contains(error_text(Errc::corrupted, [&] { resolve_snapshot(*fresh(), "s0"); }),
                       "a plain file in an encrypted store"));
  const base::StoreKeys foreign(base::Secret::random(base::kKeyBytes));
  const auto other =
      format::encode_snapshot_ref(content, {store_->superblock().store_id, &foreign});
  put_file(ref, {reinterpret_cast<const char*>(other.data()), other.size()});
  EXPECT_TRUE(contains(error_text(Errc::corrupted, [&] { resolve_snapshot(*fresh(), "s0"); }),
                       "store's key"));
  put_file(ref, text_of_file(path() + "/snapshots/s1.ref"));
  error_text(Errc::corrupted, [&] { resolve_snapshot(*fresh(), "s0"); });
  put_file(ref, good);
  expect_contents(*fresh());
}

// Every nonce of every record and frame that the store ever wrote, also those that crashes left.
TEST_F(Encrypted, NoNonceIsUsedTwice) {
  std::map<std::string, std::string> seen;  // by nonce: the sealed bytes
  const auto note = [&](const std::string& body) {
    const std::string nonce = body.substr(body.size() - base::kSealBytes, base::kNonceBytes);
    const auto [at, fresh_one] = seen.emplace(nonce, body);
    EXPECT_TRUE(fresh_one || at->second == body) << "a nonce of two different messages";
  };
  const auto note_all = [&] {
    for (const std::uint64_t pack : store_->packs().list()) {
      const std::string bytes = text_of_file(store_->packs().path_of(pack));
      for (const auto& h : records_of(*store_, pack)) note(bytes_of_record(bytes, h));
    }
    const std::string journal = text_of_file(path() + "/branches/main/journal");
    const auto bytes = std::as_bytes(std::span(journal));
    const std::uint64_t seed =
        store_->checksum_seed() ^ store_->read_branch("main").journal.header.branch_id;
    for (std::size_t at = format::kJournalHeaderBytes; at < bytes.size();) {
      format::FrameHeader h;
      std::span<const std::byte> payload;
      if (!format::decode_frame(bytes.subspan(at), seed, h, payload)) {
        at += format::kFrameAlignBytes;
        continue;
      }
      note(journal.substr(at, format::kFrameHeaderBytes + h.payload_bytes + base::kSealBytes));
      at += static_cast<std::size_t>(format::frame_extent_bytes(h));
    }
  };
  work();
  note_all();
  // A crash leaves records that no version needs; the next writer overwrites them.
  writer_.reset();
  const std::string saved = directory_.path("saved");
  copy_directory(path(), saved);
  for (int round = 0; round < 5; ++round) {
    store_.reset();
    copy_directory(saved, path());
    store_ = fresh();
    auto writer = BranchWriter::open(*store_, "main");
    for (PageNumber p = 0; p < 30; ++p) mark(p);
    commit(*writer, model_, true);
    note_all();
    writer.reset();
    collect(3);
    note_all();
  }
  EXPECT_GT(seen.size(), 100u);
}

TEST_F(Encrypted, RefusesWhatWouldBePlain) {
  work();
  writer_.reset();
  EXPECT_TRUE(contains(
      error_text(Errc::unsupported,
                 [&] { repair_store(base::posix_fs(), path(), directory_.path("r"), nullptr); }),
      "the store is encrypted"));
  EXPECT_FALSE(files::exists(directory_.path("r")));
  const RepairReport found = repair_store(base::posix_fs(), path(), std::nullopt, nullptr);
  EXPECT_TRUE(found.lost.empty());
  EXPECT_EQ(found.saved.size(), contents_.size());
}

TEST_F(Encrypted, AStoreWithoutASecretIsNotCreated) {
  error_text(Errc::invalid_argument, [&] {
    StoreDirectory::create_encrypted(base::posix_fs(), directory_.path("t"), small_options(), {});
  });
  KeySource two;
  two.key_file = key_path();
  two.command = "echo x";
  error_text(Errc::invalid_argument, [&] {
    StoreDirectory::create_encrypted(base::posix_fs(), directory_.path("t"), small_options(), two);
  });
  EXPECT_FALSE(files::exists(directory_.path("t")));
}

}  // namespace
}  // namespace vellum::store::test
