import Foundation
import Migration
import SystemIO
import TestSupport
import Testing

/// The identifiers of an app on both sides.
struct AppPairingTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory("pairing") }

  private func pairing(
    _ from: Packaging, _ to: Packaging, installed: Set<ByteString> = []
  ) -> AppPairing {
    AppPairing(
      from: AppPairing.Side(from, home: directory.path("old")),
      to: AppPairing.Side(to, home: directory.path("new")), in: builtin, installed: installed)
  }

  @Test func tablesNameTheAppInEachForm() throws {
    for name: ByteString in ["firefox", "Firefox", "org.mozilla.firefox"] {
      let route = try pairing(.deb, .flatpak).route(for: name)
      #expect(route.to.app == "org.mozilla.firefox")
      #expect(route.table?.name == "firefox")
      #expect(try pairing(.flatpak, .snap).route(for: name).to.app == "firefox")
    }
  }

  @Test func appsWithoutATableKeepTheirIdentifier() throws {
    try directory.write("x", at: "old/.var/app/org.example.Notes/data/x")
    let route = try pairing(.flatpak, .flatpak).route(for: "notes")
    #expect(route.from.app == "org.example.Notes" && route.to.app == "org.example.Notes")
    let error = #expect(throws: OperationError.self) {
      try pairing(.flatpak, .snap).route(for: "notes")
    }
    #expect(error?.kind == .notFound)
  }

  @Test func unknownAndAmbiguousNamesAreRefused() throws {
    let unknown = #expect(throws: OperationError.self) {
      try pairing(.flatpak, .host).route(for: "nothing")
    }
    #expect(unknown?.code == .noApp)
    try directory.write("x", at: "old/.var/app/org.example.Notes/x")
    try directory.write("x", at: "old/.var/app/net.example.Notes/x")
    let several = #expect(throws: OperationError.self) {
      try pairing(.flatpak, .flatpak).route(for: "notes")
    }
    #expect(several?.code == .ambiguousApp)
  }

  @Test func allAppsOfASandboxHaveARouteOrAReason() throws {
    for app in ["org.mozilla.firefox", "org.example.Notes"] {
      try directory.write("x", at: ByteString("old/.var/app/\(app)/data/x"))
    }
    let same = pairing(.flatpak, .flatpak).all()
    #expect(same.routes.map(\.to.app) == ["org.example.Notes", "org.mozilla.firefox"])
    let snaps = pairing(.flatpak, .snap).all()
    #expect(snaps.routes.map(\.to.app) == ["firefox"])
    #expect(snaps.without.map(\.path) == ["org.example.Notes"])
  }

  @Test func outsideSandboxesInstalledAppsGetTheirData() throws {
    try directory.write("x", at: "old/.mozilla/firefox/profiles.ini")
    try directory.write("x", at: "old/.config/notes/x")
    try directory.write("x", at: "old/.config/dconf/user")
    let none = pairing(.host, .flatpak).all()
    #expect(none.routes.isEmpty)
    #expect(none.without.map(\.path) == ["org.mozilla.firefox"])
    #expect(none.without.first?.remark.contains("not installed in the target (1 B") == true)
    #expect(none.unnamed.map(\.path) == [".config/notes"])
    let found = pairing(
      .host, .flatpak, installed: ["org.mozilla.firefox", "org.example.Notes", "org.example.None"]
    ).all()
    #expect(found.routes.map(\.to.app) == ["org.example.Notes", "org.mozilla.firefox"])
    #expect(found.without.isEmpty && found.unnamed.isEmpty)
  }

  /// A directory that cannot be listed seems to be empty, so it is reported.
  @Test(
    arguments: [
      (.host, ".config", ".config"), (.flatpak, ".var/app", ".var/app"),
      (.flatpak, ".var", ".var/app"), (.snap, "snap", "snap"),
    ] as [(Packaging, ByteString, ByteString)])
  func directoriesBehindLinksAreNamed(form: Packaging, link: ByteString, named: ByteString) throws {
    try directory.write("x", at: "old/.config/notes/x")
    #expect(pairing(form, .host).all().unreadable.isEmpty)
    try directory.write("x", at: "elsewhere/app/x")
    let link = directory.path("old").appending(link)
    try? FileManager.default.removeItem(atPath: link.description)
    try FileManager.default.createDirectory(
      atPath: link.parent.description, withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: link.description, withDestinationPath: directory.path("elsewhere").description)
    #expect(pairing(form, .host).all().unreadable.map(\.path) == [named])
  }

  /// Data that belongs to no app is listed with its size, except that of shells, the session and
  /// sandboxes.
  @Test func unnamedDataHasASize() throws {
    for (path, text) in [
      (".oldapp/a", "12345"), (".oldapp/b/c", "678"), (".config/tool/x", "1"),
      (".bash_sessions/x", "x"), (".oh-my-zsh/x", "x"), (".var/app/org.example.A/x", "x"),
      (".cache/tool/x", "x"), (".local/share/flatpak/app/x", "x"), (".profile", "x"),
      ("Documents/x", "x"), (".toolrc", "12"), (".zshrc", "x"), (".Xauthority", "x"),
    ] {
      try directory.write(text, at: ByteString("old/\(path)"))
    }
    let unnamed = pairing(.host, .flatpak).all().unnamed
    #expect(unnamed.map(\.path) == [".config/tool", ".oldapp", ".toolrc"])
    #expect(unnamed.map(\.bytes) == [1, 8, 2])
    #expect(unnamed.map(\.files) == [1, 2, 1])
  }

  /// Between two home directories outside sandboxes, every name in the base directories is an app,
  /// and so is each hidden entry. Other entries in the home directory are listed.
  @Test func outsideSandboxesEveryNameIsAnApp() throws {
    for path in [
      ".config/Tool/a", ".local/share/Tool/b", ".config/tool/c", ".config/single", ".thunderbird/x",
      ".config/dconf/user", ".oldapp/a", ".toolrc", ".bashrc", ".config/.toolrc/d", "Documents/x",
      "snap/x/current",
    ] {
      try directory.write("x", at: ByteString("old/\(path)"))
    }
    let found = pairing(.host, .host).all()
    #expect(
      found.routes.map(\.to.app) == [".oldapp", ".toolrc", "Tool", "single", "thunderbird", "tool"])
    #expect(found.unnamed.map(\.path) == ["Documents"] && found.unnamed.map(\.bytes) == [1])
    #expect(found.routes.first?.destination(of: ".oldapp/a") == .path(".oldapp/a"))
    #expect(found.routes[1].sources.contains(".config/.toolrc"))
    #expect(found.routes[1].destination(of: ".toolrc") == .path(".toolrc"))
    let route = try pairing(.host, .deb).route(for: "Tool")
    #expect(route.destination(of: ".config/Tool/a") == .path(".config/Tool/a"))
    #expect(route.destination(of: ".config/tool/c") == .noPlace)
    #expect(throws: OperationError.self) { try pairing(.host, .host).route(for: "nothing") }
  }
}
