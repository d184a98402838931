internal import Codecs
internal import SystemIO

extension StoredSnapshot {
  /// Reads a stored snapshot after verifying its bytes against its id.
  init(id: SnapshotID, bytes: [UInt8]) throws(StoreError) {
    let line = try Self.line(of: bytes, id: id)
    self.init(id: id, snapshot: try Snapshot(line: line, object: "snapshots/\(id.hex).json"))
  }

  /// Returns line 1 after verifying the bytes against the id.
  static func line(of bytes: [UInt8], id: SnapshotID) throws(StoreError) -> [UInt8] {
    let object = "snapshots/\(id.hex).json"
    guard Blake2b.hash(bytes) == id else {
      throw .damaged(object, "its content does not match its id")
    }
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

extension Scope {
  fileprivate init(_ fields: JSONFields) throws(StoreError) {
    switch try fields.string("kind", default: "device") {
    case "device": self = .device
    case "apps": self = .apps(try fields.strings("apps"))
    default: throw fields.fault("kind", "\"device\" or \"apps\"")
    }
  }
}

extension DeviceRecord {
  init(_ fields: JSONFields) throws(StoreError) {
    self.init(
      identity: try fields.string("identity", default: ""),
      platform: try fields.string("platform", default: ""),
      layout: try fields.string("layout", default: ""), root: try fields.path("root", default: ""),
      osVersion: fields.json["os_version"]?.string,
      containers: try fields.elements("containers") { field throws(StoreError) in
        ContainerRecord(
          path: try field.path("path"), uuid: field.json["uuid"]?.string,
          revision: field.json["revision"]?.string, realPath: try field.path("real_path"))
      })
  }
}

extension AppRecord {
  init(_ fields: JSONFields) throws(StoreError) {
    self.init(
      identifier: try fields.string("id"), name: fields.json["name"]?.string,
      version: fields.json["version"]?.string, build: fields.json["build"]?.string,
      containers: try fields.elements("containers") { field throws(StoreError) in
        try field.path("path")
      })
    groups = try fields.elements("groups") { field throws(StoreError) in
      GroupRecord(
        identifier: try field.string("id"), isKnown: field.json["known"]?.bool ?? false)
    }
    if fields.json["flatpak"] != nil { flatpak = try FlatpakRecord(fields.fields("flatpak")) }
  }
}

extension FlatpakRecord {
  fileprivate init(_ fields: JSONFields) throws(StoreError) {
    self.init(
      scope: try fields.string("scope"), architecture: try fields.string("arch"),
      branch: try fields.string("branch"), commit: try fields.string("commit"),
      origin: fields.json["origin"]?.string, url: fields.json["url"]?.string,
      runtime: fields.json["runtime"]?.string)
  }
}

extension Totals {
  fileprivate init(_ fields: JSONFields) throws(StoreError) {
    entries = try fields.count("entries", default: 0)
    files = try fields.count("files", default: 0)
    bytes = try fields.count("bytes", default: 0)
    stored = try fields.count("stored", default: 0)
    classes = try fields.elements("classes") { field throws(StoreError) in
      ClassTotal(
        name: try field.string("name"), files: try field.count("files"),
        bytes: try field.count("bytes"))
    }
  }
}

extension NameRecord {
  fileprivate init(_ fields: JSONFields) throws(StoreError) {
    guard let id = UInt32(exactly: try fields.count("id")) else {
      throw fields.fault("id", "a number of 32 bits")
    }
    self.init(id: id, name: try fields.string("name"))
  }
}

extension PathNote {
  fileprivate init(_ fields: JSONFields) throws(StoreError) {
    self.init(path: try fields.path("path"), note: try fields.string("note"))
  }
}

extension JSONFields {
  /// Returns a directory's entry in base64, with inline attributes only, or nil if the member is
  /// missing.
  fileprivate func directoryIfPresent(_ name: String) throws(StoreError) -> TreeEntry? {
    guard json[name] != nil else { return nil }
    guard let bytes = Base64.decode(try string(name).utf8),
      let entry = try? TreeEntry(encoded: bytes), case .directory = entry.node,
      entry.attributes.allSatisfy({ if case .inline = $0.value { true } else { false } })
    else { throw fault(name, "a directory's entry") }
    return entry
  }
}
