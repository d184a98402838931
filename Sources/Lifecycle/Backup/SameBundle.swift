internal import ArchiveStore
internal import Codecs
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// A bundle in another directory than the one that the state knows (the platform gave it a new UUID),
/// of the version and build that are stored: its files are not read when all names, kinds, sizes,
/// modes, owners and times of modification are those that are stored
/// (docs/decisions/0010-bundles-under-new-uuids.md).
struct SameBundle {
  /// The files as they are stored, with what they are here.
  private(set) var entries: [Int32: TreeEntry] = [:]
  /// Whether nothing differs so far.
  private(set) var isSame = true

  /// Nothing where the container is no bundle, is where it was, or is of another version.
  init?(_ tree: SelectedTree, _ known: KnownContainer?, _ versions: BundleVersions) {
    guard tree.scan.container.kind == .bundle, let known, let root = tree.scan.entries.first,
      root.status.identity.inode != known.entry.inode,
      versions.areSame(tree.scan.container, in: known.snapshot)
    else { return nil }
  }

  /// Compares an entry, no directory, with what is known under its name.
  mutating func take(_ index: Int, _ status: FileStatus, _ known: KnownEntry?, isStored: Bool) {
    guard isSame, isStored, let known, known.isStable, let stored = known.entry,
      stored.node.kind == status.kind, stored.permissions == status.permissions,
      stored.owner == status.user, stored.group == status.group,
      stored.modified == status.modified, status.links == 1, stored.linkGroup == nil,
      status.kind != .file || known.size == status.size
    else {
      isSame = false
      return
    }
    // What a link points to is not in its status.
    if status.kind == .file { entries[Int32(index)] = stored }
  }

  /// Takes note of a directory that has other entries than are stored.
  mutating func differ() { isSame = false }
}

/// Which versions of apps are on the device, and which a snapshot has.
struct BundleVersions: Sendable {
  private let snapshot: Digest?
  private var same: Set<ByteString> = []

  /// Knows no versions, so that every bundle is read.
  static let unknown = BundleVersions()

  private init() { snapshot = nil }

  init(_ device: Device, _ earlier: StoredSnapshot?) {
    snapshot = earlier?.id
    let stored = Dictionary(
      (earlier?.snapshot.apps ?? []).map { ($0.identifier, $0) }, uniquingKeysWith: { $1 })
    for app in device.apps {
      guard let record = stored[app.identifier.description], record.version != nil,
        record.version == app.version?.description, record.build == app.build?.description
      else { continue }
      same.insert(app.identifier.bytes)
    }
  }

  /// Whether a bundle is of the version that the snapshot has.
  func areSame(_ bundle: Container, in snapshot: Digest) -> Bool {
    snapshot == self.snapshot && bundle.owner.map { same.contains($0.bytes) } ?? false
  }
}
