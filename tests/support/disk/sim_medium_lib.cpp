#include "support/disk/sim_medium_lib.hpp"

#include <algorithm>

namespace vellum::sim {

using OpKind = Op::OpKind;

void Atom::apply_to(Disk& disk) const {
  switch (kind) {
    case AtomKind::write:
      return disk.edit(inode).content.write(offset, bytes);
    case AtomKind::extend: {
      Content& content = disk.edit(inode).content;
      if (content.size() < offset) content.resize(offset);
      return;
    }
    case AtomKind::truncate:
      return disk.edit(inode).content.resize(offset);
    case AtomKind::allocate:
      return disk.edit(inode).content.allocate(offset, length);
    case AtomKind::punch:
      return disk.edit(inode).content.punch(offset, length);
    case AtomKind::link:
      disk.edit(directory).entries[name] = inode;
      return;
    case AtomKind::unlink:
      disk.edit(directory).entries.erase(name);
      return;
  }
}

namespace {

bool is_data(const Atom& a) {
  return a.kind != Atom::AtomKind::link && a.kind != Atom::AtomKind::unlink;
}

Atom data_atom(Atom::AtomKind kind, const Op& op, std::size_t position) {
  Atom a;
  a.kind = kind;
  a.inode = op.inode;
  a.offset = op.offset;
  a.length = op.length;
  a.op = position;
  if (op.bytes != nullptr) a.bytes = *op.bytes;
  return a;
}

Atom name_atom(Atom::AtomKind kind, const Op& op, InodeId directory, const std::string& name,
               std::size_t position) {
  Atom a;
  a.kind = kind;
  a.inode = op.inode;
  a.directory = directory;
  a.name = name;
  a.op = position;
  return a;
}

}  // namespace

void Medium::make_durable(const std::function<bool(const Atom&)>& which) {
  std::vector<Atom> left;
  for (Atom& a : pending_) {
    if (which(a)) {
      a.apply_to(durable_);
    } else {
      left.push_back(std::move(a));
    }
  }
  pending_ = std::move(left);
}

// The names in a directory become durable. A file that was renamed into it then has no other name;
// a name that was created and renamed since never existed.
void Medium::sync_directory(InodeId directory) {
  std::vector<std::size_t> renames;
  for (const Atom& a : pending_) {
    if (a.kind == Atom::AtomKind::link && a.directory == directory) renames.push_back(a.op);
  }
  const auto of_rename = [&](const Atom& a) {
    return a.second_half && std::find(renames.begin(), renames.end(), a.op) != renames.end();
  };
  std::vector<std::pair<InodeId, std::string>> gone;
  for (const Atom& a : pending_) {
    if (of_rename(a)) gone.emplace_back(a.directory, a.name);
  }
  make_durable([&](const Atom& a) {
    if (is_data(a)) return false;
    if (a.directory == directory || of_rename(a)) return true;
    return std::find(gone.begin(), gone.end(), std::pair(a.directory, a.name)) != gone.end();
  });
}

// After a failed sync the kernel regards the data as clean: some of it reached the medium, the rest
// never will.
void Medium::lose(InodeId inode) {
  std::vector<Atom> left;
  for (const Atom& a : torn(kSectorBytes)) {
    if (is_data(a) && a.inode == inode && random_() % 2 == 0) a.apply_to(durable_);
  }
  std::erase_if(pending_, [&](const Atom& a) { return is_data(a) && a.inode == inode; });
}

void Medium::add_atoms(const Op& op, std::size_t position) {
  const auto data = [&](Atom::AtomKind kind) { pending_.push_back(data_atom(kind, op, position)); };
  switch (op.kind) {
    case OpKind::write:
      return data(Atom::AtomKind::write);
    case OpKind::truncate:
      return data(Atom::AtomKind::truncate);
    case OpKind::allocate:
      return data(Atom::AtomKind::allocate);
    case OpKind::punch:
      return data(Atom::AtomKind::punch);
    case OpKind::link:
      pending_.push_back(name_atom(Atom::AtomKind::link, op, op.directory, op.name, position));
      return;
    case OpKind::unlink:
      pending_.push_back(name_atom(Atom::AtomKind::unlink, op, op.directory, op.name, position));
      return;
    case OpKind::rename:
      pending_.push_back(
          name_atom(Atom::AtomKind::link, op, op.to_directory, op.to_name, position));
      pending_.push_back(name_atom(Atom::AtomKind::unlink, op, op.directory, op.name, position));
      pending_.back().second_half = true;
      return;
    default:
      return;
  }
}

void Medium::take(const Op& op, std::size_t position) {
  switch (op.kind) {
    case OpKind::new_inode:
      durable_.add_inode(op.is_directory);
      return;
    case OpKind::sync_data:
      return make_durable([&](const Atom& a) { return is_data(a) && a.inode == op.inode; });
    case OpKind::sync_directory:
      return sync_directory(op.inode);
    case OpKind::lost_sync:
      return lose(op.inode);
    default:
      return add_atoms(op, position);
  }
}

std::vector<Atom> Medium::torn(std::uint64_t piece_bytes) const {
  std::vector<Atom> out;
  for (const Atom& a : pending_) {
    if (a.kind != Atom::AtomKind::write || a.bytes.empty()) {
      out.push_back(a);
    } else {
      tear(a, piece_bytes, out);
    }
  }
  return out;
}

void Medium::tear(const Atom& write, std::uint64_t piece_bytes, std::vector<Atom>& out) const {
  const std::uint64_t end = write.offset + write.bytes.size();
  if (durable_.at(write.inode).content.size() < end) {
    Atom size = write;
    size.kind = Atom::AtomKind::extend;
    size.offset = end;
    size.bytes = {};
    out.push_back(std::move(size));
  }
  for (std::uint64_t at = write.offset; at < end;) {
    const std::uint64_t next = std::min(end, (at / piece_bytes + 1) * piece_bytes);
    Atom piece = write;
    piece.offset = at;
    piece.bytes = write.bytes.subspan(static_cast<std::size_t>(at - write.offset),
                                      static_cast<std::size_t>(next - at));
    out.push_back(std::move(piece));
    at = next;
  }
}

Disk Medium::with(const std::vector<Atom>& atoms,
                  const std::function<bool(std::size_t)>& chosen) const {
  Disk image = durable_;
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    if (chosen(i)) atoms[i].apply_to(image);
  }
  return image;
}

}  // namespace vellum::sim
