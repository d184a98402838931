internal import Codecs
internal import SystemIO

extension RepositoryLayout {
  /// The beginning of the names of probes: objects that show how a storage behaves and what its
  /// user may do. They do not belong to the repository.
  private static let probePrefix = "probe-"
  private static let probeDigits = 16

  /// Returns a unique name for a probe.
  static func newProbe() -> ByteString {
    ByteString(probePrefix + Host.randomHex(bytes: probeDigits / 2))
  }

  /// Whether a name is that of a probe.
  static func isProbe(_ name: ByteString) -> Bool {
    guard name.count == probePrefix.utf8.count + probeDigits else { return false }
    return name.bytes.starts(with: probePrefix.utf8)
      && name.bytes.dropFirst(probePrefix.utf8.count).allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): true
        default: false
        }
      }
  }
}

/// Removes the probes that programs left because they could not remove them, or ended before.
enum ProbeRemoval {
  /// The directories that can have probes.
  private static let directories = [
    ObjectPath.root, RepositoryLayout.packs, RepositoryLayout.indexes, RepositoryLayout.snapshots,
  ]

  /// Removes the probes that no program uses any longer: those older than an hour by the storage's
  /// clock.
  static func run(_ storage: RepositoryStorage, by lease: Lease) throws(StoreError) {
    var now: Timestamp?
    var old: [ObjectPath] = []
    for directory in directories {
      for name in try storage.listIfPresent(directory) ?? [] where RepositoryLayout.isProbe(name) {
        let path = directory.appending(name)
        guard let status = try storage.status(path), !status.isDirectory else { continue }
        if now == nil { now = try lease.now() }
        if let now, now.since(status.modified) > Lease.patience { old.append(path) }
      }
    }
    for path in old { try lease.remove(path) }
  }
}
