#include "CSQLite.h"
#include <CLoader.h>

static struct ld_library library = {.file = "libsqlite3.so.0", .package = "libsqlite3-0"};

#define FORWARD(...) LD_FORWARD(&library, __VA_ARGS__)

FORWARD(int, sqlite3_bind_blob, sqlite3_stmt *, int, const void *, int, void (*)(void *))
FORWARD(int, sqlite3_bind_int64, sqlite3_stmt *, int, sqlite3_int64)
FORWARD(int, sqlite3_bind_text, sqlite3_stmt *, int, const char *, int, void (*)(void *))
FORWARD(int, sqlite3_close_v2, sqlite3 *)
FORWARD(const void *, sqlite3_column_blob, sqlite3_stmt *, int)
FORWARD(int, sqlite3_column_bytes, sqlite3_stmt *, int)
FORWARD(sqlite3_int64, sqlite3_column_int64, sqlite3_stmt *, int)
FORWARD(int, sqlite3_column_type, sqlite3_stmt *, int)
FORWARD(
    int, sqlite3_deserialize, sqlite3 *, const char *, unsigned char *, sqlite3_int64,
    sqlite3_int64, unsigned int)
FORWARD(const char *, sqlite3_errmsg, sqlite3 *)
FORWARD(
    int, sqlite3_exec, sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *,
    char **)
FORWARD(int, sqlite3_finalize, sqlite3_stmt *)
FORWARD(int, sqlite3_limit, sqlite3 *, int, int)
FORWARD(int, sqlite3_open_v2, const char *, sqlite3 **, int, const char *)
FORWARD(int, sqlite3_prepare_v2, sqlite3 *, const char *, int, sqlite3_stmt **, const char **)
FORWARD(int, sqlite3_reset, sqlite3_stmt *)
FORWARD(
    int, sqlite3_set_authorizer, sqlite3 *,
    int (*)(void *, int, const char *, const char *, const char *, const char *), void *)
FORWARD(int, sqlite3_step, sqlite3_stmt *)

void sandboxctl_sqlite_restrict(sqlite3 *database) {
  int (*set)(sqlite3 *, int, ...) = LD_FUNCTION(&library, sqlite3_db_config);
  set(database, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0);
  set(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)0);
  set(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, (int *)0);
  set(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)0);
}
