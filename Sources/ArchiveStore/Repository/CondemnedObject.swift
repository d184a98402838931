internal import Codecs
internal import SystemIO

/// The packs that prune is about to remove. No writer relies on their content.
struct CondemnedObject {
  let packs: [Digest]

  static let format = "sandboxctl-condemned"

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

  /// Returns the packs of all condemned objects.
  static func allPacks(_ storage: any Storage) throws(StoreError) -> Set<Digest> {
    var packs: Set<Digest> = []
    for name in try storage.listIfPresent(RepositoryLayout.condemned) ?? [] {
      guard name.utf8?.hasSuffix(".json") == true else { continue }
      packs.formUnion(try load(name, from: storage)?.packs ?? [])
    }
    return packs
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
