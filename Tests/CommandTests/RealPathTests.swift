import Foundation
import SystemIO
import TestSupport
import Testing

/// Warnings name the real path of a file in addition to its logical path.
struct RealPathTests {
  private static let note: ByteString =
    "apps/org.example.notebook/data/Documents/Notes/Recipes.md"

  @Test func backupNamesTheRealPathOfUnreadableFiles() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    let path = try realPath(of: Self.note, in: cli)
    _ = try Program.run("chmod", ["000", "\(path)"])
    _ = try Program.run("chown", ["-R", "nobody", cli.directory.string])
    #expect(try cli.runAsNobody("init repo --plain").code == 0)
    let outcome = try cli.runAsNobody("backup --root device --repo repo")
    #expect(outcome.code == 3)
    let words = "not in the snapshot: \(Self.note) (\(path)): permission denied"
    #expect(outcome.errors.contains(words), "\(outcome.errors)")
    let json = try cli.runAsNobody("backup --root device --repo repo --json").output
    let remarks = try CommandLine.object(json)["unreadable"] as? [[String: Any]] ?? []
    #expect(remarks.compactMap { $0.path() } == [Self.note])
    #expect(remarks.compactMap { $0.path("real_path") } == [path])
  }

  @Test func restoreNamesTheRealPathOfConflicts() throws {
    let fixture = try DeviceRestoreFixture()
    let path = try realPath(of: Self.note, in: fixture.cli)
    let directory = try Directory.open(path: path.directoryPath)
    try directory.remove("Recipes.md")
    try fixture.change(path.appending("mine"), to: "mine")
    let line = "restore latest --app notebook --in-place --no-snapshot --repo repo"
    let outcome = try fixture.cli.run(line)
    #expect(outcome.code == 3, "\(outcome.errors)")
    #expect(
      outcome.errors.contains("not restored: \(Self.note) (\(path)): "), "\(outcome.errors)")
    let report = try CommandLine.object(try fixture.cli.run(line + " --json").output)
    let failed = report["failed"] as? [[String: Any]] ?? []
    #expect(failed.compactMap { $0.path("real_path") } == [path])
  }

  @Test func purgeNamesTheRealPathOfUndeletedFiles() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    let caches = try realPath(of: "apps/org.example.notebook/data/Library/Caches", in: cli)
    let stuck = caches.appending("stuck")
    _ = try Directory.make(path: stuck)
    try Directory.open(path: stuck).create("file").write([1])
    _ = try Program.run("chown", ["-R", "nobody", cli.directory.string])
    _ = try Program.run("chmod", ["555", "\(stuck)"])
    defer { _ = try? Program.run("chmod", ["755", "\(stuck)"]) }
    let outcome = try cli.runAsNobody("purge --root device --level critical --yes")
    let logical = "apps/org.example.notebook/data/Library/Caches/stuck/file"
    #expect(
      outcome.errors.contains("not deleted: \(logical) (\(stuck)/file): permission denied"),
      "\(outcome.errors)")
  }

  private func realPath(of path: ByteString, in cli: CommandLine) throws -> ByteString {
    let container = try #require(
      try cli.containers(of: "device").first { path.isWithin($0.path) }, "\(path)")
    let inner = path.bytes.dropFirst(container.path.count).drop { $0 == UInt8(ascii: "/") }
    return container.realPath.appending(ByteString(inner))
  }
}
