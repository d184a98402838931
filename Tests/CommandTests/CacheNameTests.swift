import Foundation
import SystemIO
import TestSupport
import Testing

/// `classify --findings`: directories that are kept although their names suggest a cache.
struct CacheNameTests {
  private let cli: CommandLine
  /// The real paths of an app's data and of a group.
  private let data: ByteString
  private let group: ByteString

  init() throws {
    cli = try CommandLine(inMemory: true)
    _ = try cli.succeed("sample device")
    data = try Self.realPath("apps/org.example.notebook/data", cli)
    group = try Self.realPath("groups/group.org.example.library", cli)
  }

  private static func realPath(_ logical: String, _ cli: CommandLine) throws -> ByteString {
    let entries = try cli.jsonLines("classify --root device --json \(logical)")
    return try #require(entries.first?.path("real_path"))
  }

  private func write(_ bytes: Int, at path: ByteString) throws {
    let inner = path.relative(to: cli.directory.path(""))
    try cli.directory.write([UInt8](repeating: 1, count: bytes), at: inner)
  }

  private let cache: ByteString = "Library/Application Support/gurd_cache"

  private func fill() throws {
    try write(3000, at: data.appending(cache).appending("resource"))
    try write(1000, at: data.appending("Library/Thumbnails/doc0/0.png"))
    try write(500, at: group.appending("PHTPhenotype/flat_file"))
  }

  @Test func listIsByKindWithTheLargestFirst() throws {
    #expect(
      try cli.succeed("classify --root device --findings")
        == "no directory is kept although its name suggests a cache\n")
    try fill()
    var transcript = Transcript(cli)
    try transcript.run("classify --root device --findings", exits: 0)
    try transcript.run("classify --root device --findings notebook/Library/Thumbnails", exits: 0)
    try transcript.expectSnapshot("cache-names")
  }

  /// The rule for a container whose app is unknown applies to all apps, which the file states.
  @Test func aRuleForEveryContainerSaysSo() throws {
    let line = "# This path in every container of the kind: no app or group is named."
    try fill()
    #expect(try !cli.succeed("classify --root device --findings").contains(line))
    try cli.directory.write(
      "cached",
      at: "other/Containers/Data/Application/0A0A0A0A-0000-4000-8000-000000000001/Library/x_cache/f"
    )
    let output = try cli.succeed("classify --root other --findings")
    #expect(output.contains(line + "\n  rules:\n"), "\(output)")
  }

  @Test func jsonHasEachDirectoryAndTheSums() throws {
    try fill()
    let lines = try cli.jsonLines("classify --root device --findings --json")
    #expect(lines.allSatisfy { $0["finding"] as? String == "cache-name" })
    let found = lines.filter { $0["path"] != nil }
    #expect(found.compactMap { $0["bytes"] as? Int }.sorted() == [500, 1000, 3000])
    let one = try #require(found.first { $0["bytes"] as? Int == 3000 })
    #expect(one["match"] as? String == "Library/Application Support/gurd_cache/**")
    #expect(one["in"] as? String == "data" && one["app"] as? String == "org.example.notebook")
    #expect(one.path("real_path") == data.appending(cache))
    #expect(found.compactMap { $0["group"] as? String } == ["group.org.example.library"])
    let sums = lines.filter { $0["directories"] != nil }
    #expect(sums.compactMap { $0["kind"] as? String } == ["cache", "thumbnails", "library"])
    #expect(sums.compactMap { $0["bytes"] as? Int } == [3000, 1000, 500])
    let query = try cli.json("purge --root device --query --json")
    let names = try #require(query["cache_names"] as? [[String: Any]])
    #expect(names.compactMap { $0["bytes"] as? Int } == [3000, 1000, 500])
    #expect(names.compactMap { $0["directories"] as? Int } == [1, 1, 1])
  }

  /// A name changes nothing, except for messages.
  @Test func nothingIsExcludedOrDeletedBecauseOfAName() throws {
    try fill()
    let note =
      "note: 3 directories kept although their names suggest a cache: 4.4 KiB in 3 files; "
      + "'classify --findings' lists them\n"
    for line in ["classify --root device --summary", "purge --root device --query"] {
      let outcome = try cli.run(line)
      #expect(outcome.code == 0 && outcome.errors.hasSuffix(note), "\(outcome.errors)")
      #expect(!(try cli.run(line + " --quiet")).errors.contains("suggest"))
    }
    let resource = ByteString("apps/org.example.notebook/data").appending(cache)
      .appending("resource")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --root device --repo repo")
    let stored = try cli.jsonLines("ls latest --recursive --json --repo repo")
    #expect(stored.contains { $0.path() == resource })
    let purged = try cli.jsonLines("purge --root device --level critical --dry-run --json")
    #expect(purged.count > 3 && !purged.contains { $0.path() == resource })
    #expect(purged.last?["cache_names"] == nil)
  }

  @Test func moreThanTwentyAreCounted() throws {
    for number in 0..<25 {
      try write(100 + number, at: data.appending(ByteString("Library/Cache \(number)/file")))
    }
    let text = try cli.succeed("classify --root device --findings")
    #expect(text.contains("\n  cache: 25 directories, 2.7 KiB in 25 files\n"), "\(text)")
    #expect(text.contains("\n  5 more, 510 B (--all lists them)\n"), "\(text)")
    let all = try cli.succeed("classify --root device --findings --all")
    #expect(all.split(separator: "\n").count { $0.hasSuffix("/") } == 25)
  }

  /// The rule that the command prints is a valid policy file, which excludes only that directory,
  /// whatever bytes its name contains.
  @Test(arguments: [
    "plain_cache", "a \"quoted\" 'cache'", "back\\slash cache", "{a,b} [c] * ? cache",
    "Größe_cache",
    "#cache: -", "new\nline cache", "cache ", "~ & ! | > % @ ` cache",
  ]) func printedRuleExcludesTheDirectory(name: String) throws {
    try printedRuleExcludes(ByteString(name))
  }

  @Test func printedRuleExcludesADirectoryThatIsNotText() throws {
    try printedRuleExcludes(ByteString([0xff, 0xc3] + Array(" cache".utf8)))
  }

  private func printedRuleExcludes(_ name: ByteString) throws {
    for container in [data, group] {
      try write(2000, at: container.appending(name).appending("file"))
      try write(50, at: container.appending("other cache/file"))
      let text = try cli.succeed("classify --root device --findings")
      let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
      let head = try #require(lines.firstIndex { $0.hasPrefix("  overlay:") })
      try cli.directory.write(
        lines[head...].map { $0.dropFirst(2) }.joined(separator: "\n"), at: "rule.yaml")
      let lint = try cli.run("policy lint rule.yaml")
      #expect(lint.code == 0, "\(name): \(lint.output)\(lint.errors)")
      let kept = try cli.jsonLines(
        "classify --root device --findings --json --policy rule.yaml")
      let found = kept.filter { $0["path"] != nil }
      #expect(found.compactMap { $0["bytes"] as? Int } == [50], "\(name): \(text)")
      #expect(kept.first?.path()?.components.last == "other cache")
      let directory = try Directory.open(path: container)
      try directory.removeTree(name)
      try directory.removeTree("other cache")
    }
  }

  @Test(arguments: ["--summary", "--stdin0"])
  func findingsAreAListOfTheirOwn(option: String) throws {
    let outcome = try cli.run("classify --root device --findings \(option)")
    #expect(outcome.code == 2)
    #expect(
      outcome.errors.contains("'--findings' and '\(option)' cannot be used together"),
      "\(outcome.errors)")
  }
}
