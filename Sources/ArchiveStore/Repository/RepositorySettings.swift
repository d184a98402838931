public import Codecs

/// The settings in `repository.json`: the methods of a repository and the features it requires.
public struct RepositorySettings: Hashable, Sendable {
  /// The unique id of the repository.
  public let id: Digest
  /// The program that created it.
  public let program: String
  /// The features that readers, writers and prune must support.
  public let features: Features

  /// The recipients of an encrypted repository, as `repository.json` names them; none if it is not
  /// encrypted. Anyone who can write to the store can change them.
  public let recipients: [AgeRecipient]
  /// The recipients of identities from before rotations, as far as objects may still need them.
  /// Like `recipients` they are not authenticated: they only hint at the keys that are needed.
  public let olderRecipients: [AgeRecipient]

  /// Whether objects are encrypted.
  public var isEncrypted: Bool { !recipients.isEmpty }

  init(id: Digest, program: String, features: Features, recipients: [AgeRecipient] = []) {
    (self.id, self.program, self.features) = (id, program, features)
    (self.recipients, olderRecipients) = (recipients, [])
  }

  /// The names of the features required for each kind of operation.
  public struct Features: Hashable, Sendable {
    public var read: [String] = []
    public var write: [String] = []
    public var prune: [String] = []

    /// Creates sets of features. This version supports none.
    public init(read: [String] = [], write: [String] = [], prune: [String] = []) {
      self.read = read
      self.write = write
      self.prune = prune
    }
  }

  /// The features that this version supports.
  static let known: Set<String> = []
  static let format = "sandboxctl-repository"
  static let version: UInt64 = 1
  /// The name of the encryption: age files, version 1.
  private static let encryption = "age"

  /// Returns the text of `repository.json`.
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
      "hash": "blake2b-256", "compression": "zstd", "chunking": chunking,
      "encryption": .string(isEncrypted ? Self.encryption : "none"),
      "recipients": .array(recipients) { .string($0.description) }, "features": features,
      "program": .string(program),
    ]
    return Array(json.pretty.utf8) + [UInt8(ascii: "\n")]
  }

  /// Returns the text of a `repository.json` with other recipients. All other members stay,
  /// including unknown ones.
  ///
  /// - Throws: `damaged` if the text is not JSON.
  static func replace(
    _ recipients: [AgeRecipient], older: [AgeRecipient], in text: [UInt8]
  ) throws(StoreError) -> [UInt8] {
    let json: JSON
    do {
      json = try JSON(parsing: text)
    } catch { throw StoreError.damaged("repository.json", error.description) }
    var members: [JSON.Member] = []
    for member in json.members ?? [] where member.name != olderName {
      guard member.name == recipientsName else {
        members.append(member)
        continue
      }
      members.append(
        JSON.Member(recipientsName, .array(recipients) { .string($0.description) }))
      guard !older.isEmpty else { continue }
      members.append(JSON.Member(olderName, .array(older) { .string($0.description) }))
    }
    return Array(JSON.object(members).pretty.utf8) + [UInt8(ascii: "\n")]
  }

  private static let recipientsName = "recipients"
  private static let olderName = "older_recipients"
}

// MARK: - Reading

extension RepositorySettings {
  /// The hint for a lost file, of which there is no second copy.
  static let lossHint =
    "'python3 recover.py' restores without this file, and sandboxctl-repository(5) describes how to "
    + "create it again"

  /// Reads the text, and refuses unsupported values by name.
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
        .noRepository, "open", subject: object,
        reason: "it does not belong to a sandboxctl repository",
        hint: "check the path")
    }
    try Self.require("version", fields.count("version"), toBe: Self.version)
    try Self.require("hash", fields.string("hash"), toBe: "blake2b-256")
    try Self.require("compression", fields.string("compression"), toBe: "zstd")
    recipients = try Self.recipients(fields)
    // A recipient of a type unknown to this version belongs to a key that it does not have.
    olderRecipients = (json[Self.olderName]?.array ?? []).compactMap { element in
      element.string.flatMap { try? AgeRecipient($0) }
    }
    let chunking = try fields.fields("chunking")
    try Self.require("chunking.id", chunking.string("id"), toBe: GearChunker.identifier)
    try Self.require("chunking.min", chunking.count("min"), toBe: UInt64(GearChunker.minimum))
    try Self.require("chunking.avg", chunking.count("avg"), toBe: UInt64(GearChunker.average))
    try Self.require("chunking.max", chunking.count("max"), toBe: UInt64(GearChunker.maximum))
    try Self.require("chunking.gear", chunking.string("gear"), toBe: GearChunker.tableDigest.hex)
    try Self.require("chunking.sqlite", chunking.count("sqlite"), toBe: ContentCutter.pageRun)
    // The value of a secret is never printed.
    let hasSecret = (chunking.json["secret"] ?? .null) != .null
    try Self.require("chunking.secret", hasSecret ? "set" : "null", toBe: "null")
    let features = try fields.fields("features")
    id = try fields.digest("id")
    program = try fields.string("program", default: "")
    self.features = Features(
      read: try features.strings("read"), write: try features.strings("write"),
      prune: try features.strings("prune"))
  }

  /// Reads the encryption and its recipients: at least one, or none without encryption.
  private static func recipients(_ fields: JSONFields) throws(StoreError) -> [AgeRecipient] {
    guard try fields.string("encryption", default: "none") != "none" else {
      try require("recipients", (fields.json["recipients"] ?? []).compact, toBe: "[]")
      return []
    }
    try require("encryption", fields.string("encryption"), toBe: encryption)
    let recipients = try fields.strings("recipients").map { text throws(StoreError) in
      try recipient(text, fields)
    }
    if recipients.isEmpty {
      throw .damaged(fields.object, "its \"encryption\" is \"age\", but it has no recipients")
    }
    return recipients
  }

  private static func recipient(
    _ text: String, _ fields: JSONFields
  ) throws(StoreError) -> AgeRecipient {
    do {
      return try AgeRecipient(text)
    } catch {
      guard error.kind == .unsupported else {
        throw fields.fault("recipients", "an array of age recipients: \(error.reason)")
      }
      throw StoreError(
        .unsupported, "open", subject: fields.object, reason: error.reason,
        hint: "use a newer sandboxctl")
    }
  }

  private static func require<Value: Equatable>(
    _ name: String, _ value: Value, toBe expected: Value
  ) throws(StoreError) {
    guard value == expected else {
      throw StoreError(
        .unsupported, "open", subject: "repository.json",
        reason: "\"\(name)\" is \(value), but this version supports only \(expected)",
        hint: "use a newer sandboxctl")
    }
  }

  /// An operation for which a repository can require features.
  enum Operation: String { case read, write, prune }

  /// Checks that this version supports the features that the repository at a location requires for
  /// an operation.
  ///
  /// - Throws: `unknownFeature`.
  func requireKnownFeatures(
    for operation: Operation, at location: String
  ) throws(StoreError) {
    let required =
      switch operation {
      case .read: features.read
      case .write: features.write
      case .prune: features.prune
      }
    guard let unknown = required.first(where: { !Self.known.contains($0) }) else { return }
    throw StoreError(
      .unknownFeature, operation.rawValue, subject: location,
      reason:
        "the repository requires the feature \"\(unknown)\", which this version does not support",
      hint: "use a newer sandboxctl")
  }
}

extension Repository {
  /// Checks that this version supports the features that the repository requires for operations.
  ///
  /// - Throws: `unknownFeature`.
  func requireKnownFeatures(for operations: RepositorySettings.Operation...) throws(StoreError) {
    for operation in operations {
      try settings.requireKnownFeatures(for: operation, at: location)
    }
  }
}
