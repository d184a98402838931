// The header of SQLite, as Debian's -dev package installs it.
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
static inline void sandboxctl_sqlite_restrict(sqlite3 *database) {
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)0);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, (int *)0);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)0);
}
