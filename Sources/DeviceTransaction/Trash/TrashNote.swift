internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// The note in an operation's directory in the trash, `operation.json`.
struct TrashNote: Hashable, Sendable {
  static let file: ByteString = "operation.json"

  let id: String
  let operation: String
  let time: Timestamp
  /// The apps, groups and directories whose entries are there, by their logical paths.
  var subjects: [ByteString]
  /// The operation's directories on other volumes than the device's root, as absolute paths.
  var elsewhere: [ByteString] = []
  /// The ID of the snapshot made before the operation.
  var saved: String?

  init(_ record: JournalRecord) {
    (id, operation, time) = (record.id, record.operation, record.time)
    subjects = record.subjects
  }

  var bytes: [UInt8] {
    JSON.object([
      JSON.Member("format", 1), JSON.Member("id", .string(id)),
      JSON.Member("operation", .string(operation)), JSON.Member("time", .string(time.rfc3339)),
      JSON.Member("subjects", JournalRecord.list(subjects)),
      JSON.Member("elsewhere", JournalRecord.list(elsewhere)),
      JSON.Member("saved", saved.map { .string($0) } ?? .null),
    ]).compactBytes + [UInt8(ascii: "\n")]
  }

  /// Reads the note of an operation's directory in the trash; nil if there is none, or if it has
  /// another format, another operation's ID, or another owner.
  init?(in directory: borrowing Directory, of name: ByteString) {
    guard let bytes = try? ControlDirectory.read(Self.file, in: directory, limit: 1 << 24),
      let json = try? JSON(parsing: bytes), json["format"]?.integer == 1,
      let id = json["id"]?.string, ByteString(id) == name,
      let operation = json["operation"]?.string,
      let time = json["time"]?.string.flatMap({ Timestamp(rfc3339: $0) }),
      let subjects = JournalRecord.paths(json["subjects"]),
      let elsewhere = JournalRecord.paths(json["elsewhere"])
    else { return nil }
    (self.id, self.operation, self.time) = (id, operation, time)
    (self.subjects, self.elsewhere) = (subjects, elsewhere)
    saved = json["saved"]?.string
  }
}
