import Foundation
import SystemIO
import TestSupport
import Testing

/// `classify` and `explain` return the same answer in every form.
struct ClassifyTests {
  private static func sample() throws -> CommandLine {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    return cli
  }

  /// The members of a decision in a JSON answer.
  private static func verdict(_ object: [String: Any]) -> [String] {
    ["class", "backup", "update", "purge", "restore"].map { key in
      guard let terms = object[key] as? [String: Any] else {
        return object[key] as? String ?? "none"
      }
      return terms.sorted { $0.key < $1.key }.map { "\($0): \($1)" }.joined(separator: " ")
    }
  }

  @Test func textAndJSONAgree() throws {
    let cli = try Self.sample()
    let lines = try cli.succeed("classify --root device --all").split(separator: "\n")
    let objects = try cli.jsonLines("classify --root device --json")
    #expect(lines.count == objects.count)
    for (line, object) in zip(lines, objects) {
      let path = try #require(object.path())
      let slash = object["type"] as? String == "directory" ? "/" : ""
      #expect(line.hasSuffix("  \(path)\(slash)"), "\(line)")
      let isRoot = object["class"] is NSNull
      #expect(line.hasPrefix(isRoot ? "- " : "\(object["class"] ?? "") "), "\(line)")
      if isRoot { #expect(path.lastComponent == "data" || path.components.first == "groups") }
      let stored = object["stored"] as? String ?? ""
      #expect(line.contains(" \(stored == "left-out" ? "excluded" : stored) "), "\(line)")
    }
  }

  @Test func sumOfTheSummaryIsTheTotal() throws {
    let cli = try Self.sample()
    var sums: [String: [Int]] = [:]
    for object in try cli.jsonLines("classify --root device --json") {
      guard object["type"] as? String == "file", let size = object["size"] as? Int else { continue }
      let name = object["class"] as? String ?? ""
      let at = object["stored"] as? String == "left-out" ? 2 : 0
      sums[name, default: [0, 0, 0, 0]][at] += 1
      sums[name, default: [0, 0, 0, 0]][at + 1] += size
    }
    let answer = try cli.jsonLines("classify --root device --summary --json")
    let reported = answer.map { object -> (String, [Int]) in
      let kept = object["keeps"] as? [String: Int] ?? [:]
      let left = object["leaves_out"] as? [String: Int] ?? [:]
      let numbers = [kept["files"], kept["bytes"], left["files"], left["bytes"]]
      return (object["class"] as? String ?? "", numbers.map { $0 ?? -1 })
    }
    #expect(Dictionary(uniqueKeysWithValues: reported) == sums)
    #expect(sums.count >= 8)
  }

  /// A logical path, a real path and a path in an app's data select the same entries.
  @Test func pathIsAcceptedInThreeForms() throws {
    let cli = try Self.sample()
    let logical = "apps/org.example.notebook/data/Library/Caches"
    let entries = try cli.jsonLines("classify --root device --json \(logical)")
    #expect(entries.count > 3)
    #expect(entries.allSatisfy { $0.path()?.isWithin(ByteString(logical)) == true })
    let real = try #require(entries.first?.path("real_path")).description
    for path in [real, "notebook/Library/Caches", "org.example.notebook/Library/Caches"] {
      let found = try cli.run(["classify", "--root", "device", "--json", path])
      #expect(found.output == (try cli.succeed("classify --root device --json \(logical)")))
    }
  }

  /// Without exclusion marks, paths alone yield the same answer as the device.
  @Test func pathsFromStandardInputNeedNoFiles() throws {
    let cli = try Self.sample()
    // A copy without extended attributes, marker files, and files whose class depends on other
    // files.
    let plain = try Program.run(
      "/bin/sh",
      [
        "-ec",
        """
        cp -r --preserve=mode,links device plain
        find plain '(' -name CACHEDIR.TAG -o -name '*-shm' ')' -delete
        """,
      ], in: cli.directory.url)
    #expect(plain.code == 0, "\(plain.errors)")
    let scanned = try cli.jsonLines("classify --root plain --json --os-version 17.5")
    var input: [UInt8] = []
    for object in scanned {
      input += try #require(object.path()).bytes
      if object["type"] as? String == "directory" { input.append(UInt8(ascii: "/")) }
      input.append(0)
    }
    let outcome = try cli.run(
      ["classify", "--stdin0", "--json", "--layout", "coresimulator", "--os-version", "17.5"],
      input: input)
    #expect(outcome.code == 0, "\(outcome.errors)")
    let answered = try outcome.output.split(separator: "\n").map { try CommandLine.object($0) }
    #expect(answered.count == scanned.count)
    for (one, other) in zip(scanned, answered) where one["type"] as? String != "symlink" {
      #expect(one.path() == other.path())
      #expect(Self.verdict(one) == Self.verdict(other), "\(one.path() ?? "")")
    }
  }

  @Test func invalidPathOfStandardInputIsWrongUsage() throws {
    let cli = try Self.sample()
    let words = ["classify", "--stdin0", "--json", "--layout", "coresimulator"]
    for path in ["apps/a/data/../x", "apps/a", "../x"] {
      let outcome = try cli.run(words, input: Array(path.utf8))
      let failure = try CommandLine.object(outcome.errors)
      #expect(outcome.code == 2 && failure["exit_status"] as? Int == 2, "\(failure)")
      #expect(failure["code"] as? String == "invalid_path", "\(failure)")
    }
  }

  @Test func pathAboveContainersIsClassified() throws {
    let cli = try Self.sample()
    for path in ["apps", "apps/org.example.notebook", "groups"] {
      #expect(try !cli.jsonLines("classify --root device --json \(path)").isEmpty, "\(path)")
    }
  }

  @Test func commandLineOverridesThePolicy() throws {
    let cli = try Self.sample()
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed(
      "backup --root device --repo repo --exclude Documents/Notes/** --include Library/Caches/**")
    let listed = Set(
      try cli.jsonLines("ls latest --recursive --json --repo repo").compactMap { $0.path() })
    let data: ByteString = "apps/org.example.notebook/data"
    #expect(!listed.contains { $0.isWithin(data.appending("Documents/Notes")) })
    #expect(listed.contains(data.appending("Library/Caches/org.example.notebook/Previews/1.png")))
    #expect(listed.contains(data.appending("Documents/Inbox/Itinerary.pdf")))
  }

  @Test func destinationChangesTheDecision() throws {
    let cli = try Self.sample()
    func kept(_ options: String) throws -> [ByteString: String] {
      let objects = try cli.jsonLines("classify --root device --json \(options)")
      return Dictionary(
        uniqueKeysWithValues: objects.filter { $0["stored"] as? String == "kept" }.compactMap {
          object in object.path().map { ($0, object["class"] as? String ?? "") }
        })
    }
    let local = try kept("")
    #expect(local.values.contains("bundle"))
    #expect(try !kept("--for cloud").values.contains("bundle"))
    // One file is marked for each of these destinations.
    let edition: ByteString =
      "apps/org.example.reader/data/Library/Application Support/Editions/2026-03-01.edition"
    let token: ByteString =
      "apps/com.example.podcast/data/Library/Application Support/Account.token"
    #expect(local[edition] != nil && local[token] != nil)
    #expect(try kept("--for cloud")[edition] == nil)
    #expect(try kept("--for unencrypted")[token] == nil)
    // The platform excludes data that no guide names, and includes some that our policy excludes.
    let platform = try kept("--as-platform")
    let data: ByteString = "apps/org.example.darkroom/data"
    let invented = data.appending("Darkroom Exports/Print.png")
    #expect(local[invented] == "unknown" && platform[invented] == nil)
    let view = data.appending("Documents/.DS_Store")
    #expect(local[view] == nil && platform[view] != nil)
  }

  /// For each path; in `make test`, for a sample of them.
  @Test func explainAgreesWithClassify() throws {
    let cli = try Self.sample()
    let all = try cli.jsonLines("classify --root device --json").filter { $0["path_b64"] == nil }
    #expect(all.count > 100)
    for object in Sampling.some(of: all, 10, "classified paths") {
      let path = try #require(object["path"] as? String)
      let outcome = try cli.run(["explain", "--root", "device", "--json", path])
      #expect(outcome.code == 0, "\(path): \(outcome.errors)")
      let explained = try CommandLine.object(outcome.output)
      let verdict = try #require(explained["verdict"] as? [String: Any])
      #expect(Self.verdict(verdict) == Self.verdict(object), "\(path)")
      let steps = try #require(explained["steps"] as? [[String: Any]])
      #expect(steps.allSatisfy { $0["at"] is [String: Any] || $0["kind"] as? String == "start" })
    }
  }

  /// The rules for a database also apply to its log.
  @Test func explainNamesTheDatabaseOfALog() throws {
    let cli = try CommandLine()
    try cli.directory.write("pages", at: "tree/x.db")
    try cli.directory.write("log", at: "tree/x.db-wal")
    let line = "explain tree/x.db-wal --layout folder --root tree --exclude **/x.db"
    let shown = try cli.succeed(line)
    #expect(shown.contains("the rules for its database folders/tree/x.db decide:"), "\(shown)")
    let explained = try cli.json(line + " --json")
    #expect((explained["database"] as? [String: Any])?["path"] as? String == "folders/tree/x.db")
    #expect(explained["backup"] as? String == "never")
    let alone = try cli.json(
      "explain tree/x.db --layout folder --root tree --exclude **/x.db --json")
    #expect(alone["database"] == nil && alone["backup"] as? String == "never")
  }

  /// A purge considers the verdicts of all files of a database, so `purge` is the log's own.
  @Test func explainNamesTheOwnPurgeOfALog() throws {
    let cli = try CommandLine()
    try cli.directory.write("pages", at: "home/.cache/app/x.db")
    try cli.directory.write("log", at: "home/.cache/app/x.db-wal")
    try cli.directory.write(
      """
      overlay: [xdg]
      schema: 1
      rules:
        - {id: logs, in: [cache], match: "**/x.db-wal", backup: always, purge: never}

      """, at: "own.yaml")
    let options = "--layout xdg --root home --policy ./own.yaml"
    let path = "apps/app/cache/x.db-wal"
    let explained = try cli.json("explain \(path) \(options) --json")
    let verdict = try #require(explained["verdict"] as? [String: Any])
    #expect(explained["database"] != nil && verdict["purge"] as? String == "never", "\(verdict)")
    #expect(verdict["backup"] as? String == "never")
    let classified = try cli.jsonLines("classify \(options) --json")
    let log = try #require(classified.first { $0["path"] as? String == path })
    #expect(Self.verdict(verdict) == Self.verdict(log))
    let shown = try cli.succeed("explain \(path) \(options)")
    #expect(shown.contains("its own rules decide about purges: "), "\(shown)")
  }

  @Test func unreadableDirectoryIsNamedAndTheRestClassified() throws {
    let cli = try CommandLine()
    try cli.directory.write("x", at: "tree/locked/below")
    try cli.directory.write("x", at: "tree/open")
    _ = try Program.run("chmod", ["000", cli.directory.string + "/tree/locked"])
    defer { cli.open() }
    _ = try Program.run("chown", ["-R", "nobody", cli.directory.string])
    let outcome = try cli.runAsNobody("classify --layout folder --root tree")
    #expect(outcome.code == 3)
    let location = "folders/tree/locked (\(cli.directory.path("tree/locked")))"
    let warning = "sandboxctl: warning: not classified: \(location): permission denied\n"
    #expect(outcome.errors == warning)
    #expect(outcome.output.contains("  folders/tree/open\n"))
    #expect(outcome.output.contains("  folders/tree/locked/\n"))
  }

  /// `explain` answers for the selected destination, in both forms.
  @Test func explanationIsForTheSelectedDestination() throws {
    let cli = try Self.sample()
    try cli.directory.write(
      """
      overlay: all
      schema: 1
      rules:
        - {id: near, in: [data], match: "Documents/**", class: user-data, backup: {cloud: never}}

      """, at: "near.yaml")
    let line = "explain --root device darkroom/Documents/a --json --policy near.yaml"
    #expect(try cli.json(line)["backup"] as? String == "always")
    #expect(try cli.json("\(line) --for cloud")["backup"] as? String == "never")
  }

  @Test func explanationIsAsRecorded() throws {
    let cli = try Self.sample()
    var transcript = Transcript(cli)
    let data = "apps/org.example.darkroom/data"
    try transcript.run(
      "explain --root device \(data)/Library/Caches/Thumbnails/IMG_0001.png", exits: 0)
    try transcript.run("explain --root device \(data)/Documents/Originals/IMG_0001.DNG", exits: 0)
    try transcript.run("explain --root device \(data)/Documents/not-there", exits: 0)
    try transcript.run("explain --root device darkroom/tmp --for cloud", exits: 0)
    try transcript.expectSnapshot("explain")
  }
}
