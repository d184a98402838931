internal import ArchiveStore
internal import Codecs
package import SystemIO

/// The note about a file that was delivered into an inbox: its state at that time.
package struct InboxNote: Sendable, Hashable {
  /// The name in the inbox.
  package let name: ByteString
  /// Whether it is a document package, a directory.
  package let isPackage: Bool
  /// The size in bytes; for a package, the sum of its files.
  package let size: UInt64
  /// The BLAKE2b-256 hash of the content, in hexadecimal digits; for a package, its digest
  /// (`PackageDigest`).
  package let hash: String
  /// The time of the delivery.
  package let time: Timestamp
  /// Whether the file was about to be put in place. After a crash it may or may not exist.
  var isPending: Bool
}

/// The notes of one app's inbox: a file in `.sandboxctl/inbox` of the device (docs/interapp.md).
struct InboxNotes: Sendable {
  /// The maximum size of the file in bytes: about 50,000 notes.
  static let limit = 16 << 20
  private static let format: Int64 = 1

  /// The notes, by name.
  private(set) var notes: [ByteString: InboxNote] = [:]

  /// Creates the notes of an empty inbox.
  init() {}

  subscript(name: ByteString) -> InboxNote? {
    get { notes[name] }
    set { notes[name] = newValue }
  }

  /// Reads a file; nil if it does not have this format.
  init?(_ bytes: [UInt8]) {
    guard let json = try? JSON(parsing: bytes), json["format"]?.integer == Self.format,
      let list = json["deliveries"]?.array
    else { return nil }
    for item in list {
      guard let note = InboxNote(item) else { return nil }
      notes[note.name] = note
    }
  }

  /// The bytes of the file, the notes sorted by name.
  var bytes: [UInt8] {
    let list = notes.values.sorted { $0.name < $1.name }.map(\.json)
    return JSON.object([
      JSON.Member("format", .integer(Self.format)), JSON.Member("deliveries", .array(list)),
    ]).compactBytes + [UInt8(ascii: "\n")]
  }
}

extension InboxNote {
  fileprivate var json: JSON {
    .object(
      JSON.path(name, named: "name") + [
        JSON.Member("size", .integer(Int64(clamping: size))), JSON.Member("hash", .string(hash)),
        JSON.Member("time", .string(time.rfc3339)), JSON.Member("pending", .bool(isPending)),
      ] + (isPackage ? [JSON.Member("package", .bool(true))] : []))
  }

  fileprivate init?(_ json: JSON) {
    guard let name = json.path(named: "name"), name.nameFault == nil,
      let size = json["size"]?.integer, size >= 0, let hash = json["hash"]?.string,
      let time = json["time"]?.string.flatMap({ Timestamp(rfc3339: $0) }),
      let isPending = json["pending"]?.bool
    else { return nil }
    self.init(
      name: name, isPackage: json["package"]?.bool ?? false, size: UInt64(size), hash: hash,
      time: time, isPending: isPending)
  }
}
