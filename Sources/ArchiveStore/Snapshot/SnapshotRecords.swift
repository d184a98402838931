public import Codecs
public import SystemIO

/// The part of a device that a snapshot covers.
public enum Scope: Hashable, Sendable {
  case device
  /// Only these apps, by identifier.
  case apps([String])
}

/// The reason for a snapshot. It is a word, so that reasons of newer versions are preserved.
public struct Reason: RawRepresentable, Hashable, Sendable {
  public let rawValue: String

  /// Creates a reason from its word.
  public init(rawValue: String) { self.rawValue = rawValue }

  public static let manual = Reason(rawValue: "manual")
  public static let scheduled = Reason(rawValue: "scheduled")
  public static let preUpdate = Reason(rawValue: "pre-update")
  public static let preRestore = Reason(rawValue: "pre-restore")
  public static let preRollback = Reason(rawValue: "pre-rollback")
  public static let uninstall = Reason(rawValue: "uninstall")
}

/// The policy of the run.
public struct PolicyRecord: Hashable, Sendable {
  public var name: String
  /// The digest of all layers of the policy.
  public var digest: Digest

  /// Creates a record.
  public init(name: String, digest: Digest) {
    self.name = name
    self.digest = digest
  }
}

/// The totals of a snapshot.
public struct Totals: Hashable, Sendable {
  public var entries: UInt64 = 0
  public var files: UInt64 = 0
  /// The bytes of the files' contents. A hard-linked file counts once.
  public var bytes: UInt64 = 0
  /// The bytes that this run added to packs.
  public var stored: UInt64 = 0
  public var classes: [Class] = []

  /// Creates empty totals.
  public init() {}
}

extension Totals {
  /// The totals of one data class in a snapshot.
  public struct Class: Hashable, Sendable {
    public var name: String
    public var files: UInt64
    public var bytes: UInt64

    /// Creates a total.
    public init(name: String, files: UInt64, bytes: UInt64) {
      self.name = name
      self.files = files
      self.bytes = bytes
    }
  }
}

/// The data class of a path and everything below it, up to a deeper path with another run.
public struct ClassRun: Hashable, Sendable {
  public var path: ByteString
  public var name: String

  /// Creates a run.
  public init(path: ByteString, name: String) {
    self.path = path
    self.name = name
  }
}

/// The id and name of a user or group.
public struct NameRecord: Hashable, Sendable {
  public var id: UInt32
  public var name: String

  /// Creates a record.
  public init(id: UInt32, name: String) {
    self.id = id
    self.name = name
  }
}

/// Content that a rule excluded from the snapshot.
public struct Exclusion: Hashable, Sendable {
  public var path: ByteString
  public var rule: String
  public var files: UInt64
  public var bytes: UInt64
  /// The directory itself, if a restore creates it again, empty: its mode, owner, times, attributes
  /// and flags. Its tree is not used, and its attributes are inline.
  public var directory: TreeEntry?

  /// The placeholder for a rule in a record that summarizes unlisted exclusions below its path. No
  /// rule has this name.
  public static let unnamed = "too many to name"

  /// Creates a record.
  public init(
    path: ByteString, rule: String, files: UInt64, bytes: UInt64, directory: TreeEntry? = nil
  ) {
    self.path = path
    self.rule = rule
    self.files = files
    self.bytes = bytes
    self.directory = directory
  }

  /// Whether the content is at a path, below it or above it. Everything is below an empty path.
  package func concerns(_ other: ByteString) -> Bool {
    path.isWithin(other) || other.isWithin(path)
  }
}

/// A note on a path.
public struct PathNote: Hashable, Sendable {
  public var path: ByteString
  public var note: String

  /// Creates a note.
  public init(path: ByteString, note: String) {
    self.path = path
    self.note = note
  }
}

/// A database and its capture method.
public struct DatabaseRecord: Hashable, Sendable {
  public var path: ByteString
  public var how: String

  /// Creates a record.
  public init(path: ByteString, how: String) {
    self.path = path
    self.how = how
  }
}

extension Snapshot {
  /// The source of a copied snapshot.
  public struct Original: Hashable, Sendable {
    public var repository: Digest
    public var id: SnapshotID

    /// Creates a record.
    public init(repository: Digest, id: SnapshotID) {
      self.repository = repository
      self.id = id
    }
  }
}

// MARK: - Encoding

extension Scope {
  var json: JSON {
    switch self {
    case .device: ["kind": "device"]
    case .apps(let apps): ["kind": "apps", "apps": .array(apps) { .string($0) }]
    }
  }
}

extension Totals {
  var json: JSON {
    let classes = JSON.array(classes) {
      ["name": .string($0.name), "files": .count($0.files), "bytes": .count($0.bytes)]
    }
    return [
      "entries": .count(entries), "files": .count(files), "bytes": .count(bytes),
      "stored": .count(stored), "classes": classes,
    ]
  }
}

extension ClassRun {
  var json: JSON { .pathObject(path, [JSON.Member("class", .string(name))]) }
}

extension NameRecord {
  var json: JSON { ["id": .integer(Int64(id)), "name": .string(name)] }
}

extension Exclusion {
  var json: JSON {
    var members = [
      JSON.Member("rule", .string(rule)), JSON.Member("files", .count(files)),
      JSON.Member("bytes", .count(bytes)),
    ]
    // A directory that the format cannot represent is not created by a restore.
    if let entry = try? directory?.encoded() {
      members.append(JSON.Member("directory", .string(Base64.encode(entry))))
    }
    return .pathObject(path, members)
  }
}

extension PathNote {
  var json: JSON { .pathObject(path, [JSON.Member("note", .string(note))]) }
}

extension DatabaseRecord {
  var json: JSON { .pathObject(path, [JSON.Member("how", .string(how))]) }
}

extension JSON {
  /// Returns an object with a path, followed by more members.
  static func pathObject(_ path: ByteString, _ more: [JSON.Member] = []) -> JSON {
    var members: [JSON.Member] = []
    members.add("path", path: path)
    return .object(members + more)
  }
}

// MARK: - Decoding

extension Scope {
  init(_ fields: JSONFields) throws(StoreError) {
    switch try fields.string("kind", default: "device") {
    case "device": self = .device
    case "apps": self = .apps(try fields.strings("apps"))
    default: throw fields.fault("kind", "\"device\" or \"apps\"")
    }
  }
}

extension Totals {
  init(_ fields: JSONFields) throws(StoreError) {
    entries = try fields.count("entries", default: 0)
    files = try fields.count("files", default: 0)
    bytes = try fields.count("bytes", default: 0)
    stored = try fields.count("stored", default: 0)
    classes = try fields.elements("classes") { field throws(StoreError) in
      Class(
        name: try field.string("name"), files: try field.count("files"),
        bytes: try field.count("bytes"))
    }
  }
}

extension NameRecord {
  init(_ fields: JSONFields) throws(StoreError) {
    guard let id = UInt32(exactly: try fields.count("id")) else {
      throw fields.fault("id", "a number of 32 bits")
    }
    self.init(id: id, name: try fields.string("name"))
  }
}

extension PathNote {
  init(_ fields: JSONFields) throws(StoreError) {
    self.init(path: try fields.path("path"), note: try fields.string("note"))
  }
}

extension JSONFields {
  /// Returns a directory's entry in base64, with inline attributes only, or nil if the member is
  /// missing.
  func directoryIfPresent(_ name: String) throws(StoreError) -> TreeEntry? {
    guard json[name] != nil else { return nil }
    guard let bytes = Base64.decode(try string(name).utf8),
      let entry = try? TreeEntry(encoded: bytes), case .directory = entry.node,
      entry.attributes.allSatisfy({ if case .inline = $0.value { true } else { false } })
    else { throw fault(name, "a directory's entry") }
    return entry
  }
}
