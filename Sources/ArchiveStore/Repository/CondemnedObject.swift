internal import Codecs
internal import SystemIO

/// The packs that prune is about to remove. No writer relies on their content.
struct CondemnedObject {
  let packs: [Digest]

  static let format = "sandboxctl-condemned"
  /// The maximum number of packs in one object, so that it stays below the limits of a reader.
  static let maximumPacks = 65_536

  init(packs: Set<Digest>) { self.packs = packs.sorted() }

  func encode() -> [UInt8] {
    let json: JSON = [
      "format": .string(Self.format), "version": 1,
      "packs": .array(packs.map { .string($0.hex) }),
    ]
    return json.compactBytes + [UInt8(ascii: "\n")]
  }

  /// Returns the id in the name of a condemned object, or nil for another name.
  static func id(_ name: ByteString) -> String? {
    guard let text = name.utf8, text.hasSuffix(suffix) else { return nil }
    return String(text.dropLast(suffix.count))
  }

  /// Returns the path of a condemned object.
  static func path(_ id: String) -> ObjectPath {
    RepositoryLayout.condemned.appending(ByteString(id + suffix))
  }

  private static let suffix = ".json"

  /// Loads a condemned object, or returns nil if it no longer exists, in which case its packs are
  /// gone as well.
  static func load(
    _ name: ByteString, from storage: any Storage
  ) throws(StoreError) -> CondemnedObject? {
    let path = RepositoryLayout.condemned.appending(name)
    do {
      return try CondemnedObject(
        try storage.load(path, limit: FormatLimit.contents), object: path.description)
    } catch {
      if error.code == .missing { return nil }
      throw error
    }
  }

  /// Returns all condemned objects by id.
  static func all(_ storage: any Storage) throws(StoreError) -> [String: CondemnedObject] {
    var objects: [String: CondemnedObject] = [:]
    for name in try storage.listIfPresent(RepositoryLayout.condemned) ?? [] {
      guard let id = id(name) else { continue }
      objects[id] = try load(name, from: storage)
    }
    return objects
  }

  /// Returns the packs of all condemned objects.
  static func allPacks(_ storage: any Storage) throws(StoreError) -> Set<Digest> {
    Set(try all(storage).values.flatMap(\.packs))
  }

  init(_ text: [UInt8], object: String) throws(StoreError) {
    let json: JSON
    do { json = try JSON(parsing: text) } catch { throw .damaged(object, error.description) }
    let fields = JSONFields(json: json, object: object)
    guard try fields.string("format") == Self.format, try fields.count("version") == 1 else {
      throw StoreError(
        .unsupported, "use", subject: object,
        reason: "it is not a version 1 list of condemned packs",
        hint: "use a newer sandboxctl")
    }
    packs = try fields.elements("packs") { field throws(StoreError) in
      guard let id = field.json.string.flatMap({ Digest(hex: $0) }) else {
        throw fields.fault("packs", "an array of pack ids")
      }
      return id
    }
  }
}
