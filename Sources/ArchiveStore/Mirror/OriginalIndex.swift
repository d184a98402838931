internal import Codecs

/// The index objects of an original, as far as its mirror has them.
struct OriginalIndex {
  private let index: LoadedIndex
  private let snapshots: Set<SnapshotID>
  /// Whether there are packs that no index object names, as after an interrupted backup.
  private let hasUnnamedPacks: Bool

  /// - Parameters:
  ///   - found: the objects of the original.
  ///   - index: its index objects, as loaded from the mirror.
  init(_ found: MirrorListing, _ index: LoadedIndex) {
    self.index = index
    snapshots = found.snapshots
    let named = index.packs
    hasUnnamedPacks =
      index.unreadable.isEmpty && found.packs.keys.contains { !named.contains($0) }
  }

  /// Whether all index objects are usable, and exactly the packs that they name are in the original
  /// and among `packs`. A mirror with these packs then has all that the original's snapshots need.
  func isWhole(with packs: Set<Digest>) -> Bool {
    index.faults.isEmpty && index.unreadable.isEmpty && !hasUnnamedPacks
      && index.packs.isSubset(of: packs)
  }

  /// Whether the original has lost an index object: a snapshot's root is in a pack that no object
  /// names. Each run stores its root itself, so the root's entry is lost with the run's index
  /// object. Only the index is read for this.
  ///
  /// The mirror is still complete, because readers find such packs by their own tables; but the
  /// loss would go unnoticed.
  func hasLostObject(in mirror: RepositoryMirror) throws -> Bool {
    guard hasUnnamedPacks else { return false }
    let set = IndexSet(index.objects)
    return try mirror.source.heads(cache: mirror.headCache).heads.contains { head in
      snapshots.contains(head.id)
        && !set.contains(BlobID(kind: .tree, digest: head.tree.digest))
    }
  }
}
