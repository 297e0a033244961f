#pragma once

#include <string>
#include <string_view>

#include "xylem/checkpoint/storage/kv_store.h"

namespace xylem::checkpoint {

// Changes of several keys that become visible together or not at all. Reads see the store as it was
// when the transaction began, with the transaction's own changes. Changes are kept in memory until
// `commit`. For one thread at a time.
class KvTransaction : public KvStore {
 public:
  virtual void write(std::string_view key, std::string value) = 0;
  // A key that is absent stays so.
  virtual void erase(std::string_view key) = 0;
  virtual void erase_prefix(std::string_view prefix) = 0;
  // Makes the changes durable and visible, at once and after any crash; without changes it writes
  // nothing. UserError if the store was changed since the transaction began: nothing is written, and
  // the caller begins anew. After an EnvironmentError readers see all changes or none. Ends the
  // transaction: later calls but reads are a UserError.
  virtual void commit() = 0;
  // Forgets the changes and ends the transaction, as destruction without commit does.
  virtual void abort() = 0;
};

}  // namespace xylem::checkpoint
