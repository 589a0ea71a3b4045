#include "group/mpi/communicator.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/fail.hpp"

namespace vellum::mpi {
namespace {

// A block has the length of a message and its first bytes.
constexpr int kBlockBytes = 320;
constexpr std::size_t kFirstBytes = kBlockBytes - sizeof(std::uint64_t);
constexpr int kRestTag = 1;

void check(int result, const char* call) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(result, text, &length);
  fail(Errc::io, "{}: {}", call, std::string(text, static_cast<std::size_t>(length)));
}

using Block = std::array<std::byte, kBlockBytes>;

Block block_of(std::span<const std::byte> message) {
  Block block{};
  const std::uint64_t length = message.size();
  std::memcpy(block.data(), &length, sizeof length);
  std::memcpy(block.data() + sizeof length, message.data(), std::min(message.size(), kFirstBytes));
  return block;
}

// A message of its full length, with the part in the block; the caller receives the rest.
group::Bytes begin_message(const std::byte* block) {
  std::uint64_t length = 0;
  std::memcpy(&length, block, sizeof length);
  if (length > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
    fail(Errc::io, "a rank sent a message of {} bytes", length);
  }
  group::Bytes message(length);
  std::memcpy(message.data(), block + sizeof length, std::min<std::size_t>(length, kFirstBytes));
  return message;
}

bool has_rest(std::span<const std::byte> message) { return message.size() > kFirstBytes; }
int rest_bytes(std::span<const std::byte> message) {
  return static_cast<int>(message.size() - kFirstBytes);
}

}  // namespace

Communicator::Communicator(MPI_Comm given) {
  int is_initialised = 0, is_finalised = 0;
  MPI_Initialized(&is_initialised);
  MPI_Finalized(&is_finalised);
  if (is_initialised == 0 || is_finalised != 0) {
    fail(Errc::invalid_argument, "MPI is not initialised: call MPI_Init() first");
  }
  if (given == MPI_COMM_NULL) fail(Errc::invalid_argument, "the communicator is MPI_COMM_NULL");
  check(MPI_Comm_dup(given, &communicator_), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(communicator_, &rank_);
  MPI_Comm_size(communicator_, &size_);
}

Communicator::~Communicator() {
  int is_finalised = 0;
  MPI_Finalized(&is_finalised);
  if (is_finalised == 0) MPI_Comm_free(&communicator_);
}

std::vector<group::Bytes> Communicator::gather(std::span<const std::byte> mine) {
  const Block block = block_of(mine);
  const auto ranks = static_cast<std::size_t>(size_);
  group::Bytes blocks(rank_ == 0 ? ranks * kBlockBytes : 0);
  check(MPI_Gather(block.data(), kBlockBytes, MPI_BYTE, blocks.data(), kBlockBytes, MPI_BYTE, 0,
                   communicator_),
        "MPI_Gather");
  if (rank_ != 0) {
    if (has_rest(mine)) {
      check(MPI_Send(mine.data() + kFirstBytes, rest_bytes(mine), MPI_BYTE, 0, kRestTag,
                     communicator_),
            "MPI_Send");
    }
    return {};
  }
  std::vector<group::Bytes> messages(ranks);
  messages[0].assign(mine.begin(), mine.end());
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    group::Bytes& message = messages[rank];
    message = begin_message(blocks.data() + rank * kBlockBytes);
    if (!has_rest(message)) continue;
    check(MPI_Recv(message.data() + kFirstBytes, rest_bytes(message), MPI_BYTE,
                   static_cast<int>(rank), kRestTag, communicator_, MPI_STATUS_IGNORE),
          "MPI_Recv");
  }
  return messages;
}

group::Bytes Communicator::broadcast(group::Bytes bytes, int from) {
  Block block{};
  if (rank_ == from) block = block_of(bytes);
  check(MPI_Bcast(block.data(), kBlockBytes, MPI_BYTE, from, communicator_), "MPI_Bcast");
  group::Bytes message = rank_ == from ? std::move(bytes) : begin_message(block.data());
  if (has_rest(message)) {
    check(
        MPI_Bcast(message.data() + kFirstBytes, rest_bytes(message), MPI_BYTE, from, communicator_),
        "MPI_Bcast");
  }
  return message;
}

}  // namespace vellum::mpi
