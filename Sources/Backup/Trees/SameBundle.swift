internal import ArchiveStore
internal import Codecs
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// A bundle in another directory than the recorded one (the platform gave it a new UUID) that has
/// the stored version and build. Its files are not read if all names, kinds, sizes, modes, owners
/// and modification times equal the stored ones (docs/decisions/0010-bundles-under-new-uuids.md).
struct SameBundle {
  /// The stored entries of the files, by their indexes in the scan.
  private(set) var entries: [Int32: TreeEntry] = [:]
  /// Whether no difference was found so far.
  private(set) var isSame = true

  /// Returns nil if the container is not a bundle, is in the recorded directory, or has another
  /// version.
  init?(_ tree: SelectedTree, known: KnownContainer?, versions: Versions) {
    guard tree.scan.container.kind == .bundle, let known, let root = tree.scan.entries.first,
      root.status.identity.inode != known.entry.inode,
      versions.areSame(tree.scan.container, in: known.snapshot)
    else { return nil }
  }

  /// Compares an entry that is not a directory with the recorded one of the same name.
  mutating func add(_ index: Int, status: FileStatus, known: KnownEntry?, isStored: Bool) {
    guard isSame, isStored, let known, known.isStable, let stored = known.entry,
      stored.node.kind == status.kind, stored.permissions == status.permissions,
      stored.owner == status.user, stored.group == status.group,
      stored.modified == status.modified, status.links == 1, stored.linkGroup == nil,
      status.kind != .file || known.size == status.size
    else {
      isSame = false
      return
    }
    // The target of a link is not in its status.
    if status.kind == .file { entries[Int32(index)] = stored }
  }

  /// Records that a directory has other entries than the stored ones.
  mutating func differ() { isSame = false }
}

extension SameBundle {
  /// The apps whose version on the device is the one in a snapshot.
  struct Versions: Sendable {
    private let snapshot: Digest?
    private var same: Set<ByteString> = []

    /// No versions, so that every bundle is read.
    static let unknown = Versions()

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

    /// Whether a bundle has the version recorded in the snapshot.
    func areSame(_ bundle: Container, in snapshot: Digest) -> Bool {
      snapshot == self.snapshot && bundle.owner.map { same.contains($0.bytes) } ?? false
    }
  }
}
