// The built-in scenarios. `#embed` is explained in CEmbedded.c.

#include "CEmbedded.h"

#define SCENARIO(name, bytes) {name ".yaml", {bytes, sizeof bytes}}

static const unsigned char delivered_file_survives[] = {
#embed "../../policies/scenarios/delivered-file-survives.yaml"
};

static const unsigned char exclusion_mark_of_a_directory[] = {
#embed "../../policies/scenarios/exclusion-mark-of-a-directory.yaml"
};

static const unsigned char first_exclusion_mark[] = {
#embed "../../policies/scenarios/first-exclusion-mark.yaml"
};

static const unsigned char interrupted_update_loses_nothing[] = {
#embed "../../policies/scenarios/interrupted-update-loses-nothing.yaml"
};

static const unsigned char offload_keeps_data[] = {
#embed "../../policies/scenarios/offload-keeps-data.yaml"
};

static const unsigned char purge_takes_caches_only[] = {
#embed "../../policies/scenarios/purge-takes-caches-only.yaml"
};

static const unsigned char restore_keeps_documents[] = {
#embed "../../policies/scenarios/restore-keeps-documents.yaml"
};

static const unsigned char restore_lacks_caches_and_temporary_files[] = {
#embed "../../policies/scenarios/restore-lacks-caches-and-temporary-files.yaml"
};

static const unsigned char update_keeps_documents_and_library[] = {
#embed "../../policies/scenarios/update-keeps-documents-and-library.yaml"
};

static const unsigned char update_may_drop_temporary_files[] = {
#embed "../../policies/scenarios/update-may-drop-temporary-files.yaml"
};

static const ce_named_file scenarios[] = {
  SCENARIO("delivered-file-survives", delivered_file_survives),
  SCENARIO("exclusion-mark-of-a-directory", exclusion_mark_of_a_directory),
  SCENARIO("first-exclusion-mark", first_exclusion_mark),
  SCENARIO("interrupted-update-loses-nothing", interrupted_update_loses_nothing),
  SCENARIO("offload-keeps-data", offload_keeps_data),
  SCENARIO("purge-takes-caches-only", purge_takes_caches_only),
  SCENARIO("restore-keeps-documents", restore_keeps_documents),
  SCENARIO("restore-lacks-caches-and-temporary-files", restore_lacks_caches_and_temporary_files),
  SCENARIO("update-keeps-documents-and-library", update_keeps_documents_and_library),
  SCENARIO("update-may-drop-temporary-files", update_may_drop_temporary_files),
};

const ce_named_file *ce_scenarios(ptrdiff_t *count) {
  *count = sizeof scenarios / sizeof *scenarios;
  return scenarios;
}
