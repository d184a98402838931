internal import Codecs
internal import SystemIO

/// The paths of a repository's objects (docs/repository-format.md, "Layout"). Those of packs, index
/// objects and snapshots end in `.age` in an encrypted repository.
struct RepositoryLayout: Hashable, Sendable {
  /// The layout of a repository without encryption.
  static let plain = RepositoryLayout(isEncrypted: false)

  let isEncrypted: Bool

  static let settings = ObjectPath.root.appending("repository.json")
  static let readme = ObjectPath.root.appending("README.txt")
  static let recoverScript = ObjectPath.root.appending("recover.py")
  static let reserve = ObjectPath.root.appending("reserve")
  static let packs = ObjectPath.root.appending("packs")
  static let indexes = ObjectPath.root.appending("index")
  static let snapshots = ObjectPath.root.appending("snapshots")
  static let condemned = ObjectPath.root.appending("condemned")
  static let damaged = ObjectPath.root.appending("damaged")
  static let pending = ObjectPath.root.appending("pending")
  static let pins = ObjectPath.root.appending("pins")
  static let leases = ObjectPath.root.appending("leases")
  static let keys = ObjectPath.root.appending("keys")

  /// The directories in the root of a new repository.
  static let directories: [ByteString] = [
    "condemned", "index", "keys", "leases", "packs", "pins", "snapshots",
  ]

  /// The directories of packs: 00 to ff.
  static let packDirectories: [ByteString] = (0..<256).map { ByteString(Hex.encode([UInt8($0)])) }

  static let reserveSize = 4 << 20

  private static let encryptedSuffix = ".age"

  private func suffix(_ kind: ObjectKind) -> String {
    isEncrypted ? kind.suffix + Self.encryptedSuffix : kind.suffix
  }

  private func name(_ id: Digest, _ kind: ObjectKind) -> ByteString {
    ByteString(id.hex + suffix(kind))
  }

  /// Returns the path of an object.
  func path(_ id: Digest, kind: ObjectKind) -> ObjectPath {
    switch kind {
    case .pack:
      Self.packs.appending(ByteString(String(id.hex.prefix(2)))).appending(name(id, .pack))
    case .index: Self.indexes.appending(name(id, .index))
    case .snapshot: Self.snapshots.appending(name(id, .snapshot))
    }
  }

  func pack(_ id: Digest) -> ObjectPath { path(id, kind: .pack) }

  func index(_ id: Digest) -> ObjectPath { path(id, kind: .index) }

  func snapshot(_ id: Digest) -> ObjectPath { path(id, kind: .snapshot) }

  /// Returns the path to which a damaged pack moves after its intact blobs were stored again.
  func setAside(_ id: Digest) -> ObjectPath { Self.damaged.appending(name(id, .pack)) }

  /// Returns the id in an object's file name, or nil if the name is not of that kind.
  func id(_ name: ByteString, kind: ObjectKind) -> Digest? {
    Self.id(name, suffix: suffix(kind))
  }

  /// Returns the id of a pack from its path, or nil if the path is not a pack's. Nothing is
  /// allocated: listings have thousands of packs.
  func packID(_ path: ObjectPath) -> Digest? {
    let names = path.components
    guard names.count == Self.packs.components.count + 2, names.starts(with: Self.packs.components),
      let id = id(path.name, kind: .pack)
    else { return nil }
    let directory = names[names.count - 2].bytes
    return directory.count == 2 && path.name.bytes.starts(with: directory) ? id : nil
  }

  /// Returns the id of a snapshot from its path, or nil if the path is not a snapshot's.
  func snapshotID(_ path: ObjectPath) -> Digest? {
    let names = path.components
    guard names.count == Self.snapshots.components.count + 1,
      names.starts(with: Self.snapshots.components)
    else { return nil }
    return id(path.name, kind: .snapshot)
  }

  /// Returns the path of a damage record.
  static func record(_ id: Digest) -> ObjectPath {
    damaged.appending(ByteString(id.hex + ".json"))
  }

  /// Returns the path of the empty file that pins a snapshot.
  static func pin(_ id: Digest) -> ObjectPath { pins.appending(ByteString(id.hex)) }

  /// Returns the id of the pinned snapshot from the path of a pin, or nil if the path is not a
  /// pin's.
  static func pinID(_ path: ObjectPath) -> Digest? {
    path.directory == pins ? id(path.name, suffix: "") : nil
  }

  /// Returns the id in a file name with a suffix, or nil if it is another name.
  static func id(_ name: ByteString, suffix: String) -> Digest? {
    let digits = 2 * Digest.byteCount
    guard name.count == digits + suffix.utf8.count, name.hasSuffix(suffix) else { return nil }
    return name.withSpan { Digest(digits: $0.extracting(0..<digits)) }
  }
}
