// The files that the program contains.

#ifndef CEMBEDDED_H
#define CEMBEDDED_H

#include <stddef.h>

/// The bytes of a file, which are constant.
typedef struct {
  const unsigned char *bytes;
  ptrdiff_t count;
} ce_file;

/// Tools/recover.py.
ce_file ce_recover_py(void);

// The files in policies/.
ce_file ce_common_yaml(void);
ce_file ce_apple_yaml(void);
ce_file ce_ios_yaml(void);
ce_file ce_flatpak_yaml(void);
ce_file ce_macos_yaml(void);
ce_file ce_snap_yaml(void);
ce_file ce_everything_yaml(void);
ce_file ce_android_yaml(void);
ce_file ce_systemd_yaml(void);
ce_file ce_xdg_yaml(void);

// The files in policies/interapp/.
ce_file ce_interapp_types_yaml(void);
ce_file ce_interapp_schemes_yaml(void);
ce_file ce_interapp_extensions_yaml(void);

/// A file with its name, a C string.
typedef struct {
  const char *name;
  ce_file file;
} ce_named_file;

/// The files in policies/migrations/, the general table first, and their number.
const ce_named_file *ce_migrations(ptrdiff_t *count);

/// The files in policies/scenarios/, sorted by name, and their number.
const ce_named_file *ce_scenarios(ptrdiff_t *count);

#endif
