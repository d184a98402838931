internal import Codecs
internal import SystemIO

/// The paths of a repository's objects (docs/repository-format.md, "Layout").
enum RepositoryLayout {
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

  private static let packSuffix = ".tar.zst"

  static func pack(_ id: Digest) -> ObjectPath {
    let hex = id.hex
    return packs.appending(ByteString(String(hex.prefix(2))))
      .appending(ByteString(hex + packSuffix))
  }

  /// Returns the id of a pack from its path, or nil if the path is not a pack's. Nothing is
  /// allocated: listings have thousands of packs.
  static func packID(_ path: ObjectPath) -> Digest? {
    let names = path.components
    guard names.count == packs.components.count + 2, names.starts(with: packs.components),
      let id = id(path.name, suffix: packSuffix)
    else { return nil }
    let directory = names[names.count - 2].bytes
    return directory.count == 2 && path.name.bytes.starts(with: directory) ? id : nil
  }

  /// Returns the id of a snapshot from its path, or nil if the path is not a snapshot's.
  static func snapshotID(_ path: ObjectPath) -> Digest? {
    let names = path.components
    guard names.count == snapshots.components.count + 1, names.starts(with: snapshots.components)
    else { return nil }
    return id(path.name, suffix: ".json")
  }

  /// Returns the path to which a damaged pack moves after its intact blobs were stored again.
  static func setAside(_ id: Digest) -> ObjectPath {
    damaged.appending(ByteString(id.hex + packSuffix))
  }

  /// Returns the path of a damage record.
  static func record(_ id: Digest) -> ObjectPath {
    damaged.appending(ByteString(id.hex + ".json"))
  }

  static func index(_ id: Digest) -> ObjectPath {
    indexes.appending(ByteString(id.hex + ".index"))
  }

  static func snapshot(_ id: Digest) -> ObjectPath {
    snapshots.appending(ByteString(id.hex + ".json"))
  }

  /// Returns the path of the empty file that pins a snapshot.
  static func pin(_ id: Digest) -> ObjectPath { pins.appending(ByteString(id.hex)) }

  /// Returns the id in an object's file name, or nil if the name is not of that kind.
  static func id(_ name: ByteString, suffix: String) -> Digest? {
    let digits = 2 * Digest.byteCount
    guard name.count == digits + suffix.utf8.count, name.hasSuffix(suffix) else { return nil }
    return name.withSpan { Digest(digits: $0.extracting(0..<digits)) }
  }
}
