internal import Codecs
internal import SystemIO

/// The copies of snapshots in a repository, found by `original` in both directions: a snapshot may
/// be a copy of one in the other repository, the original of one there, or a copy of the same
/// original (docs/repository-format.md, "Copies").
///
/// A rewrap gives a snapshot another id. Its copies name the old one, which no longer exists, and
/// are found by the members that do not change. During the rewrap, and after an interruption, both
/// exist: a copy of one is a copy of the other.
struct SnapshotCopies {
  private var ids: [Snapshot.Original: SnapshotID] = [:]
  private var idsByContent: [Content: SnapshotID] = [:]
  /// The copies of the snapshots of the other repository; empty if it is not encrypted.
  private var idsByForm: [Form: SnapshotID] = [:]
  private let isEncrypted: Bool

  /// The members of a snapshot that a rewrap and a copy keep.
  private struct Content: Hashable {
    let source: Digest
    let sequence: UInt64
    let time: Timestamp
    let tree: TreeReference
    let tags: [String]
    /// The repository of the snapshot or of its original.
    let repository: Digest

    init(_ head: SnapshotHead, in repository: Digest) {
      (source, sequence, time) = (head.source, head.sequence, head.time)
      (tree, tags, self.repository) = (head.tree, head.tags, repository)
    }
  }

  /// A snapshot without its id.
  private struct Form: Hashable {
    let head: SnapshotHead

    static func == (left: Form, right: Form) -> Bool { left.head.isEqualExceptID(to: right.head) }

    func hash(into hasher: inout Hasher) {
      hasher.combine(head.sequence)
      hasher.combine(head.time)
      hasher.combine(head.tree)
    }
  }

  /// Finds the copies among the snapshots of a repository.
  ///
  /// - Parameters:
  ///   - others: the snapshots of the other repository. A copy that names one of these is a copy of
  ///     that one only, or of its rewrapped form.
  ///   - isEncrypted: whether the other repository is encrypted, so that a rewrap is possible.
  init(_ heads: [SnapshotHead], of others: [SnapshotHead], isEncrypted: Bool = false) {
    self.isEncrypted = isEncrypted
    let present = Set(others.map(\.id))
    for head in heads {
      for name in head.originals {
        ids[name] = head.id
        if present.contains(name.id) { continue }
        idsByContent[Content(head, in: name.repository)] = head.id
      }
    }
    guard isEncrypted else { return }
    for other in others { if let id = copyByName(of: other) { idsByForm[Form(head: other)] = id } }
  }

  /// Adds a copy that was made of a snapshot of another repository.
  mutating func add(_ id: SnapshotID, of head: SnapshotHead) {
    for name in head.originals { ids[name] = id }
    if isEncrypted { idsByForm[Form(head: head)] = id }
  }

  /// Returns the copy of a snapshot of another repository, or nil if there is none.
  func copy(of head: SnapshotHead) -> SnapshotID? {
    copyByName(of: head) ?? (isEncrypted ? idsByForm[Form(head: head)] : nil)
  }

  private func copyByName(of head: SnapshotHead) -> SnapshotID? {
    let names = head.originals
    return names.lazy.compactMap { ids[$0] }.first
      ?? names.lazy.compactMap { idsByContent[Content(head, in: $0.repository)] }.first
  }
}

extension SnapshotHead {
  /// The names of the snapshot: its own, and that of its original in another repository. A repaired
  /// snapshot, whose original is in the same repository, counts as a separate snapshot.
  var originals: [Snapshot.Original] {
    let own = Snapshot.Original(repository: repository, id: id)
    guard let original, original.repository != repository else { return [own] }
    return [own, original]
  }
}

extension StoredSnapshot {
  /// Returns the content of the snapshot's copy in another repository. Everything stays except the
  /// repository, and `original`, which names the first original.
  ///
  /// The copy in the repository of the original is the original itself, if its bytes can be
  /// reproduced. In a repository of the same id, such as a mirror, the bytes stay.
  ///
  /// - Parameters:
  ///   - key: this host's key; nil if it has none.
  ///   - isSigned: whether the copy is signed. The original is made again, with its id, even if
  ///     not.
  func copy(
    in target: Digest, content: [UInt8], key: SigningKey? = nil, isSigned: Bool = true
  ) -> [UInt8] {
    if snapshot.repository == target { return content }
    let own = Snapshot.Original(repository: snapshot.repository, id: id)
    var copy = snapshot
    copy.repository = target
    if let first = snapshot.original, first.repository == target {
      copy.original = nil
      // The original may have been signed by this host, or may be unsigned.
      for original in [copy.encode(signedBy: key), copy.encode()]
      where Blake2b.hash(original) == first.id {
        return original
      }
      copy.original = own
    } else if let first = snapshot.original, first.repository != snapshot.repository {
      copy.original = first
    } else {
      copy.original = own
    }
    return copy.encode(signedBy: isSigned ? key : nil)
  }
}
