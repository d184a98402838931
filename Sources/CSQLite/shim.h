// The header of SQLite, as Debian's -dev package installs it.
#pragma once
#include <sqlite3.h>

/// Lets SQLite copy the bytes of a bound text or BLOB: SQLITE_TRANSIENT, a cast that Swift does not
/// import.
static inline sqlite3_destructor_type sandboxctl_sqlite_transient(void) {
  return SQLITE_TRANSIENT;
}
