public import Codecs
public import SystemIO

/// The id of a snapshot: the BLAKE2b-256 of its stored bytes.
public typealias SnapshotID = Digest

/// A backup: a root tree with its source, time and policy (docs/repository-format.md, "Snapshot").
public struct Snapshot: Hashable, Sendable {
  /// The repository that contains it.
  public var repository: Digest
  /// The identity of the source: device, host and user. Equal for all runs of one source.
  public var source: Digest
  /// The position among the source's snapshots, starting at 1.
  public var sequence: UInt64
  /// The start time of the run.
  public var time: Timestamp
  public var host: String
  public var user: String
  public var device: DeviceRecord
  public var scope: Scope
  public var reason: Reason
  public var apps: [AppRecord] = []
  public var policy: PolicyRecord
  /// The root directory: its entries are the first components of logical paths.
  public var tree: TreeReference
  /// The snapshot that the run was based on.
  public var parent: SnapshotID?
  public var tags: [String] = []
  /// The name and version of the program.
  public var program: String
  public var totals = Totals()
  /// The data classes by path, in tree order. A class applies from its path on.
  public var classes: [ClassRun] = []
  /// The names of owners and groups at the time of the run.
  public var users: [NameRecord] = []
  public var groups: [NameRecord] = []
  public var excluded: [Exclusion] = []
  public var unreadable: [PathNote] = []
  public var warnings: [PathNote] = []
  /// Mount points that were not entered.
  public var mounts: [ByteString] = []
  public var databases: [DatabaseRecord] = []
  public var durationMilliseconds: UInt64 = 0
  /// The source of a copied snapshot; nil for an original.
  public var original: Original?
  /// Members written by a newer version.
  public var unknown: [JSON.Member] = []

  static let format = "sandboxctl-snapshot"
  static let version: UInt64 = 1

  /// Creates a snapshot with the required members.
  public init(
    repository: Digest, source: Digest, sequence: UInt64, time: Timestamp, host: String,
    user: String, device: DeviceRecord, scope: Scope = .device, reason: Reason = .manual,
    policy: PolicyRecord, tree: TreeReference, program: String
  ) {
    self.repository = repository
    self.source = source
    self.sequence = sequence
    self.time = time
    self.host = host
    self.user = user
    self.device = device
    self.scope = scope
    self.reason = reason
    self.policy = policy
    self.tree = tree
    self.program = program
  }
}

/// A snapshot with its id and its signature.
public final class StoredSnapshot: Hashable, Sendable {
  public let id: SnapshotID
  public let snapshot: Snapshot
  public let signature: SnapshotSignature

  /// Creates a snapshot from its parts.
  public init(id: SnapshotID, snapshot: Snapshot, signature: SnapshotSignature = .absent) {
    self.id = id
    self.snapshot = snapshot
    self.signature = signature
  }

  public static func == (left: StoredSnapshot, right: StoredSnapshot) -> Bool {
    left.id == right.id && left.signature == right.signature && left.snapshot == right.snapshot
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

// MARK: - Encoding

extension Snapshot {
  /// Returns the content: line 1 as JSON and, with a key, its signature as line 2.
  func encode(signedBy key: SigningKey? = nil) -> [UInt8] {
    let newline = [UInt8(ascii: "\n")]
    let line = json.compactBytes
    guard let key else { return line + newline }
    return line + newline
      + SnapshotSignature.encode(line, of: repository, signedBy: key) + newline
  }

  /// The stored document (docs/repository-format.md, "Snapshot"). The head comes first, so that it
  /// can be read without the tables.
  public var json: JSON {
    var members = identityMembers() + runMembers()
    members.add("device", device.json)
    members.add("apps", .array(apps) { $0.json }, unless: apps.isEmpty)
    return .object(members + findingMembers() + unknown)
  }

  private func identityMembers() -> [JSON.Member] {
    var members: [JSON.Member] = []
    members.add("format", .string(Self.format))
    members.add("version", .count(Self.version))
    members.add("repository", .string(repository.hex))
    members.add("source", .string(source.hex))
    members.add("sequence", .count(sequence))
    members.add("time", .string(time.rfc3339))
    members.add("host", .string(host))
    members.add("user", .string(user))
    members.add("reason", .string(reason.rawValue))
    members.add("tree", .string(tree.digest.hex))
    if let parent { members.add("parent", .string(parent.hex)) }
    return members
  }

  private func runMembers() -> [JSON.Member] {
    var members: [JSON.Member] = []
    members.add("policy", ["name": .string(policy.name), "digest": .string(policy.digest.hex)])
    members.add("program", .string(program))
    members.add("duration_ms", .count(durationMilliseconds))
    if let original {
      members.add(
        "original",
        ["repository": .string(original.repository.hex), "id": .string(original.id.hex)])
    }
    members.add("totals", totals.json)
    members.add("scope", scope.json)
    members.add("tags", .array(tags) { .string($0) }, unless: tags.isEmpty)
    return members
  }

  private func findingMembers() -> [JSON.Member] {
    var members: [JSON.Member] = []
    members.add("classes", .array(classes) { $0.json }, unless: classes.isEmpty)
    members.add("users", .array(users) { $0.json }, unless: users.isEmpty)
    members.add("groups", .array(groups) { $0.json }, unless: groups.isEmpty)
    members.add("left_out", .array(excluded) { $0.json }, unless: excluded.isEmpty)
    members.add("unreadable", .array(unreadable) { $0.json }, unless: unreadable.isEmpty)
    members.add("warnings", .array(warnings) { $0.json }, unless: warnings.isEmpty)
    members.add(
      "mounts", .array(mounts) { .pathObject($0) }, unless: mounts.isEmpty)
    members.add("databases", .array(databases) { $0.json }, unless: databases.isEmpty)
    return members
  }
}

// MARK: - Decoding

extension StoredSnapshot {
  /// Decodes a snapshot from its content, which was compared with the id. Errors name it as
  /// `object`.
  convenience init(id: SnapshotID, content: [UInt8], object: String) throws(StoreError) {
    let line = try Self.line(of: content, object: object)
    let snapshot = try Snapshot(line: line, object: object)
    self.init(
      id: id, snapshot: snapshot,
      signature: SnapshotSignature(in: content, of: snapshot.repository))
  }

  /// Returns line 1.
  static func line(of bytes: [UInt8], object: String) throws(StoreError) -> [UInt8] {
    guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else {
      throw .damaged(object, "its first line is incomplete")
    }
    return Array(bytes[..<end])
  }
}

extension Snapshot {
  /// The members that this version knows. All others are kept unchanged.
  private static let known: Set<String> = [
    "format", "version", "repository", "source", "sequence", "time", "host", "user", "device",
    "scope", "reason", "apps", "policy", "tree", "parent", "tags", "program", "totals", "classes",
    "users", "groups", "left_out", "unreadable", "warnings", "mounts", "databases", "duration_ms",
    "original",
  ]

  /// Reads line 1. Members that are not needed to restore files may be missing
  /// (docs/repository-format.md, "Snapshot").
  ///
  /// - Parameter wanted: the members to read; nil for all.
  init(
    line: [UInt8], object: String, keeping wanted: Set<String>? = nil
  ) throws(StoreError) {
    let fields = try Self.fields(line, object: object, keeping: wanted)
    let time = try Self.time(fields)
    let policy = try fields.fieldsOrNone("policy")
    self.init(
      repository: try fields.digest("repository"),
      source: try fields.digestIfPresent("source") ?? .missing,
      sequence: try fields.count("sequence", default: 0), time: time,
      host: try fields.string("host", default: ""), user: try fields.string("user", default: ""),
      device: try DeviceRecord(fields.fieldsOrNone("device")),
      scope: try Scope(fields.fieldsOrNone("scope")),
      reason: Reason(rawValue: try fields.string("reason", default: "")),
      policy: PolicyRecord(
        name: try policy.string("name", default: ""),
        digest: try policy.digestIfPresent("digest") ?? .missing),
      tree: TreeReference(try fields.digest("tree")),
      program: try fields.string("program", default: ""))
    try readRest(fields)
    unknown = (fields.json.members ?? []).filter { !Self.known.contains($0.name) }
  }

  /// Returns the members of line 1, all or the wanted ones, after checking the version.
  private static func fields(
    _ line: [UInt8], object: String, keeping wanted: Set<String>?
  ) throws(StoreError) -> JSONFields {
    let limits = JSON.Limits(
      bytes: FormatLimit.snapshot, depth: 16, values: FormatLimit.snapshotValues)
    let json: JSON
    do {
      json = try JSON(parsing: line, limits: limits, keeping: wanted)
    } catch { throw .damaged(object, error.description) }
    let fields = JSONFields(json: json, object: object)
    try requireVersion(fields)
    return fields
  }

  private static func time(_ fields: JSONFields) throws(StoreError) -> Timestamp {
    guard let time = Timestamp(rfc3339: try fields.string("time")) else {
      throw fields.fault("time", "a time of RFC 3339")
    }
    return time
  }

  private static func requireVersion(_ fields: JSONFields) throws(StoreError) {
    guard try fields.string("format") == format else {
      throw .damaged(fields.object, "it is not a sandboxctl snapshot")
    }
    let version = try fields.count("version")
    guard version == Self.version else {
      throw StoreError(
        .unsupported, "use", subject: fields.object,
        reason: "snapshot version \(version) is not supported",
        hint: "use a newer sandboxctl")
    }
  }

  private mutating func readRest(_ fields: JSONFields) throws(StoreError) {
    apps = try fields.elements("apps") { field throws(StoreError) in try AppRecord(field) }
    parent = try fields.digestIfPresent("parent")
    tags = try fields.strings("tags")
    totals = try Totals(fields.fieldsOrNone("totals"))
    classes = try fields.elements("classes") { field throws(StoreError) in
      ClassRun(path: try field.path("path"), name: try field.string("class"))
    }
    users = try fields.elements("users") { field throws(StoreError) in try NameRecord(field) }
    groups = try fields.elements("groups") { field throws(StoreError) in try NameRecord(field) }
    excluded = try fields.elements("left_out") { field throws(StoreError) in
      Exclusion(
        path: try field.path("path"), rule: try field.string("rule"),
        files: try field.count("files"), bytes: try field.count("bytes"),
        directory: try field.directoryIfPresent("directory"))
    }
    unreadable = try fields.elements("unreadable") { field throws(StoreError) in
      try PathNote(field)
    }
    warnings = try fields.elements("warnings") { field throws(StoreError) in try PathNote(field) }
    mounts = try fields.elements("mounts") { field throws(StoreError) in try field.path("path") }
    databases = try fields.elements("databases") { field throws(StoreError) in
      DatabaseRecord(path: try field.path("path"), how: try field.string("how"))
    }
    durationMilliseconds = try fields.count("duration_ms", default: 0)
    if fields.json["original"] != nil {
      let original = try fields.fields("original")
      self.original = Original(
        repository: try original.digest("repository"), id: try original.digest("id"))
    }
  }
}

extension Digest {
  /// The placeholder for a hash that a snapshot does not have: the hash of no bytes, which no
  /// source and no policy has.
  static let missing = Blake2b.hash([])
}
