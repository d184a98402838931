import Foundation
import SystemIO
import TestSupport
import Testing

/// A purge that is killed at any step: only complete units are deleted, and a database never loses
/// only its log.
struct PurgeKillTests {
  @Test(.enabled(if: Strace.isPermitted)) func killedPurgeDeletesWholeUnits() throws {
    var random = Seeded.fresh()
    let cli = try CommandLine(inMemory: true)
    let documents = try Self.fill(cli)
    var (kills, afterDatabase) = (0, 0)
    for round in 0..<12 {
      _ = try Self.fill(cli)
      // The first steps are taken in order to include the one between a database and its log.
      let number = round < 6 ? round + 1 : Int.random(in: 1...12, using: &random)
      let strace = try Strace("unlinkat,renameat2", killingAt: number)
      let outcome = try cli.run(
        "purge --layout coresimulator --root device --level critical --yes --quiet",
        under: strace.command)
      if outcome.code != 0 { kills += 1 }
      let left = try Self.names(cli, "Library/Caches")
      if left.contains("n.sqlite") { #expect(left.contains("n.sqlite-wal"), "step \(number)") }
      if !left.contains("n.sqlite"), left.contains("n.sqlite-wal") { afterDatabase += 1 }
      let unit = try Self.names(cli, "Library/Caches/w/fsCachedData")
      #expect(unit.isEmpty || unit.count == 3, "step \(number): \(unit)")
      #expect(try TreeRecord.all(in: cli.directory, Self.data.appending("Documents")) == documents)
    }
    #expect(kills >= 6)
    #expect(afterDatabase > 0, "the step between database and log occurred")
    _ = try cli.succeed("purge --layout coresimulator --root device --level critical --yes --quiet")
    // A directory that the killed run emptied no longer counts as emptied by a purge.
    #expect(try Self.names(cli, "Library/Caches").allSatisfy { $0 == "w" })
    #expect(try Self.names(cli, "Library/Caches/w").isEmpty)
    // The staging directory contains only a unit that was moved there and has been recreated in its
    // place since. It is complete, but may not be the same.
    for name in try Self.names(cli, ".sandboxctl/purge") {
      let unit = try? Self.names(cli, ByteString(".sandboxctl/purge").appending(name))
      #expect(name.description.hasSuffix(".origin") || unit?.count == 3, "\(name)")
    }
  }

  /// A log left by a kill between a database and its log does not harm the database that the app
  /// creates again (docs/purge.md, "Databases").
  @Test func logWithoutItsDatabaseIsIgnored() throws {
    let directory = try TemporaryDirectory("purge")
    let sql =
      "pragma journal_mode=wal; pragma wal_autocheckpoint=0; create table t(a);"
      + "insert into t values ('old'); .shell cp n.sqlite-wal kept"
    _ = try Program.run(
      "sqlite3", ["n.sqlite"], in: directory.url,
      input: Array(sql.replacing("; ", with: ";\n").utf8))
    #expect(try directory.read("kept").count > 32)
    for name: ByteString in ["n.sqlite", "n.sqlite-wal", "n.sqlite-shm"] {
      try? directory.directory.remove(name)
    }
    try directory.directory.rename("kept", to: "n.sqlite-wal", in: directory.directory)
    let made = try Program.run(
      "sqlite3",
      [
        "n.sqlite",
        "create table u(b); insert into u values ('new'); pragma integrity_check;"
          + "select count(*) from sqlite_master; select b from u;",
      ], in: directory.url)
    #expect(made.output == "ok\n1\nnew\n", "\(made.errors)")
  }

  private static let data: ByteString =
    "device/Containers/Data/Application/0A0A0A0A-0000-4000-8000-000000000001"

  /// Fills the device again and returns the entries of Documents.
  private static func fill(_ cli: CommandLine) throws -> [ByteString: TreeRecord] {
    if (try? cli.directory.directory.statusIfPresent("device")) ?? nil == nil {
      try cli.directory.write("thesis", at: data.appending("Documents/thesis"))
    }
    for path: ByteString in [
      "Library/Caches/n.sqlite", "Library/Caches/n.sqlite-wal", "Library/Caches/n.sqlite-shm",
      "Library/Caches/file", "Library/Caches/w/fsCachedData/1", "Library/Caches/w/fsCachedData/2",
      "Library/Caches/w/fsCachedData/3", "tmp/x",
    ] { try cli.directory.write([UInt8](repeating: 1, count: 5000), at: data.appending(path)) }
    return try TreeRecord.all(in: cli.directory, data.appending("Documents"))
  }

  private static func names(_ cli: CommandLine, _ path: ByteString) throws -> [ByteString] {
    do {
      return try Directory.open(path: cli.directory.path(data).appending(path)).names()
    } catch {
      if error.isMissing { return [] }
      throw error
    }
  }
}
