public import Codecs

/// What `repository.json` says: how a repository is made, and what a program must know to use it.
public struct RepositorySettings: Hashable, Sendable {
  /// What tells this repository from every other.
  public let id: Digest
  /// The program that made it.
  public let program: String
  /// Features that a reader, a writer and whoever prunes must know.
  public let features: Features

  /// Words for what a program must know for each kind of operation.
  public struct Features: Hashable, Sendable {
    public var read: [String] = []
    public var write: [String] = []
    public var prune: [String] = []

    /// Makes sets of features; none are known to this version.
    public init(read: [String] = [], write: [String] = [], prune: [String] = []) {
      self.read = read
      self.write = write
      self.prune = prune
    }
  }

  /// The features that this version knows.
  static let known: Set<String> = []
  static let format = "sandboxctl-repository"
  static let version: UInt64 = 1

  /// The text of `repository.json`.
  func encode() -> [UInt8] {
    let chunking: JSON = [
      "id": .string(GearChunker.identifier), "min": .integer(Int64(GearChunker.minimum)),
      "avg": .integer(Int64(GearChunker.average)), "max": .integer(Int64(GearChunker.maximum)),
      "gear": .string(GearChunker.tableDigest.hex),
      "sqlite": .count(ContentCutter.pageRun),
    ]
    let features: JSON = [
      "read": .array(features.read) { .string($0) },
      "write": .array(self.features.write) { .string($0) },
      "prune": .array(self.features.prune) { .string($0) },
    ]
    let json: JSON = [
      "format": .string(Self.format), "version": .count(Self.version), "id": .string(id.hex),
      "hash": "blake2b-256", "compression": "zstd", "chunking": chunking, "encryption": "none",
      "recipients": [], "features": features, "program": .string(program),
    ]
    return Array(json.pretty.utf8) + [UInt8(ascii: "\n")]
  }
}

// MARK: - Reading

extension RepositorySettings {
  /// The way on without the file: there is no second one.
  static let lossHint =
    "'python3 recover.py' restores without that file, and sandboxctl-repository(5) says how to "
    + "make it again"

  /// Reads the text, and refuses by name what this version does not know.
  init(_ text: [UInt8]) throws(StoreError) {
    do throws(StoreError) {
      try self.init(parsing: text)
    } catch {
      throw error.code == .damaged ? error.hinting("move it away: " + Self.lossHint) : error
    }
  }

  private init(parsing text: [UInt8]) throws(StoreError) {
    let object = "repository.json"
    let json: JSON
    do {
      json = try JSON(parsing: text)
    } catch { throw StoreError.damaged(object, error.description) }
    let fields = JSONFields(json: json, object: object)
    guard try fields.string("format") == Self.format else {
      throw StoreError(
        .noRepository, "open", object, "it is not of a repository of sandboxctl",
        hint: "check the path")
    }
    try Self.require("version", fields.count("version"), Self.version)
    try Self.require("hash", fields.string("hash"), "blake2b-256")
    try Self.require("compression", fields.string("compression"), "zstd")
    try Self.require("encryption", fields.string("encryption", default: "none"), "none")
    // Text, not strings: what a recipient is, only a version that knows one can tell.
    try Self.require("recipients", (fields.json["recipients"] ?? []).compact, "[]")
    let chunking = try fields.fields("chunking")
    try Self.require("chunking.id", chunking.string("id"), GearChunker.identifier)
    try Self.require("chunking.min", chunking.count("min"), UInt64(GearChunker.minimum))
    try Self.require("chunking.avg", chunking.count("avg"), UInt64(GearChunker.average))
    try Self.require("chunking.max", chunking.count("max"), UInt64(GearChunker.maximum))
    try Self.require("chunking.gear", chunking.string("gear"), GearChunker.tableDigest.hex)
    try Self.require("chunking.sqlite", chunking.count("sqlite"), ContentCutter.pageRun)
    // Whether there is one, and never its value.
    let hasSecret = (chunking.json["secret"] ?? .null) != .null
    try Self.require("chunking.secret", hasSecret ? "set" : "null", "null")
    let features = try fields.fields("features")
    id = try fields.digest("id")
    program = try fields.string("program", default: "")
    self.features = Features(
      read: try features.strings("read"), write: try features.strings("write"),
      prune: try features.strings("prune"))
  }

  private static func require<Value: Equatable>(
    _ name: String, _ value: Value, _ expected: Value
  ) throws(StoreError) {
    guard value == expected else {
      throw StoreError(
        .unsupported, "open", "repository.json",
        "\"\(name)\" is \(value), and this version knows only \(expected)",
        hint: "use a newer sandboxctl")
    }
  }

  /// Refuses an operation for which the repository asks for a feature that is not known.
  func requireKnown(_ words: [String], for operation: String, place: String) throws(StoreError) {
    guard let unknown = words.first(where: { !Self.known.contains($0) }) else { return }
    throw StoreError(
      .unknownFeature, operation, place,
      "the repository needs the feature \"\(unknown)\", which this version does not know",
      hint: "use a newer sandboxctl")
  }
}
