import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

/// Offload, reinstall and uninstall through the command line.
struct AppRemovalTests {
  private static let app = "org.example.notebook"

  private func prepare() throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain")
    try cli.directory.write(
      """
      <plist><dict><key>CFBundleIdentifier</key><string>\(Self.app)</string>
      <key>CFBundleShortVersionString</key><string>90.0</string></dict></plist>
      """, at: "New.app/Info.plist")
    return cli
  }

  /// The hash of each file of the device, except the program's own files.
  private func files(
    _ cli: CommandLine, _ device: ByteString = "device"
  ) throws -> [ByteString: Digest] {
    try TreeRecord.all(in: cli.directory, device).compactMapValues(\.content)
      .filter { !$0.key.components.contains(".sandboxctl") }
  }

  private func isInstalled(_ cli: CommandLine) throws -> Bool? {
    let apps = try cli.json("apps --root device --json")["apps"] as? [[String: Any]]
    return apps?.first { $0["id"] as? String == Self.app }?["installed"] as? Bool
  }

  @Test func offloadedAndUninstalledAppIsRestored() throws {
    let cli = try prepare()
    let before = try files(cli)
    let dry = try cli.succeed("offload notebook --root device --dry-run")
    #expect(dry.contains("apps/org.example.notebook/bundle"), "\(dry)")
    #expect(try files(cli) == before)
    try cli.directory.directory.rename("repo", to: "away", in: cli.directory.directory)
    #expect(try cli.run("offload notebook --root device").code != 0, "there is no repository")
    #expect(try files(cli) == before)
    try cli.directory.directory.rename("away", to: "repo", in: cli.directory.directory)
    #expect(try cli.run("offload notebook --repo repo").code == 2, "no device is named")
    let report = try cli.json("offload notebook --root device --repo repo --json")
    #expect(report["saved"] is String && report["trash"] is String)
    let kept = before.filter { !$0.key.components.contains("Bundle") }
    #expect(try files(cli).filter { kept[$0.key] != nil } == kept)
    #expect(try files(cli).count < before.count)
    #expect(try isInstalled(cli) == false)
    #expect(
      try cli.run("offload notebook --root device --repo repo").code == 1, "already offloaded")
    // Reinstalling removes nothing, so it neither makes a snapshot nor mentions one.
    let reported = try cli.succeed("reinstall New.app --root device")
    #expect(!reported.contains("not in the snapshot"), "\(reported)")
    #expect(!reported.contains("saved the previous state"), "\(reported)")
    #expect(try isInstalled(cli) == true)
    #expect(try files(cli).filter { kept[$0.key] != nil } == kept)
    let removed = try cli.succeed("uninstall notebook --root device --repo repo")
    #expect(removed.contains(" --in-place --repo repo' restores it"), "\(removed)")
    #expect(try isInstalled(cli) == nil)
    let list = try cli.succeed("snapshots --repo repo --json")
    #expect(list.contains("\"uninstall\""), "\(list)")
    // The snapshot made before the removal restores the app.
    _ = try cli.succeed(
      "restore latest --app notebook --in-place --repo repo --no-snapshot --quiet")
    let restored = try cli.succeed("apps --root device")
    #expect(restored.contains(Self.app), "\(restored)")
  }

  /// The app's name is not a package: the message names the bundle that the offload kept.
  @Test func offloadedBundleIsNamed() throws {
    let cli = try prepare()
    _ = try cli.succeed("offload notebook --root device --repo repo --quiet")
    let outcome = try cli.run("reinstall notebook --root device")
    #expect(outcome.code == 1, "\(outcome.errors)")
    #expect(outcome.errors.contains("it is the name of an app"), "\(outcome.errors)")
    let words = try #require(outcome.errors.firstMatch(of: /'sandboxctl (reinstall [^']*)'/))
    #expect(words.output.1.contains("/.sandboxctl/trash/"), "\(words.output.1)")
    _ = try cli.succeed(String(words.output.1))
    #expect(try isInstalled(cli) == true)
    // There is no such hint for an unknown app or one whose bundle is gone.
    let none = try cli.run("reinstall nobody --root device")
    #expect(none.code == 1 && none.errors.contains("no such file"), "\(none.errors)")
    _ = try cli.succeed("offload notebook --root device --repo repo --no-snapshot --quiet")
    _ = try cli.succeed("trash empty --root device --quiet")
    let empty = try cli.run("reinstall notebook --root device")
    #expect(empty.code == 1 && !empty.errors.contains("in the trash"), "\(empty.errors)")
    #expect(empty.errors.contains("PACKAGE is an app's directory"), "\(empty.errors)")
  }
}
