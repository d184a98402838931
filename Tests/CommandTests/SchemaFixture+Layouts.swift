import SystemIO
import TestSupport

extension SchemaFixture {
  /// Makes a system with snaps and a home with a Flatpak app, and backs each up to a separate
  /// repository, for members that other answers do not have.
  func makeLayouts() throws {
    try SnapTests.makeSystem(in: cli)
    try makeFlatpakHome()
    try makeBaseDirectories()
    try makeMovers()
    for (name, device) in [("snaps", SnapTests.device), ("flats", Self.flatpakDevice)] {
      _ = try cli.succeed("init \(name) --plain")
      _ = try cli.succeed("backup \(device) --repo \(name) --quiet")
    }
  }

  static let flatpakDevice = "--root flat --layout flatpak"

  static let homeDevice = "--root desk --layout xdg"
  static let systemDevice = "--root system --layout systemd"

  /// Makes a home with all base directories, and a system with a unit.
  private func makeBaseDirectories() throws {
    for path: ByteString in [
      "desk/.config/editor/x", "desk/.config/file", "desk/.local/share/editor/x",
      "desk/.local/state/editor/x", "desk/.cache/editor/x", "system/var/lib/web/x",
      "system/var/log/web/x", "system/run/web/x",
    ] {
      try cli.directory.write("x", at: path)
    }
    try cli.directory.write(
      "[Service]\nStateDirectory=web\nLogsDirectory=web\nRuntimeDirectory=web\n",
      at: "system/usr/lib/systemd/system/web.service")
  }

  /// Makes a home with a profile of Firefox for each kind of result of a migration, and one with a
  /// Flatpak and a snap of it.
  private func makeMovers() throws {
    let profile: ByteString = ".mozilla/firefox/x"
    let movers = ByteString("movers").appending(profile)
    let old = "\(cli.directory.string)/movers/\(profile)"
    for (path, text) in [
      (movers.appending("places.sqlite"), "places"), (movers.appending("lock"), "lock"),
      (movers.appending("extensions.json"), "not JSON"),
      (
        "movers/.mozilla/firefox/profiles.ini",
        "[Profile0]\nIsRelative=0\nPath=\(old)\n[Profile1]\nIsRelative=0\nPath=/elsewhere\n"
      ),
      (
        ByteString("moved/.var/app/org.mozilla.firefox").appending(profile)
          .appending("places.sqlite"), "another"
      ),
      ("moved/snap/firefox/common/x", "x"), ("movers/.oldapp/x", "x"),
    ] as [(ByteString, String)] {
      try cli.directory.write(text, at: path)
    }
    try Directory.open(path: cli.directory.path(movers))
      .createLink("own", to: ByteString(old).appending("places.sqlite"))
  }

  /// Makes an app with all of Flatpak's records, without Flatpak.
  private func makeFlatpakHome() throws {
    let installation: ByteString = "flat/.local/share/flatpak"
    let app = installation.appending("app/org.example.Hello")
    let deployed = app.appending("x86_64/stable/abc123")
    for (path, text) in [
      ("flat/.var/app/org.example.Hello/data/notes", "a note"),
      (deployed.appending("deploy"), "lab\0abc123\0"),
      (
        deployed.appending("metadata"),
        "[Application]\nname=x\nruntime=org.example.Platform/x86_64/1\n"
      ),
      (installation.appending("repo/config"), "[remote \"lab\"]\nurl=https://example.org/repo\n"),
    ] as [(ByteString, String)] {
      try cli.directory.write(text, at: path)
    }
    try Directory.open(path: cli.directory.path(app)).createLink("current", to: "x86_64/stable")
    try Directory.open(path: cli.directory.path(app.appending("x86_64/stable")))
      .createLink("active", to: "abc123")
  }
}
