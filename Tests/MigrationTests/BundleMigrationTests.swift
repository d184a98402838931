import AppPackages
import DeviceScan
import Foundation
import Migration
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// The container-migration.plist of a macOS app as the route into its container.
struct BundleMigrationTests {
  private let directory: TemporaryDirectory
  private static let app: ByteString = "com.example.ledger"
  private static let container: ByteString = "Users/you/Library/Containers/com.example.ledger/Data"

  /// A Mac's disk with the data of an app from before it was sandboxed.
  init() throws {
    directory = try TemporaryDirectory("mac")
    try directory.write(
      """
      <plist><dict><key>CFBundleIdentifier</key><string>com.example.ledger</string>
      <key>CFBundleName</key><string>Ledger</string>
      <key>CFBundleShortVersionString</key><string>2.1</string></dict></plist>
      """, at: "Applications/Ledger.app/Contents/Info.plist")
    try list(
      """
      <plist><dict><key>Move</key><array><string>${ApplicationSupport}/Ledger</string>
      <array><string>${Library}/Preferences/${BundleId}.plist</string>
      <string>${Library}/Preferences/old.plist</string></array></array>
      <key>Symlink</key><array><string>${Home}/Ledgers</string></array></dict></plist>
      """)
    for (path, text) in [
      ("Library/Application Support/Ledger/book.db", "book"),
      ("Library/Preferences/com.example.ledger.plist", "settings"), ("Ledgers/2026", "mine"),
      ("Library/Application Support/Other/x", "x"),
    ] {
      try directory.write(text, at: ByteString("Users/you/\(path)"))
    }
  }

  private func list(_ text: String) throws {
    try directory.write(
      text, at: "Applications/Ledger.app/Contents/Resources/container-migration.plist")
  }

  private var home: ByteString { directory.path("Users/you") }

  private func migration() throws -> AppMigration {
    let pairing = AppPairing(
      from: AppPairing.Side(.host, home: home), to: AppPairing.Side(.macOS, home: home),
      in: builtin.adding(BundleMigrations(home: home).tables), installed: [Self.app])
    return try AppMigration.make(try pairing.route(for: "Ledger"))
  }

  private func run(_ migration: AppMigration) throws {
    let target = try MigrationTarget.find(for: migration)
    #expect(target.device.layout == .macOS)
    let scan = target.scan(
      policy: try MigrationFixture.policy(.macOS),
      options: ScanOptions(destination: .unrestricted))
    var options = MigrationOperation.Options()
    options.savesFirst = false
    let report = try MigrationOperation(
      migration, to: target, scanned: scan, options, saving: nil
    ).run()
    #expect(report.isComplete, "\(report.remarks)")
  }

  private func content(_ path: ByteString) throws -> String {
    String(decoding: try directory.read(Self.container.appending(path)), as: UTF8.self)
  }

  @Test func bundlesHaveTablesAndVersions() throws {
    let found = BundleMigrations(home: home)
    #expect(found.tables.map(\.title) == ["Ledger"])
    #expect(found.tables.first?.places.count == 2)
    #expect(found.versions[Self.app] == AppVersion(version: "2.1", build: nil))
    #expect(found.problems.isEmpty)
  }

  @Test func dataFromBeforeTheSandboxMovesIntoANewContainer() throws {
    let before = try TreeRecord.all(in: directory, "Users/you/Library/Application Support")
    let migration = try migration()
    #expect(migration.plan.notes.first?.contains("'Ledgers' is not copied") == true)
    try run(migration)
    #expect(try content("Library/Application Support/Ledger/book.db") == "book")
    #expect(try content("Library/Preferences/old.plist") == "settings")
    #expect(
      try TreeRecord.all(in: directory, "Users/you/Library/Application Support") == before)
    #expect(try self.migration().isIdle)
  }

  @Test func aPresentContainerIsOnlyAddedTo() throws {
    try directory.write(
      "new", at: Self.container.appending("Library/Application Support/Ledger/book.db"))
    let migration = try migration()
    #expect(migration.plan.conflicts.count == 1)
    try run(migration)
    #expect(try content("Library/Application Support/Ledger/book.db") == "new")
    #expect(try content("Library/Preferences/old.plist") == "settings")
  }

  @Test func aContainersDataMovesBack() throws {
    try directory.write(
      "book", at: Self.container.appending("Library/Application Support/Ledger/book.db"))
    try directory.write("x", at: Self.container.appending("Documents/x"))
    _ = try Directory.make(path: directory.path("Users/me"))
    let pairing = AppPairing(
      from: AppPairing.Side(.macOS, home: home),
      to: AppPairing.Side(.host, home: directory.path("Users/me")),
      in: builtin.adding(BundleMigrations(home: home).tables), installed: [])
    let routes = pairing.all().routes
    #expect(routes.map(\.from.app) == [Self.app])
    let migration = try AppMigration.make(try #require(routes.first))
    #expect(
      migration.plan.topmostMoves.map(\.destination) == ["Library/Application Support/Ledger"])
    #expect(migration.plan.withoutPlace.map(\.files) == [1])
  }

  @Test func allAppsWithListsAreFound() throws {
    let pairing = AppPairing(
      from: AppPairing.Side(.host, home: home), to: AppPairing.Side(.macOS, home: home),
      in: builtin.adding(BundleMigrations(home: home).tables),
      installed: [Self.app, "com.example.x"])
    #expect(pairing.all().routes.map(\.to.app) == [Self.app])
    let error = #expect(throws: OperationError.self) { try pairing.route(for: "com.example.x") }
    #expect(error?.description.contains("container-migration.plist") == true)
  }

  @Test(arguments: [
    "<plist><dict><key>Move</key><array><string>/etc</string></array></dict></plist>",
    "<plist><dict><key>Move</key><array><string>${Home}/../x</string></array></dict></plist>", "x",
  ]) func anUnsafeListIsNotUsed(_ text: String) throws {
    try list(text)
    let found = BundleMigrations(home: home)
    #expect(found.tables.isEmpty)
    #expect(found.problems.map(\.path.lastComponent) == ["container-migration.plist"])
    let pairing = AppPairing(
      from: AppPairing.Side(.host, home: home), to: AppPairing.Side(.macOS, home: home),
      in: builtin, installed: [Self.app], refused: found.refused)
    let error = #expect(throws: OperationError.self) { try pairing.route(for: Self.app) }
    #expect(error?.parts.reason == "its container-migration.plist is not usable")
    #expect(found.versions[Self.app] != nil)
  }

  /// The list of a published app.
  @Test(.enabled(if: Shared.has("fixtures/migration"))) func aRealListIsATable() throws {
    let bytes = try Shared.bytes("fixtures/migration/container-migration.plist")
    try list(String(decoding: bytes, as: UTF8.self))
    try directory.write("bank", at: "Users/you/Library/Application Support/Pecunia/accounts")
    try run(try migration())
    #expect(try content("Library/Application Support/Pecunia/accounts") == "bank")
  }
}
