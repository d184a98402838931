// SwiftPM's `.embedInCode` writes an array literal, which takes the Swift compiler 20 seconds for
// 100 KB in each build. `#embed` (C23) takes 20 milliseconds.

#include "CEmbedded.h"

#define RETURN(file) return (ce_file){file, sizeof file}

static const unsigned char recover_py[] = {
#embed "../../Tools/recover.py"
};

ce_file ce_recover_py(void) { RETURN(recover_py); }

static const unsigned char common_yaml[] = {
#embed "../../policies/common.yaml"
};

ce_file ce_common_yaml(void) { RETURN(common_yaml); }

static const unsigned char apple_yaml[] = {
#embed "../../policies/apple.yaml"
};

ce_file ce_apple_yaml(void) { RETURN(apple_yaml); }

static const unsigned char ios_yaml[] = {
#embed "../../policies/ios.yaml"
};

ce_file ce_ios_yaml(void) { RETURN(ios_yaml); }

static const unsigned char flatpak_yaml[] = {
#embed "../../policies/flatpak.yaml"
};

ce_file ce_flatpak_yaml(void) { RETURN(flatpak_yaml); }

static const unsigned char macos_yaml[] = {
#embed "../../policies/macos.yaml"
};

ce_file ce_macos_yaml(void) { RETURN(macos_yaml); }

static const unsigned char snap_yaml[] = {
#embed "../../policies/snap.yaml"
};

ce_file ce_snap_yaml(void) { RETURN(snap_yaml); }

static const unsigned char everything_yaml[] = {
#embed "../../policies/everything.yaml"
};

ce_file ce_everything_yaml(void) { RETURN(everything_yaml); }

static const unsigned char android_yaml[] = {
#embed "../../policies/android.yaml"
};

ce_file ce_android_yaml(void) { RETURN(android_yaml); }

static const unsigned char systemd_yaml[] = {
#embed "../../policies/systemd.yaml"
};

ce_file ce_systemd_yaml(void) { RETURN(systemd_yaml); }

static const unsigned char xdg_yaml[] = {
#embed "../../policies/xdg.yaml"
};

ce_file ce_xdg_yaml(void) { RETURN(xdg_yaml); }

static const unsigned char interapp_types_yaml[] = {
#embed "../../policies/interapp/types.yaml"
};

ce_file ce_interapp_types_yaml(void) { RETURN(interapp_types_yaml); }

static const unsigned char interapp_schemes_yaml[] = {
#embed "../../policies/interapp/schemes.yaml"
};

ce_file ce_interapp_schemes_yaml(void) { RETURN(interapp_schemes_yaml); }

static const unsigned char interapp_extensions_yaml[] = {
#embed "../../policies/interapp/extensions.yaml"
};

ce_file ce_interapp_extensions_yaml(void) { RETURN(interapp_extensions_yaml); }
