import Codecs
import SystemIO

@testable import Interchange

/// Values and helpers for the tests of Android backups.
enum AndroidBackupFixture {
  typealias Entry = AndroidBackupProgram.Entry

  static let package = "com.example.app"
  static let manifest = "1\n\(package)\n42\n34\ncom.android.vending\n0\n1\n3082ABCD\n"

  /// The members of a backup of one app, in Android's order.
  static let entries = [
    file("apps/\(package)/_manifest", manifest, mode: 0o600, mtime: 0),
    file("apps/\(package)/a/base.apk", "PK"),
    directory("apps/\(package)/r/app_webview"),
    file("apps/\(package)/r/app_webview/Cookies", "cookies", mode: 0o660),
    directory("apps/\(package)/f/notes"),
    file("apps/\(package)/f/notes/naïve.txt", "text"),
    file("apps/\(package)/f/empty", ""),
    file("apps/\(package)/db/main.db", String(repeating: "page", count: 5000)),
    file("apps/\(package)/sp/settings.xml", "<map/>"),
    file("apps/\(package)/ef/export.csv", "a,b"),
    file("apps/\(package)/d_sp/early.xml", "<map/>"),
    file("apps/\(package)/k/key", "value"),
    file("shared/0/DCIM/photo.jpg", "photo"),
  ]

  /// The logical paths of `entries`, in the same order.
  static let logicalPaths = [
    "apps/\(package)/bundle/_manifest", "apps/\(package)/bundle/base.apk",
    "apps/\(package)/data/app_webview", "apps/\(package)/data/app_webview/Cookies",
    "apps/\(package)/data/files/notes", "apps/\(package)/data/files/notes/naïve.txt",
    "apps/\(package)/data/files/empty", "apps/\(package)/data/databases/main.db",
    "apps/\(package)/data/shared_prefs/settings.xml",
    "folders/android-backup/\(package)/ef/export.csv",
    "folders/android-backup/\(package)/d_sp/early.xml", "folders/android-backup/\(package)/k/key",
    "folders/android-shared/0/DCIM/photo.jpg",
  ]

  static func file(
    _ name: String, _ text: String, mode: Int = 0o644, mtime: Int = 1_700_000_000
  ) -> Entry {
    Entry(name: name, type: "0", mode: mode, mtime: mtime, content: hex(Array(text.utf8)))
  }

  static func directory(_ name: String) -> Entry {
    Entry(name: name, type: "5", mode: 0o771, mtime: 1_700_000_000, content: "")
  }

  static func hex(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  static func secret(_ text: String) -> SecretBytes { SecretBytes(copying: Array(text.utf8).span) }

  /// Opens a backup in memory.
  static func open(_ bytes: [UInt8], password: String? = nil) throws -> AndroidBackupReader {
    let file = try Descriptor.inMemory(bytes)
    try file.seek(to: 0)
    return try AndroidBackupReader(file) { () throws(InterchangeError) in
      password.map { secret($0) }
    }
  }

  /// Opens the backup at a path.
  static func open(path: String, password: String? = nil) throws -> AndroidBackupReader {
    try AndroidBackupReader(try Descriptor.open(path: ByteString(path))) {
      () throws(InterchangeError) in password.map { secret($0) }
    }
  }

  /// Reads all entries with their contents.
  static func contents(
    of reader: AndroidBackupReader
  ) throws -> [(entry: ForeignEntry, content: [UInt8])] {
    var all: [(entry: ForeignEntry, content: [UInt8])] = []
    while let entry = try reader.next() { all.append((entry, try content(of: reader))) }
    return all
  }

  /// Reads the content of the current entry, in portions of an odd size.
  static func content(of reader: AndroidBackupReader) throws -> [UInt8] {
    var (content, portion) = ([UInt8](), [UInt8](repeating: 0, count: 1013))
    while true {
      let count = try portion.withUnsafeMutableBytes { try reader.read(into: $0) }
      if count == 0 { return content }
      content += portion.prefix(count)
    }
  }

  /// Writes entries and returns the backup and its writer.
  static func write(
    _ entries: [(entry: ForeignEntry, content: [UInt8])], isCompressed: Bool = true,
    password: String? = nil, manifests: [ByteString: AndroidManifest] = [:]
  ) throws -> (bytes: [UInt8], writer: AndroidBackupWriter) {
    let target = Target()
    let writer = try AndroidBackupWriter(
      to: "backup.ab", isCompressed: isCompressed, password: password.map { secret($0) },
      manifests: manifests, write: target.write)
    for (entry, content) in entries {
      try writer.add(entry)
      // In two portions, the first of which may be empty.
      for part in [content.prefix(content.count / 3), content.dropFirst(content.count / 3)] {
        try Array(part).withUnsafeBytes { try writer.write($0) }
      }
    }
    try writer.finish()
    return (target.bytes, writer)
  }

  /// Collects the output of a writer.
  private final class Target {
    var bytes: [UInt8] = []
    func write(_ span: Span<UInt8>) throws(InterchangeError) {
      for index in span.indices { bytes.append(span[index]) }
    }
  }

  /// Returns an entry of a file with its content.
  static func file(_ path: String, content: String) -> (entry: ForeignEntry, content: [UInt8]) {
    let bytes = Array(content.utf8)
    return (
      ForeignEntry(
        path: ByteString(path).components, kind: .file(size: UInt64(bytes.count)),
        modified: Timestamp(seconds: 1_700_000_000)), bytes
    )
  }
}
