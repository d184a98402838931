internal import Codecs
internal import SystemIO

extension Repository {
  /// Whether the repository is a mirror of another one with the same id.
  func isMirror() throws(StoreError) -> Bool { try storage.status(MirrorRecord.path) != nil }
}

/// The file `mirror.json` of a mirror: the snapshots that came from the original repository. So a
/// snapshot that was removed from the original can be distinguished from one that was made in the
/// mirror (docs/repository-format.md, "Mirrors").
///
/// A snapshot is recorded before it is written, and its record is removed after it is removed.
struct MirrorRecord: Equatable {
  let repository: Digest
  var snapshots: Set<SnapshotID>

  static let path = ObjectPath.root.appending("mirror.json")
  private static let format = "sandboxctl-mirror"
  private static let limit = 64 << 20

  init(repository: Digest, snapshots: Set<SnapshotID> = []) {
    (self.repository, self.snapshots) = (repository, snapshots)
  }

  /// Loads the record of a mirror, or returns nil if there is none.
  ///
  /// - Throws: `damaged` if it is not intact, `unsupported` for a later version.
  static func load(_ storage: RepositoryStorage) throws(StoreError) -> MirrorRecord? {
    let bytes: [UInt8]
    do throws(StoreError) {
      bytes = try storage.load(path, limit: limit)
    } catch {
      guard error.code == .missing else { throw error }
      return nil
    }
    do throws(StoreError) {
      return try MirrorRecord(bytes)
    } catch {
      guard error.code == .damaged else { throw error }
      throw error.hinting(
        "remove the file: the next run accepts the mirror if it has no snapshot that the original "
          + "lacks")
    }
  }

  private init(_ text: [UInt8]) throws(StoreError) {
    let object = "\(Self.path)"
    let json: JSON
    do { json = try JSON(parsing: text) } catch { throw .damaged(object, error.description) }
    let fields = JSONFields(json: json, object: object)
    guard try fields.string("format") == Self.format, try fields.count("version") == 1 else {
      throw StoreError(
        .unsupported, "use", subject: object, reason: "it is not a version 1 record of a mirror",
        hint: "use a newer sandboxctl")
    }
    repository = try fields.digest("repository")
    snapshots = Set(
      try fields.elements("snapshots") { field throws(StoreError) in
        guard let id = field.json.string.flatMap({ Digest(hex: $0) }) else {
          throw fields.fault("snapshots", "an array of snapshot ids")
        }
        return id
      })
  }

  func encode() -> [UInt8] {
    let json: JSON = [
      "format": .string(Self.format), "version": 1, "repository": .string(repository.hex),
      "snapshots": .array(snapshots.sorted().map { .string($0.hex) }),
    ]
    return json.line
  }
}
