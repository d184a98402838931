// The header of SQLite, as Debian's -dev package installs it. The library is loaded when it is needed
// (CLoader.h).
#pragma once
#include <sqlite3.h>

/// Lets SQLite copy the bytes of a bound text or BLOB: SQLITE_TRANSIENT, a cast that Swift does not
/// import.
static inline sqlite3_destructor_type sandboxctl_sqlite_transient(void) {
  return SQLITE_TRANSIENT;
}

/// Restricts a connection to a database that a stranger may have made (https://sqlite.org/
/// security.html, "Untrusted SQLite Database Files"): its schema is not trusted, views and triggers
/// do not work. The function of SQLite is variadic, which Swift does not import.
void sandboxctl_sqlite_restrict(sqlite3 *database);
