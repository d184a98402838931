import Foundation
import SystemIO
import TestSupport
import Testing

/// Backups by other programs in the shared material.
private enum ForeignBackups {
  static let directory = Shared.root.appendingPathComponent("fixtures/backups")

  /// Without a message, because no material is required to have them.
  static var areThere: Bool { FileManager.default.fileExists(atPath: directory.path) }

  static func names(_ kind: String) -> [String] {
    let path = directory.appendingPathComponent(kind).path
    return ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }
}

/// Backups that devices and other programs made, if the shared material has any in
/// `fixtures/backups`: `itunes/NAME/` are plain ones of iTunes, `android/NAME.ab` those of Android,
/// with the password, if they are encrypted, in `NAME.ab.password`. An import contains the entries
/// that the backup's own manifest lists.
@Suite(.enabled(if: ForeignBackups.areThere)) struct ForeignBackupTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine()
    _ = try cli.succeed("init repo --plain --no-default")
  }

  @Test(arguments: ForeignBackups.names("itunes")) func everyRowOfAnITunesBackupIsImported(
    name: String
  ) throws {
    let backup = ForeignBackups.directory.appendingPathComponent("itunes/" + name).path
    let script = Shared.packageRoot
      .appendingPathComponent("Tests/CommandTests/Programs/count_itunes.py").path
    let counted = try Program.run("python3", ["-B", script, backup])
    try #require(counted.code == 0, "\(counted.errors)")
    let counts = try #require(try CommandLine.object(counted.output) as? [String: Int])
    let (files, lost) = (counts["files"] ?? 0, counts["lost"] ?? 0)
    let outcome = try cli.run(["import", "itunes", backup, "--json", "--repo", "repo"])
    #expect(outcome.code == (lost > 0 ? 3 : 0), "\(outcome.errors.prefix(2000))")
    let report = try CommandLine.object(outcome.output)
    #expect(report["files"] as? Int == files && report["skipped"] as? Int == lost)
    let others = (counts["directories"] ?? 0) + (counts["links"] ?? 0)
    #expect(report["entries"] as? Int == files + others, "\(report)")
  }

  @Test(
    .enabled(if: Peers.areInstalled),
    arguments: ForeignBackups.names("android").filter { $0.hasSuffix(".ab") })
  func everyFileOfAnAndroidBackupIsImported(name: String) throws {
    let backup = ForeignBackups.directory.appendingPathComponent("android/" + name).path
    var options: [String] = []
    var words = ["mvt", backup]
    if let password = FileManager.default.contents(atPath: backup + ".password") {
      try cli.directory.write(Array(password), at: "password")
      try cli.directory.directory.setPermissions(0o600, of: "password")
      options = ["--password-file", "password"]
      words.append(String(decoding: password, as: UTF8.self).trimmingCharacters(in: .newlines))
    }
    let wanted = try PeerFile.read("read_android.py", words, in: cli.directory.url)
    let outcome = try cli.run(
      ["import", "android", backup, "--json", "--repo", "repo"] + options)
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(try CommandLine.object(outcome.output)["files"] as? Int == wanted.count)
    _ = try cli.succeed("restore latest --to imported --repo repo --quiet")
    let found = try PeerFile.all(in: "imported", of: cli)
    #expect(found.map(\.digest).sorted() == wanted.map(\.digest).sorted())
  }
}
