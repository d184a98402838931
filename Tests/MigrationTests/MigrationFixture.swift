import AppPackages
import BuiltinPolicies
import DeviceScan
import DeviceTransaction
import Foundation
import Migration
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport

/// Two home directories, `old` and `new`, with a Firefox profile of the host in `old`.
struct MigrationFixture {
  let directory: TemporaryDirectory
  let route: MigrationRoute

  static let profile: ByteString = ".mozilla/firefox/x.default"

  init(to packaging: Packaging = .flatpak) throws {
    directory = try TemporaryDirectory("migration")
    let app: ByteString = packaging == .flatpak ? "org.mozilla.firefox" : "firefox"
    route = makeRoute(
      "firefox", from: .deb, to: app, as: packaging,
      homes: (directory.path("old"), directory.path("new")))
    try directory.write("places", at: Self.source("places.sqlite"))
    try directory.write("lock", at: Self.source(".parentlock"))
    try directory.write(
      """
      [Profile0]
      Name=x
      IsRelative=0
      Path=\(directory.string)/old/.mozilla/firefox/x.default

      """, at: "old/.mozilla/firefox/profiles.ini")
    _ = try Directory.make(path: directory.path("new/.var/app"))
  }

  /// Returns the path of an entry of the profile in `old`.
  static func source(_ name: ByteString) -> ByteString {
    ByteString("old").appending(profile).appending(name)
  }

  /// Returns the path of an entry of the profile in the Flatpak's data in `new`.
  static func target(_ name: ByteString) -> ByteString {
    ByteString("new/.var/app/org.mozilla.firefox").appending(profile).appending(name)
  }

  /// Returns the policy of a layout.
  static func policy(_ layout: Layout) throws -> CompiledPolicy {
    let library = PolicyLibrary(
      BuiltinPolicies.files.map {
        PolicySource(name: "builtin:\($0.name)", bytes: $0.bytes, origin: .builtin)
      })
    return try library.compile(PolicyRequest(layout: layout))
  }

  /// Plans the migration.
  func plan() throws -> AppMigration { try AppMigration.make(route) }

  /// Carries out a migration without a snapshot.
  func run(
    _ migration: AppMigration, isForced: Bool = false,
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) throws -> MigrationReport {
    let target = try MigrationTarget.find(for: migration)
    let scan = target.scan(
      policy: try Self.policy(target.device.layout),
      options: ScanOptions(destination: .unrestricted))
    var options = MigrationOperation.Options()
    options.savesFirst = false
    options.isForced = isForced
    return try MigrationOperation(
      migration, to: target, scanned: scan, options, saving: nil, isStopping: isStopping
    ).run()
  }

  /// Recovers the device that a migration changes.
  func recover(_ migration: AppMigration) throws -> RecoveryReport {
    let device = try MigrationTarget.find(for: migration).device
    return try Recovery(device, policy: Self.policy(device.layout)).run()
  }

  /// All paths below `new`, except the program's own directory.
  func newPaths() throws -> Set<ByteString> {
    Set(
      try TreeRecord.all(in: directory, "new").keys.filter { path in
        !path.components.contains(".sandboxctl")
      })
  }
}
