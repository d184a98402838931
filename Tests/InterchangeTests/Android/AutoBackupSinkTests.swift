import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// Backups of the files that the rules of Auto Backup include.
struct AutoBackupSinkTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory("auto-backup") }

  /// The result of writing a backup.
  private struct Outcome {
    var paths: [String] = []
    var sink: AutoBackupSink
  }

  /// Writes files of the given sizes, and returns the paths of the backup.
  private func write(
    _ files: [(path: ByteString, size: Int)], by rules: String,
    for destination: AutoBackupRules.Destination = .cloud
  ) throws -> Outcome {
    try directory.write(rules, at: "rules.xml")
    var set = AutoBackupRuleSet()
    try set.add(directory.path("rules.xml"))
    let output = Output()
    let writer = try AndroidBackupWriter(to: "x.ab", isCompressed: false, write: output.write)
    let sink = AutoBackupSink(to: writer, rules: set, for: destination)
    var known: Set<ByteString> = []
    for (path, size) in files {
      let parents = path.components.indices.dropFirst().map {
        ByteString(joining: path.components[..<$0])
      }
      for parent in parents where known.insert(parent).inserted {
        try sink.add(ForeignEntry(path: parent.components, kind: .directory))
      }
      try sink.add(ForeignEntry(path: path.components, kind: .file(size: UInt64(size))))
      let content = [UInt8](repeating: 1, count: size)
      try content.withUnsafeBytes { try sink.write($0) }
    }
    try sink.finish()
    var outcome = Outcome(sink: sink)
    let file = try Descriptor.inMemory(output.bytes)
    try file.seek(to: 0)
    let reader = try AndroidBackupReader(file) { () throws(InterchangeError) in
      throw InterchangeError(.keyRequired, "read", subject: "x.ab", reason: "none")
    }
    while let entry = try reader.next() {
      if case .file = entry.kind { outcome.paths.append(entry.joinedPath.description) }
    }
    return outcome
  }

  private final class Output {
    var bytes: [UInt8] = []
    func write(_ span: Span<UInt8>) throws(InterchangeError) {
      span.withUnsafeBytes { bytes += $0 }
    }
  }

  private static let files: [(path: ByteString, size: Int)] = [
    ("apps/a.b/bundle/_manifest", 5), ("apps/a.b/bundle/base.apk", 7),
    ("apps/a.b/data/app_web/x", 1), ("apps/a.b/data/cache/c/d", 2),
    ("apps/a.b/data/databases/x.db", 3), ("apps/a.b/data/files/a/1", 4),
    ("apps/a.b/data/files/a/2", 5), ("apps/a.b/data/files/b", 6),
    ("folders/android-backup/a.b/d_f/z", 8), ("folders/android-backup/a.b/ef/e", 9),
    ("folders/android-backup/a.b/k/key", 10), ("folders/android-shared/0/picture", 11),
  ]

  @Test func excludedFilesAreNotWrittenButReported() throws {
    let outcome = try write(
      Self.files,
      by: """
        <full-backup-content>
          <exclude domain="file" path="a"/><exclude domain="device_file" path="z"/>
        </full-backup-content>
        """)
    #expect(
      outcome.paths == [
        "apps/a.b/bundle/_manifest", "apps/a.b/data/app_web/x", "apps/a.b/data/databases/x.db",
        "apps/a.b/data/files/b", "folders/android-backup/a.b/ef/e",
        "folders/android-shared/0/picture",
      ])
    let found = outcome.sink.exclusions
    #expect(found.files == 6 && found.size == 7 + 2 + 4 + 5 + 8 + 10)
    // Two directories: the one in the cache, and the one in the rule.
    #expect(found.entries == 6 + 2)
    #expect(
      found.groups.map { "\($0.path): \($0.files), \($0.size), \($0.reason)" } == [
        "apps/a.b/bundle: 1, 7, Auto Backup does not store it",
        "apps/a.b/data/cache: 1, 2, Android excludes it from backups to the cloud",
        "apps/a.b/data/files/a: 2, 9, a rule excludes it",
        "folders/android-backup/a.b/d_f/z: 1, 8, a rule excludes it",
        "folders/android-backup/a.b/k: 1, 10, Auto Backup does not store it",
      ])
  }

  @Test func oneIncludeExcludesTheOthers() throws {
    let outcome = try write(
      Self.files,
      by: """
        <data-extraction-rules>
          <cloud-backup><include domain="file" path="a/1"/></cloud-backup>
        </data-extraction-rules>
        """)
    #expect(
      outcome.paths == [
        "apps/a.b/bundle/_manifest", "apps/a.b/data/files/a/1", "folders/android-shared/0/picture",
      ])
    let groups = outcome.sink.exclusions.groups
    let files = groups.first { $0.path == "apps/a.b/data/files" }
    #expect(files?.files == 2 && files?.reason == "no rule includes it")
  }

  @Test func aTransferHasItsOwnRules() throws {
    let rules = """
      <data-extraction-rules>
        <cloud-backup><exclude domain="root"/></cloud-backup>
        <device-transfer><exclude domain="database"/></device-transfer>
      </data-extraction-rules>
      """
    let outcome = try write(Self.files, by: rules, for: .transfer)
    #expect(outcome.paths.contains("apps/a.b/data/cache/c/d"))
    #expect(!outcome.paths.contains("apps/a.b/data/databases/x.db"))
    // An older file applies to both destinations.
    let old = "<full-backup-content><exclude domain='database' path='.'/></full-backup-content>"
    let older = try write(Self.files, by: old, for: .transfer)
    #expect(!older.paths.contains("apps/a.b/data/databases/x.db"))
  }

  @Test func aBackupOverTheQuotaIsReported() throws {
    let rules = "<full-backup-content><exclude domain='file' path='big'/></full-backup-content>"
    let large: [(path: ByteString, size: Int)] = [
      ("apps/a.b/data/files/big", 26 << 20), ("apps/a.b/data/files/small", 20 << 20),
    ]
    #expect(try write(large, by: rules).sink.appsOverQuota.isEmpty)
    let all = "<full-backup-content/>"
    let over = try write(large, by: all).sink.appsOverQuota
    #expect(over.map(\.name) == ["a.b"] && over.allSatisfy { $0.size > 46 << 20 })
    #expect(try write(large, by: all, for: .transfer).sink.appsOverQuota.isEmpty)
  }
}
