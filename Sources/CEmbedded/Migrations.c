// The built-in migration tables. `#embed` is explained in CEmbedded.c.

#include "CEmbedded.h"

#define TABLE(name) {#name ".yaml", {name, sizeof name}}

static const unsigned char xdg[] = {
#embed "../../policies/migrations/xdg.yaml"
};

static const unsigned char audacity[] = {
#embed "../../policies/migrations/audacity.yaml"
};

static const unsigned char blender[] = {
#embed "../../policies/migrations/blender.yaml"
};

static const unsigned char brave[] = {
#embed "../../policies/migrations/brave.yaml"
};

static const unsigned char chrome[] = {
#embed "../../policies/migrations/chrome.yaml"
};

static const unsigned char chromium[] = {
#embed "../../policies/migrations/chromium.yaml"
};

static const unsigned char discord[] = {
#embed "../../policies/migrations/discord.yaml"
};

static const unsigned char edge[] = {
#embed "../../policies/migrations/edge.yaml"
};

static const unsigned char element[] = {
#embed "../../policies/migrations/element.yaml"
};

static const unsigned char evolution[] = {
#embed "../../policies/migrations/evolution.yaml"
};

static const unsigned char firefox[] = {
#embed "../../policies/migrations/firefox.yaml"
};

static const unsigned char gimp[] = {
#embed "../../policies/migrations/gimp.yaml"
};

static const unsigned char inkscape[] = {
#embed "../../policies/migrations/inkscape.yaml"
};

static const unsigned char keepassxc[] = {
#embed "../../policies/migrations/keepassxc.yaml"
};

static const unsigned char krita[] = {
#embed "../../policies/migrations/krita.yaml"
};

static const unsigned char libreoffice[] = {
#embed "../../policies/migrations/libreoffice.yaml"
};

static const unsigned char obs[] = {
#embed "../../policies/migrations/obs.yaml"
};

static const unsigned char obsidian[] = {
#embed "../../policies/migrations/obsidian.yaml"
};

static const unsigned char signal[] = {
#embed "../../policies/migrations/signal.yaml"
};

static const unsigned char slack[] = {
#embed "../../policies/migrations/slack.yaml"
};

static const unsigned char spotify[] = {
#embed "../../policies/migrations/spotify.yaml"
};

static const unsigned char steam[] = {
#embed "../../policies/migrations/steam.yaml"
};

static const unsigned char telegram[] = {
#embed "../../policies/migrations/telegram.yaml"
};

static const unsigned char thunderbird[] = {
#embed "../../policies/migrations/thunderbird.yaml"
};

static const unsigned char vivaldi[] = {
#embed "../../policies/migrations/vivaldi.yaml"
};

static const unsigned char vlc[] = {
#embed "../../policies/migrations/vlc.yaml"
};

static const unsigned char vscode[] = {
#embed "../../policies/migrations/vscode.yaml"
};

static const unsigned char vscodium[] = {
#embed "../../policies/migrations/vscodium.yaml"
};

static const ce_named_file tables[] = {
  TABLE(xdg),
  TABLE(audacity),
  TABLE(blender),
  TABLE(brave),
  TABLE(chrome),
  TABLE(chromium),
  TABLE(discord),
  TABLE(edge),
  TABLE(element),
  TABLE(evolution),
  TABLE(firefox),
  TABLE(gimp),
  TABLE(inkscape),
  TABLE(keepassxc),
  TABLE(krita),
  TABLE(libreoffice),
  TABLE(obs),
  TABLE(obsidian),
  TABLE(signal),
  TABLE(slack),
  TABLE(spotify),
  TABLE(steam),
  TABLE(telegram),
  TABLE(thunderbird),
  TABLE(vivaldi),
  TABLE(vlc),
  TABLE(vscode),
  TABLE(vscodium),
};

const ce_named_file *ce_migrations(ptrdiff_t *count) {
  *count = sizeof tables / sizeof *tables;
  return tables;
}
