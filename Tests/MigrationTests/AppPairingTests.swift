import Migration
import SystemIO
import TestSupport
import Testing

/// The identifiers of an app on both sides.
@Suite struct AppPairingTests {
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
    #expect(none.without.map(\.path) == [".config/notes", "org.mozilla.firefox"])
    let found = pairing(
      .host, .flatpak, installed: ["org.mozilla.firefox", "org.example.Notes", "org.example.None"]
    ).all()
    #expect(found.routes.map(\.to.app) == ["org.example.Notes", "org.mozilla.firefox"])
    #expect(found.without.isEmpty)
  }
}
