internal import SystemIO

/// The evidence that an original has lost an index object: packs of it that its index objects do
/// not name, and that its snapshots need. A mirror of it is complete, since readers find such packs
/// by their own tables; but nobody would notice the loss.
struct UnindexedSnapshots {
  private let index: LoadedIndex
  /// Whether there are packs that no index object names, as after an interrupted backup.
  let hasUnnamedPacks: Bool

  /// - Parameter index: the index objects of the original.
  init(_ found: MirrorListing, _ index: LoadedIndex) {
    self.index = index
    let named = index.packs
    hasUnnamedPacks =
      index.unreadable.isEmpty && found.packs.keys.contains { !named.contains($0) }
  }

  /// Whether a snapshot needs an unnamed pack for its root: that of each run is stored with it, so
  /// it is lost with the run's index object. Nothing but the index is read for this.
  func contains(anyOf heads: [SnapshotHead]) -> Bool {
    guard hasUnnamedPacks else { return false }
    let set = IndexSet(index.objects)
    return heads.contains { !set.contains(BlobID(kind: .tree, digest: $0.tree.digest)) }
  }
}
