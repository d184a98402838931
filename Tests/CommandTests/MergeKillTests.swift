import Foundation
import SystemIO
import TestSupport
import Testing

/// A backup that merges index objects and is killed at each call of the merge that changes the
/// repository. `make test` tests a sample of the calls.
@Suite(.serialized, .enabled(if: Strace.isPermitted)) struct MergeKillTests {
  private static let backup = "backup --layout folder --root tree --repo repo --quiet"
  private static let calls = "mkdirat,fsync,renameat,unlinkat"

  /// Makes two backups; the second merges its index object with that of the first.
  private static func prepare() throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.write("first", at: "tree/first")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed(backup)
    try cli.directory.write("second", at: "tree/second")
    return cli
  }

  /// Returns the calls of the merging thread in order, and the number of those before the merge.
  private static func trace(_ cli: CommandLine) throws -> (calls: [String], before: Int) {
    let log = cli.directory.string + "/log"
    let wrapper = ["strace", "-f", "-y", "-qq", "-s", "300", "-o", log, "-e", "trace=\(calls)"]
    let outcome = try cli.run(backup, under: ["taskset", "-c", "0"] + wrapper)
    #expect(outcome.code == 0, "\(outcome.errors)")
    let lines = String(decoding: try cli.directory.read("log"), as: UTF8.self).split(
      separator: "\n"
    )
    .compactMap { line -> [Substring]? in
      let words = line.split(separator: " ", maxSplits: 1)
      guard words.count == 2 else { return nil }
      return [words[0], words[1].drop { $0 == " " }]
    }
    .filter { !$0[1].hasPrefix("<") }
    // The right to merge is a directory that is created under another name.
    let isTaking = { (line: Substring) in
      line.contains("renameat(") && line.contains("\"prune\"")
    }
    let begin = try #require(lines.first { isTaking($0[1]) })
    let own = lines.filter { $0[0] == begin[0] }.map(\.[1])
    let taken = try #require(own.firstIndex(where: isTaking))
    let before = try #require(own[..<taken].lastIndex { $0.contains("mkdirat(") })
    return (own.map(String.init), before)
  }

  /// The merged object, its name and its directory are durable before the first old object is
  /// moved.
  @Test func mergedObjectIsDurableFirst() throws {
    let cli = try Self.prepare()
    let old = try cli.names(in: "repo/index")
    let (calls, before) = try Self.trace(cli)
    let merged = try #require(try cli.names(in: "repo/index").first)
    #expect(old.count == 1 && !old.contains(merged))
    let merge = calls[before...]
    func position(
      _ what: String, after start: Int = before, _ isSelected: (String) -> Bool
    ) throws -> Int {
      let found = merge[start...].firstIndex(where: isSelected)
      return try #require(found, "\(what): \(merge)")
    }
    let placed = try position("its name") { $0.contains("renameat(") && $0.contains("\(merged)") }
    let bytes = try position("its bytes") { $0.hasPrefix("fsync(") && $0.contains("/leases/") }
    let directory = try position("the directory", after: placed) {
      $0.hasPrefix("fsync(") && $0.contains("/repo/index>")
    }
    let removed = try position("the old one") { $0.contains("\"\(old[0])\"") }
    #expect(bytes < placed && placed < directory && directory < removed, "\(merge)")
  }

  private static func beginAgain(_ cli: CommandLine) throws {
    for name in ["repo", "home"] {
      try cli.directory.directory.removeTree(ByteString(name))
      try cli.copy("pristine/\(name)", to: name)
    }
  }

  @Test(arguments: ["mkdirat", "fsync", "renameat", "unlinkat"])
  func mergeIsKilledAtEachCall(_ call: String) throws {
    let cli = try Self.prepare()
    for name in ["repo", "home"] { try cli.copy(name, to: "pristine/\(name)") }
    // A copied cache is verified again, which needs calls: also in the recorded run.
    try Self.beginAgain(cli)
    let (calls, before) = try Self.trace(cli)
    let isSelected = { (line: String) in line.hasPrefix("\(call)(") }
    let first = calls[..<before].count(where: isSelected) + 1
    let count = calls[before...].count(where: isSelected)
    #expect(count >= (call == "mkdirat" ? 1 : 3), "\(calls)")
    let wanted = try cli.records("tree")
    for number in Sampling.some(of: Array(first..<(first + count)), 3, call) {
      try Self.beginAgain(cli)
      let what = "\(call) \(number)"
      let strace = try Strace(call, killingAt: number)
      let outcome = try cli.run(Self.backup, under: ["taskset", "-c", "0"] + strace.command)
      #expect([137, -9].contains(outcome.code), "\(what): \(outcome.code) \(outcome.errors)")
      let check = try cli.run("check --read-data --quiet --repo repo")
      #expect(check.code == 0, "\(what): \(check.output) \(check.errors)")
      // The snapshot was in place before; the earlier one is restored as well.
      _ = try cli.succeed("restore latest~1:folders/tree --to back --repo repo --quiet")
      #expect(try cli.records("back") == wanted.filter { $0.key == "first" }, "\(what)")
      try cli.directory.directory.removeTree("back")
    }
  }
}
